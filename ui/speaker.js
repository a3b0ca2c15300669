/**
 * What the page plays: the loudspeaker, how loud it is, what was heard of each reply, and what is cut.
 *
 * Sound that the system suspends is held, and goes on at the same sample when it may. A loudspeaker that cannot be
 * opened is tried again at the next press; until then replies come as text.
 */

import { WIRE_RATE, decodeBase64 } from "./audio/pcm.js";
import { Playback } from "./audio/playback.js";
import { IDLE } from "./audio/player.js";

const HEARD_EVERY_MS = 150;
export const DUCKED = 0.22;
/** A fade and a few blocks; who has not answered by then is taken at the last word. */
const STOPPING_MS = 200;
/** A speaker that has not started by then has to be looked after by a person. */
const SILENT_MS = 4000;
const KEPT_VOLUME = "volume";

export class Speaker {
  /**
   * @param {{
   *   dispatch: (event: any) => void, state: () => import("./session.js").State,
   *   onHeard: (itemId: string, ms: number) => void, onCut: (itemId: string, ms: number) => void,
   *   onAble: () => void,
   *   onReply: (power: number, at: number) => void, onMark: (kind: "first"|"cut", at: number) => void,
   * }} options `onAble`: whether sound can be played at all has changed
   */
  constructor({ dispatch, state, onHeard, onCut, onAble, onReply, onMark }) {
    Object.assign(this, { _dispatch: dispatch, _state: state, _onHeard: onHeard, _onCut: onCut, _onAble: onAble, _onReply: onReply, _onMark: onMark });
    /** @type {Playback|null} */
    this._playback = null;
    /** @type {Promise<Playback>|null} */
    this._opening = null;
    this._failed = false;
    this._ran = false; // it has played since it was opened: what stops it now only holds the sound
    /** Items whose further sound is not wanted. @type {Set<string>} */
    this._cut = new Set();
    /** Items whose first sound has been seen to leave. @type {Set<string>} */
    this._begun = new Set();
    this._heardSent = { id: "", ms: -1, at: 0 };
    /** When the person began to speak over a reply, as page time. */
    this.speechAt = /** @type {number|null} */ (null);
    this.volume = Number(localStorage.getItem(KEPT_VOLUME) ?? 1);
    this.quiet = false;
    this._sink = "";
    addEventListener("visibilitychange", () => document.visibilityState === "visible" && this._playback?.wake());
  }

  /** Whether replies can be asked for as sound. */
  get able() {
    return Playback.possible && !this._failed;
  }

  /** Open the speaker on the first gesture, and go on after a suspension; before one, browsers keep it silent. */
  async wake() {
    if (!Playback.possible) return;
    if (this._opening === null) setTimeout(() => { if (!this._playback?.running && !this._ran) this._dispatch({ type: "page.silent" }); }, SILENT_MS);
    try {
      this._playback = await (this._opening ??= this._open());
    } catch {
      this._opening = null; // the next press tries again
      this._setFailed(true);
      return;
    }
    this._setFailed(false);
    await this._playback.wake();
    this._changed();
  }

  /** The sound that answers a name. */
  chime() {
    this._playback?.chime();
  }

  async _open() {
    const playback = await Playback.open((report) => this._report(report));
    playback.context.onstatechange = () => this._changed();
    playback.volume = this.quiet ? 0 : this.volume;
    if (this._sink) await playback.useSink(this._sink);
    return playback;
  }

  /** @param {boolean} failed */
  _setFailed(failed) {
    if (failed) this._dispatch({ type: "page.speaker", on: false, held: false });
    if (this._failed === failed) return;
    this._failed = failed;
    this._onAble();
  }

  _changed() {
    const on = this._playback?.running ?? false;
    this._ran ||= on;
    this._dispatch({ type: "page.speaker", on: this._ran, held: this._ran && !on });
  }

  /** @param {number} volume 0..1 */
  setVolume(volume) {
    this.volume = volume;
    localStorage.setItem(KEPT_VOLUME, String(volume));
    if (volume > 0) this.quiet = false;
    this._loudness();
  }

  /** @param {boolean} quiet replies are seen and not heard */
  setQuiet(quiet) {
    this.quiet = quiet;
    this._loudness();
  }

  _loudness() {
    if (this._playback) this._playback.volume = this.quiet ? 0 : this.volume;
  }

  /** Another loudspeaker; one that cannot be used leaves the one before. @param {string} deviceId */
  async setSink(deviceId) {
    this._sink = deviceId;
    await this._playback?.useSink(deviceId);
  }

  /** A piece of a reply, as it comes off the wire. @param {any} event */
  sound(event) {
    if (this._cut.has(event.item_id)) return;
    const samples = decodeBase64(event.delta);
    this._dispatch({ type: "page.audio", itemId: event.item_id, responseId: event.response_id, ms: (samples.length / WIRE_RATE) * 1000, at: event.at });
    if (this._ran) this._playback?.enqueue(event.item_id, samples); // what never ran would be later than it was meant
  }

  /** The reply is complete. */
  end() {
    this._playback?.end();
  }

  /** @param {number} level 0..1 */
  duck(level) {
    this._playback?.duck(level);
  }

  /** Silence the reply, then say exactly how far it came. */
  async cut() {
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
    const yieldMs = this.speechAt !== null && silentAt - this.speechAt < 5000 ? Math.max(0, silentAt - this.speechAt) : null;
    for (const id of waiting) {
      const ms = Math.floor(playback.renderedMs(id));
      this._dispatch({ type: "page.cut", itemId: id, ms, at: silentAt, yieldMs });
      this._onCut(id, ms);
    }
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
  _follow(finished) {
    const playback = this._playback;
    if (!playback) return;
    this._firstSounds(playback);
    const id = playback.log.current(playback.heardFrame());
    if (id === null || this._cut.has(id)) return;
    const ms = finished ? playback.renderedMs(id) : playback.heardMs(id);
    this._dispatch({ type: "page.heard", itemId: id, ms });
    this._dispatch({ type: "page.playing", itemId: finished ? null : id });
    const now = performance.now();
    const same = this._heardSent.id === id;
    if (same && (ms <= this._heardSent.ms || (!finished && now - this._heardSent.at < HEARD_EVERY_MS))) return;
    this._heardSent = { id, ms, at: now };
    this._onHeard(id, Math.floor(ms));
  }

  /** @param {Playback} playback */
  _firstSounds(playback) {
    for (const span of playback.log.spans) {
      if (span.startFrame < 0 || this._begun.has(span.id)) continue;
      this._begun.add(span.id);
      const at = playback.pageTime(span.startFrame);
      const responseId = this._state().items.find((item) => item.id === span.id)?.responseId ?? null;
      const turn = this._state().turns.find((one) => one.id === responseId);
      if (!turn || turn.renderedAt !== null) continue;
      this._dispatch({ type: "page.rendered", responseId, itemId: this._cut.has(span.id) ? null : span.id, at });
      this._onMark("first", at);
    }
  }
}
