/**
 * What the page does when the person or the server does something: the one place where the wire, the speaker, the
 * microphone and the view state meet. It draws nothing.
 */

import { ServerClock } from "./clock.js";
import { Listener } from "./listener.js";
import { shotOf } from "./shown.js";
import { Wire } from "./socket.js";
import { DUCKED, Speaker } from "./speaker.js";

/** What a camera showed this long ago is still what it shows. */
const GLANCE_MS = 1500;
const KEPT_WAKE = "wake";
/** Turn detection while the microphone is open; push to talk has none. */
const OPEN_MIC = { type: "semantic_vad", create_response: true, interrupt_response: true };

export class Talk {
  /**
   * @param {{
   *   dispatch: (event: any) => void, state: () => import("./session.js").State,
   *   url: (conversationId: string|null) => string, protocols: string[],
   *   onYou: (power: number) => void, onReply: (power: number, at: number) => void,
   *   onMark: (kind: "asked"|"first"|"cut", at: number) => void,
   *   view: () => import("./shown.js").View,
   *   onDevices: () => void, onKept: () => void,
   * }} options `onKept`: timers, lists or notes may have changed
   */
  constructor({ dispatch, state, url, protocols, view, onYou, onReply, onMark, onDevices, onKept }) {
    this._dispatch = dispatch;
    this._state = state;
    this._view = view;
    this._glanced = -Infinity;
    this._language = /** @type {string|null} chosen here */ (null);
    this._onMark = onMark;
    this._onKept = onKept;
    this.clock = new ServerClock();
    /** What waits for the running reply to end. @type {(() => void)[]} */
    this._whenQuiet = [];
    this.wire = new Wire({ url, protocols, onEvent: (event) => this._receive(event), onLink: (link, retryAt) => this._linked(link, retryAt) });
    this.speaker = new Speaker({
      dispatch, state, onReply, onMark,
      onHeard: (id, ms) => this._can("heard") && this.wire.send({ type: "assistant.heard", item_id: id, audio_ms: ms }),
      onCut: (id, ms) => this.wire.send({ type: "conversation.item.truncate", item_id: id, content_index: 0, audio_end_ms: ms }),
      onAble: () => this._configure(),
    });
    this.listener = new Listener({
      dispatch, state, onYou, onDevices,
      sendAudio: (base64) => this.wire.sendAudio(base64),
      onClear: () => this.wire.send({ type: "input_audio_buffer.clear" }),
    });
  }

  // ------------------------------------------------------------------------------------------ the person

  /** The round button in open mode: start or stop listening. */
  async toggleMicrophone() {
    await this.speaker.wake();
    if (this._state().microphone.paused) await this.listener.resume();
    else await this.listener.toggle();
  }

  /** @param {"open"|"push"} mode */
  setMode(mode) {
    this._dispatch({ type: "page.microphone", mode, held: false, hint: null });
    this._configure();
    if (this.listener.open) this.wire.send({ type: "input_audio_buffer.clear" });
  }

  /** Push to talk: pressed. */
  async press() {
    await this.speaker.wake();
    await this.listener.press(() => {
      this.hush();
      this.wire.send({ type: "input_audio_buffer.clear" });
      this._glance();
    });
  }

  /** Push to talk: let go. */
  release() {
    if (!this.listener.release()) return;
    this._quietly(() => {
      this.wire.send({ type: "input_audio_buffer.commit" });
      this.wire.send({ type: "response.create" });
    });
  }

  /** @param {string} text */
  async write(text) {
    await this.speaker.wake();
    this.hush();
    this._quietly(() => {
      this._glance();
      this.wire.send({ type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_text", text }] } });
      this._ask();
    });
  }

  _ask() {
    const at = performance.now();
    this.wire.send({ type: "response.create" });
    this._dispatch({ type: "page.asked", at });
    this._onMark("asked", at);
  }

  /** Picture files, dropped, pasted or chosen: each is shown at once, the words to it may follow. @param {Iterable<Blob>} files */
  async show(files) {
    for (const file of files) {
      const shot = await shotOf(file);
      if (shot === null) this._dispatch({ type: "page.notice", text: "This browser cannot read that file as a picture." });
      else this._show(shot, false);
    }
  }

  /** What the camera or the window shows now, because the person says so. */
  showNow() {
    const shot = this._view().shot();
    if (shot !== null) this._show(shot, false);
  }

  /** The person begins to say something: what is to be seen now goes with it. */
  _glance() {
    const now = performance.now();
    const shot = now - this._glanced < GLANCE_MS ? null : this._view().shot();
    if (shot === null) return;
    this._glanced = now;
    this._show(shot, true);
  }

  /** @param {import("./shown.js").Shot} shot @param {boolean} frame */
  _show(shot, frame) {
    if (this._state().link !== "open") return;
    const id = `shown_${Date.now().toString(36)}${Math.random().toString(36).slice(2, 10)}`;
    this._dispatch({ type: "page.shown", itemId: id, picture: { ...shot, frame }, at: performance.now() });
    this.wire.send({ type: "conversation.item.create", item: { id, type: "message", role: "user", content: [{ type: "input_image", image_url: shot.url, frame }] } });
  }

  /** Stop the running reply, as an interruption would. */
  hush() {
    const { responseId } = this._state();
    if (responseId !== null) this.wire.send({ type: "response.cancel", response_id: responseId });
    this.speaker.cut();
  }

  undo() {
    this.hush();
    this._quietly(() => this.wire.send({ type: "assistant.undo", turns: 1 }));
  }

  retry() {
    const question = this._state().items.findLast((item) => item.role === "user" && !item.nod && item.shown && (item.pictures.length === 0 || item.text !== ""));
    if (!question) return;
    this.hush();
    this._quietly(() => {
      this.wire.send({ type: "assistant.rewind", item_id: question.id });
      this._ask();
    });
  }

  /** Begin a new talk; the one before stays kept. @returns {string|null} the one before */
  startOver() {
    const before = this._state().items.length > 0 ? this.wire.conversationId : null;
    this.reopen(null);
    return before;
  }

  /** Go on with a talk that is kept, or begin one. @param {string|null} conversationId */
  reopen(conversationId) {
    this.speaker.cut();
    this._whenQuiet = [];
    this._dispatch({ type: "page.fresh" });
    this.wire.restart(conversationId);
  }

  /** @param {string} name */
  persona(name) {
    this.hush();
    this._quietly(() => this.wire.send({ type: "assistant.persona", name }));
  }

  /** The person's word on a call that they were asked about. @param {string} id of the approval @param {boolean} allowed */
  answer(id, allowed) {
    this.hush();
    this._quietly(() => {
      this._dispatch({ type: "page.answered", id, allowed });
      this.wire.send({ type: "conversation.item.create", item: { type: "mcp_approval_response", approval_request_id: id, approve: allowed } });
      this._ask();
    });
  }

  /** Which personas and voices there are now. */
  askPersonas() {
    if (this._can("personas")) this.wire.send({ type: "assistant.personas" });
  }

  /** Hush, and hear nothing until what is given back is called. @returns {() => void} */
  apart() {
    this.hush();
    if (!this.listener.open || this._state().microphone.muted) return () => {};
    this.listener.mute(true);
    return () => this.listener.mute(false);
  }

  /** Listen only when called by name, here and at the next start of this page. @param {boolean} on */
  byName(on) {
    localStorage.setItem(KEPT_WAKE, String(on));
    this._wake(on);
  }

  /** @param {boolean} on */
  _wake(on) {
    if (this._can("wake")) this.wire.send({ type: "assistant.wake", on });
  }

  /** @param {string} voice */
  voice(voice) {
    this._quietly(() => this.wire.send({ type: "session.update", session: { type: "realtime", audio: { output: { voice } } } }));
  }

  /** The language of this talk. @param {string} code */
  language(code) {
    this._language = code;
    this._quietly(() => this._configure());
  }

  // ----------------------------------------------------------------------------------------------- wire

  /** @param {string} extension */
  _can(extension) {
    return this._state().session?.assistant?.extensions?.includes(extension) ?? false;
  }

  /** Do something that needs the conversation to itself: at once, or when the running reply is done. @param {() => void} what */
  _quietly(what) {
    if (this._state().responseId === null) what();
    else this._whenQuiet.push(what);
  }

  _configure() {
    const detection = this._state().microphone.mode === "push" ? null : OPEN_MIC;
    this.wire.send({ type: "session.update", session: { type: "realtime", output_modalities: [this.speaker.able ? "audio" : "text"], audio: { input: { turn_detection: detection, transcription: { model: "local", ...(this._language ? { language: this._language } : {}) } } } } });
  }

  /** @param {"connecting"|"open"|"lost"|"full"|"moved"} link @param {number|null} retryAt */
  _linked(link, retryAt) {
    if (link !== "open") {
      this.clock.clear();
      this.listener.forget();
      this._whenQuiet = [];
    }
    if (link === "moved") {
      this.speaker.cut();
      if (this.listener.open) this.listener.close();
    }
    this._dispatch({ type: "page.link", link, retryAt });
  }

  /** @param {any} event with `at`, the page time of its arrival */
  _receive(event) {
    if (event.type === "response.output_audio.delta") return this.speaker.sound(event);
    this._dispatch(event);
    switch (event.type) {
      case "session.created":
        this._configure();
        if ((localStorage.getItem(KEPT_WAKE) ?? String(event.session?.assistant?.wake_at_start)) === "true") this._wake(true);
        this.askPersonas();
        this._askCapsules();
        this._onKept();
        break;
      case "assistant.wake":
        if (event.state === "called") this.speaker.chime();
        break;
      case "assistant.pong":
        this.clock.add(event.client_ms, event.server_ms, event.at);
        this._dispatch({ type: "page.clock", offset: this.clock.best?.offset ?? 0, uncertainty: this.clock.uncertainty });
        break;
      case "conversation.item.added":
        // Of a talk that goes on only the sizes are told; the pictures themselves are asked for.
        if (event.item.pictures?.length > 0 && this._state().items.some((item) => item.id === event.item.id && item.pictures.some((one) => one.url === null))) {
          this.wire.send({ type: "conversation.item.retrieve", item_id: event.item.id });
        }
        break;
      case "input_audio_buffer.speech_started":
        this._glance();
        this.speaker.speechAt = this.listener.clock.at(event.audio_start_ms + this._padding());
        if (!this._can("duck")) this.speaker.cut();
        break;
      case "input_audio_buffer.committed":
        this.speaker.speechAt = null;
        this._onMark("asked", event.at);
        break;
      case "assistant.duck":
        this._glance();
        this.speaker.duck(event.level ?? DUCKED);
        break;
      case "assistant.resume":
        this.speaker.duck(1);
        break;
      case "assistant.stop":
        this.speaker.cut();
        break;
      case "response.output_audio.done":
        this.speaker.end();
        break;
      case "response.done":
        this.speaker.end();
        this._quiet();
        this._askCapsules();
        this._onKept();
        break;
      case "assistant.persona":
      case "conversation.item.deleted":
        this._askCapsules();
        this._onKept();
        break;
      default:
    }
    return undefined;
  }

  /** `audio_start_ms` includes the sound kept from before the detected start. */
  _padding() {
    return this._state().session?.audio?.input?.turn_detection?.prefix_padding_ms ?? 0;
  }

  _quiet() {
    const waiting = this._whenQuiet;
    this._whenQuiet = [];
    for (const what of waiting) what();
  }

  _askCapsules() {
    if (this._can("capsules")) this.wire.send({ type: "assistant.capsules" });
  }
}
