/**
 * What the page does when the person or the server does something: the one place where the wire, the speaker, the
 * microphone and the view state meet. It draws nothing.
 */

import { MicrophoneTrouble, Microphone, inputDevices } from "./audio/capture.js";
import { WIRE_RATE, decodeBase64, encodeBase64 } from "./audio/pcm.js";
import { Playback } from "./audio/playback.js";
import { IDLE } from "./audio/player.js";
import { InputClock, ServerClock } from "./clock.js";
import { shotOf } from "./shown.js";
import { Wire } from "./socket.js";

const HEARD_EVERY_MS = 150;
const DUCKED = 0.22;
/** A fade and a few blocks; who has not answered by then is taken at the last word. */
const STOPPING_MS = 200;
/** A speaker that has not started by then has to be looked after by a person. */
const SILENT_MS = 4000;
/** A shorter press of push to talk says nothing. */
const SHORTEST_PUSH = WIRE_RATE / 5;
/** What a camera showed this long ago is still what it shows. */
const GLANCE_MS = 1500;
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
   *   onDevices: (devices: {id: string, label: string}[], chosen: string) => void,
   * }} options
   */
  constructor({ dispatch, state, url, protocols, view, onYou, onReply, onMark, onDevices }) {
    this._dispatch = dispatch;
    this._state = state;
    this._view = view;
    this._glanced = -Infinity;
    this._onYou = onYou;
    this._onReply = onReply;
    this._onMark = onMark;
    this._onDevices = onDevices;
    this.clock = new ServerClock();
    this._input = new InputClock(WIRE_RATE);
    this._inputSamples = 0;
    this._heldFrom = 0;
    this._pressed = false;
    /** @type {Playback|null} */
    this._playback = null;
    /** @type {Promise<Playback>|null} */
    this._opening = null;
    /** @type {Microphone|null} */
    this._microphone = null;
    /** Items whose further sound is not wanted. @type {Set<string>} */
    this._cut = new Set();
    /** Items whose first sound has been seen to leave. @type {Set<string>} */
    this._begun = new Set();
    /** What waits for the running reply to end. @type {(() => void)[]} */
    this._whenQuiet = [];
    this._heardSent = { id: "", ms: -1, at: 0 };
    this._speechAt = /** @type {number|null} */ (null);
    this.wire = new Wire({ url, protocols, onEvent: (event) => this._receive(event), onLink: (link, retryAt) => this._linked(link, retryAt) });
  }

  // ------------------------------------------------------------------------------------------ the person

  /** The round button in open mode: start or stop listening. */
  async toggleMicrophone() {
    await this.wakeSpeaker();
    if (this._microphone) await this._closeMicrophone();
    else if (this._state().microphone.status !== "asking") await this._openMicrophone(this._state().microphone.deviceId);
  }

  /** In mid-talk the old device listens until the new one does. @param {string} deviceId */
  async chooseDevice(deviceId) {
    if (this._microphone) await this._openMicrophone(deviceId);
    else this._dispatch({ type: "page.microphone", deviceId });
  }

  /** @param {boolean} muted */
  mute(muted) {
    if (this._microphone) this._microphone.muted = muted;
    this._dispatch({ type: "page.microphone", muted });
  }

  /** @param {"open"|"push"} mode */
  setMode(mode) {
    this._dispatch({ type: "page.microphone", mode, held: false });
    this._configure();
    if (this._microphone) this.wire.send({ type: "input_audio_buffer.clear" });
  }

  /** Push to talk: pressed. */
  async press() {
    this._pressed = true;
    await this.wakeSpeaker();
    if (!this._microphone) await this._openMicrophone(this._state().microphone.deviceId);
    if (!this._pressed || !this._microphone || this._state().microphone.held) return; // let go while it opened
    this.hush();
    this.wire.send({ type: "input_audio_buffer.clear" });
    this._heldFrom = this._inputSamples;
    this._glance();
    this._dispatch({ type: "page.microphone", held: true });
  }

  /** Push to talk: let go. */
  release() {
    this._pressed = false;
    if (!this._state().microphone.held) return;
    this._dispatch({ type: "page.microphone", held: false });
    if (this._inputSamples - this._heldFrom < SHORTEST_PUSH) return;
    this._quietly(() => {
      this.wire.send({ type: "input_audio_buffer.commit" });
      this.wire.send({ type: "response.create" });
    });
  }

  /** @param {string} text */
  async write(text) {
    await this.wakeSpeaker();
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
    this._cutNow();
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

  startOver() {
    this._cutNow();
    this._whenQuiet = [];
    this._dispatch({ type: "page.fresh" });
    this.wire.restart();
  }

  /** @param {string} name */
  persona(name) {
    this.hush();
    this._quietly(() => this.wire.send({ type: "assistant.persona", name }));
  }

  /** Which personas and voices there are now. */
  askPersonas() {
    if (this._can("personas")) this.wire.send({ type: "assistant.personas" });
  }

  /** Hush, and hear nothing until what is given back is called. @returns {() => void} */
  apart() {
    this.hush();
    if (!this._microphone || this._state().microphone.muted) return () => {};
    this.mute(true);
    return () => this.mute(false);
  }

  /** @param {string} voice */
  voice(voice) {
    this._quietly(() => this.wire.send({ type: "session.update", session: { type: "realtime", audio: { output: { voice } } } }));
  }

  // ----------------------------------------------------------------------------------------- microphone

  /** @param {string} deviceId */
  async _openMicrophone(deviceId) {
    this._dispatch({ type: "page.microphone", status: this._microphone ? "on" : "asking", help: null });
    try {
      const microphone = await Microphone.open({
        deviceId,
        onPiece: (piece, track) => track === this._microphone?.track && this._piece(piece),
        onEnded: () => this._microphoneGone(),
      });
      const before = this._microphone;
      microphone.muted = this._state().microphone.muted;
      this._microphone = microphone;
      this._input.clear(); // another device, another line of time
      this._dispatch({ type: "page.microphone", status: "on", label: microphone.label, deviceId: microphone.deviceId });
      await before?.close();
    } catch (error) {
      if (!(error instanceof MicrophoneTrouble)) throw error;
      this._dispatch({ type: "page.microphone", status: this._microphone ? "on" : "off", help: error.kind });
    }
    this._onDevices(await inputDevices(), this._state().microphone.deviceId);
  }

  async _closeMicrophone() {
    const microphone = this._microphone;
    this._microphone = null;
    this._dispatch({ type: "page.microphone", status: "off", held: false });
    this.wire.send({ type: "input_audio_buffer.clear" });
    await microphone?.close();
  }

  _microphoneGone() {
    this._closeMicrophone();
    this._dispatch({ type: "page.microphone", help: "missing" });
  }

  /** @param {import("./audio/capture.js").Piece} piece */
  _piece(piece) {
    const now = performance.now();
    const { mode, held } = this._state().microphone;
    this._onYou(piece.power);
    if (!this._microphone || (mode === "push" && !held)) return;
    if (!this.wire.sendAudio(encodeBase64(piece.pcm))) return;
    this._inputSamples += piece.pcm.length;
    this._input.add(this._inputSamples, now);
  }

  // -------------------------------------------------------------------------------------------- speaker

  /** Open the speaker on the first gesture; before one, browsers keep it silent. */
  async wakeSpeaker() {
    if (!Playback.possible) return;
    if (this._opening === null) setTimeout(() => { if (!this._playback?.running) this._dispatch({ type: "page.silent" }); }, SILENT_MS);
    this._opening ??= Playback.open((report) => this._report(report));
    this._playback = await this._opening;
    this._playback.context.onstatechange = () => this._dispatch({ type: "page.speaker", on: this._playback?.running ?? false });
    this._dispatch({ type: "page.speaker", on: await this._playback.wake() });
  }

  /** @param {import("./audio/playback.js").Report} report */
  _report(report) {
    if (this._playback) this._onReply(report.power, Math.min(performance.now(), this._playback.pageTime(report.frame)));
    const { player } = this._state();
    if (player.underruns !== report.underruns || player.cushionMs !== report.cushionMs) {
      this._dispatch({ type: "page.player", underruns: report.underruns, cushionMs: report.cushionMs });
    }
    this._follow(report.state === IDLE);
  }

  /** What has been heard by now: told to the view often, to the server now and then. @param {boolean} finished */
  _follow(finished = false) {
    const playback = this._playback;
    if (!playback) return;
    for (const span of playback.log.spans) {
      if (span.startFrame < 0 || this._begun.has(span.id)) continue;
      this._begun.add(span.id);
      const at = playback.pageTime(span.startFrame);
      const responseId = this._state().items.find((item) => item.id === span.id)?.responseId ?? null;
      const turn = this._state().turns.find((one) => one.id === responseId);
      if (turn && turn.renderedAt === null) {
        this._dispatch({ type: "page.rendered", responseId, at });
        this._onMark("first", at);
      }
    }
    const id = playback.log.current(playback.heardFrame());
    if (id === null || this._cut.has(id)) return;
    const ms = finished ? playback.renderedMs(id) : playback.heardMs(id);
    this._dispatch({ type: "page.heard", itemId: id, ms });
    this._dispatch({ type: "page.playing", itemId: finished ? null : id });
    this._tellHeard(id, ms, finished);
  }

  _tellHeard(id, ms, finished) {
    const now = performance.now();
    const same = this._heardSent.id === id;
    if (same && (ms <= this._heardSent.ms || (!finished && now - this._heardSent.at < HEARD_EVERY_MS))) return;
    if (!this._can("heard")) return;
    this._heardSent = { id, ms, at: now };
    this.wire.send({ type: "assistant.heard", item_id: id, audio_ms: Math.floor(ms) });
  }

  /** Silence the reply, then say exactly how far it came. */
  async _cutNow() {
    const playback = this._playback;
    if (!playback || (playback.idle && this._state().playing === null)) return;
    const { playing, responseId } = this._state();
    const unfinished = (/** @type {string} */ id) =>
      playback.log.length(id) > playback.log.handed(id) || (id === playing && responseId !== null);
    const waiting = [...new Set(playback.log.spans.map((span) => span.id))].filter((id) => !this._cut.has(id) && unfinished(id));
    for (const id of waiting) this._cut.add(id);
    // A starved sound thread answers late; by then the next reply would be made from words that nobody heard.
    const silentAt = await Promise.race([playback.stop(), new Promise((resolve) => setTimeout(() => resolve(performance.now()), STOPPING_MS))]);
    this._onMark("cut", silentAt);
    this._dispatch({ type: "page.playing", itemId: null });
    const yieldMs = this._speechAt !== null && silentAt - this._speechAt < 5000 ? Math.max(0, silentAt - this._speechAt) : null;
    for (const id of waiting) {
      const ms = Math.floor(playback.renderedMs(id));
      this._dispatch({ type: "page.cut", itemId: id, ms, at: silentAt, yieldMs });
      this.wire.send({ type: "conversation.item.truncate", item_id: id, content_index: 0, audio_end_ms: ms });
    }
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
    this.wire.send({ type: "session.update", session: { type: "realtime", output_modalities: [Playback.possible ? "audio" : "text"], audio: { input: { turn_detection: detection, transcription: { model: "local" } } } } });
  }

  /** @param {"connecting"|"open"|"lost"|"full"|"moved"} link @param {number|null} retryAt */
  _linked(link, retryAt) {
    if (link !== "open") {
      this.clock.clear();
      this._input.clear();
      this._inputSamples = 0;
      this._whenQuiet = [];
    }
    if (link === "moved") {
      this._cutNow();
      if (this._microphone) this._closeMicrophone();
    }
    this._dispatch({ type: "page.link", link, retryAt });
  }

  /** @param {any} event with `at`, the page time of its arrival */
  _receive(event) {
    if (event.type === "response.output_audio.delta") return this._sound(event);
    this._dispatch(event);
    switch (event.type) {
      case "session.created":
        this._configure();
        this.askPersonas();
        this._askCapsules();
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
        this._speechAt = this._input.at(event.audio_start_ms + this._padding());
        if (!this._can("duck")) this._cutNow();
        break;
      case "input_audio_buffer.committed":
        this._speechAt = null;
        this._onMark("asked", event.at);
        break;
      case "assistant.duck":
        this._glance();
        this._playback?.duck(event.level ?? DUCKED);
        break;
      case "assistant.resume":
        this._playback?.duck(1);
        break;
      case "assistant.stop":
        this._cutNow();
        break;
      case "response.output_audio.done":
        this._playback?.end();
        break;
      case "response.done":
        this._playback?.end();
        this._quiet();
        this._askCapsules();
        break;
      case "assistant.persona":
      case "conversation.item.deleted":
        this._askCapsules();
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

  /** @param {any} event */
  _sound(event) {
    if (this._cut.has(event.item_id)) return;
    const samples = decodeBase64(event.delta);
    this._dispatch({ type: "page.audio", itemId: event.item_id, responseId: event.response_id, ms: (samples.length / WIRE_RATE) * 1000, at: event.at });
    if (this._playback?.running) this._playback.enqueue(event.item_id, samples); // never later than it was meant
  }
}
