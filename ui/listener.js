/** What the page hears: the microphone, which device it is, push to talk, and the pieces of sound on their way. */

import { MicrophoneTrouble, Microphone } from "./audio/capture.js";
import { Packets, WIRE_RATE, encodeBase64 } from "./audio/pcm.js";
import { InputClock } from "./clock.js";

/** A shorter press of push to talk says nothing. */
const SHORTEST_PUSH = WIRE_RATE / 5;
/** Mean square of a piece below which nobody spoke: 60 dB below the loudest there is. */
const SILENCE = 1e-6;
/** While a name is waited for, sound goes out ten times a second: each message costs the server more than its sound. */
const WAITING = WIRE_RATE / 10;

export class Listener {
  /**
   * @param {{
   *   dispatch: (event: any) => void, state: () => import("./session.js").State,
   *   sendAudio: (base64: string) => boolean, onClear: () => void,
   *   onYou: (power: number) => void, onDevices: () => void,
   * }} options `onClear`: what the server has of the sound is not wanted
   */
  constructor({ dispatch, state, sendAudio, onClear, onYou, onDevices }) {
    Object.assign(this, { _dispatch: dispatch, _state: state, _sendAudio: sendAudio, _onClear: onClear, _onYou: onYou, _onDevices: onDevices });
    /** @type {Microphone|null} */
    this._microphone = null;
    this.clock = new InputClock(WIRE_RATE);
    this._packets = new Packets(WAITING);
    this._samples = 0;
    this._heldFrom = 0;
    this._loudest = 0; // while the button is held
    this._pressed = false;
  }

  get open() {
    return this._microphone !== null;
  }

  /** Start or stop listening. */
  async toggle() {
    if (this._microphone) await this.close();
    else if (this._state().microphone.status !== "asking") await this._start(this._state().microphone.deviceId);
  }

  /** Go on after the system took the microphone away for a while. */
  async resume() {
    await this._microphone?.resume();
  }

  /** In mid-talk the old device listens until the new one does. @param {string} deviceId */
  async choose(deviceId) {
    if (this._microphone) await this._start(deviceId);
    else this._dispatch({ type: "page.microphone", deviceId });
  }

  /** @param {boolean} muted */
  mute(muted) {
    if (this._microphone) this._microphone.muted = muted;
    this._dispatch({ type: "page.microphone", muted });
  }

  /** Push to talk: pressed. @param {() => void} begin before the first sound counts */
  async press(begin) {
    this._pressed = true;
    if (!this._microphone) await this._start(this._state().microphone.deviceId);
    if (!this._pressed || !this._microphone || this._state().microphone.held) return; // let go while it opened
    begin();
    this._heldFrom = this._samples;
    this._loudest = 0;
    this._dispatch({ type: "page.microphone", held: true, hint: null });
  }

  /** Push to talk: let go. @returns {boolean} whether something was said */
  release() {
    const pressed = this._pressed;
    this._pressed = false;
    if (!this._state().microphone.held) {
      if (pressed && this._microphone) this._dispatch({ type: "page.microphone", hint: "short" });
      return false;
    }
    const short = this._samples - this._heldFrom < SHORTEST_PUSH;
    const hint = short ? "short" : this._loudest < SILENCE ? "silent" : null;
    this._dispatch({ type: "page.microphone", held: false, hint });
    if (hint !== null) this._onClear();
    return hint === null;
  }

  async close() {
    const microphone = this._microphone;
    this._microphone = null;
    this._packets.clear();
    this._dispatch({ type: "page.microphone", status: "off", held: false, paused: false, hint: null });
    this._onClear();
    await microphone?.close();
  }

  /** The link is gone, and with it the server's count of what it was sent. */
  forget() {
    this.clock.clear();
    this._packets.clear();
    this._samples = 0;
  }

  /** @param {string} deviceId */
  async _start(deviceId) {
    this._dispatch({ type: "page.microphone", status: this._microphone ? "on" : "asking", help: null });
    try {
      const microphone = await Microphone.open({
        deviceId,
        onPiece: (piece, track) => track === this._microphone?.track && this._piece(piece),
        onPaused: (paused, track) => track === this._microphone?.track && this._dispatch({ type: "page.microphone", paused }),
        onEnded: (why) => this._gone(why),
      });
      const before = this._microphone;
      microphone.muted = this._state().microphone.muted;
      this._microphone = microphone;
      this.clock.clear(); // another device, another line of time
      this._dispatch({ type: "page.microphone", status: "on", paused: false, label: microphone.label, deviceId: microphone.deviceId });
      await before?.close();
    } catch (error) {
      if (!(error instanceof MicrophoneTrouble)) throw error;
      this._dispatch({ type: "page.microphone", status: this._microphone ? "on" : "off", help: error.kind });
    }
    this._onDevices(); // with the permission they have names
  }

  /** @param {import("./audio/capture.js").Trouble} why */
  _gone(why) {
    this.close();
    this._dispatch({ type: "page.microphone", help: why });
  }

  /** @param {import("./audio/capture.js").Piece} piece */
  _piece(piece) {
    const now = performance.now();
    const { microphone, gate } = this._state();
    this._onYou(piece.power);
    if (!this._microphone || (microphone.mode === "push" && !microphone.held)) return;
    const packet = this._packets.add(piece.pcm, gate !== "waiting" || microphone.mode === "push");
    if (packet === null || !this._sendAudio(encodeBase64(packet))) return;
    this._loudest = Math.max(this._loudest, piece.power);
    this._samples += packet.length;
    this.clock.add(this._samples, now);
  }
}
