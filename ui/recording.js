/**
 * A recording for a voice: collected, measured while it grows, told in words, and made a WAV file. No DOM.
 *
 * The measures are those of `assistant/tts/recording.py`, which decides; here they are told while there is time.
 */

import { WIRE_RATE } from "./audio/pcm.js";

export const WANTED_S = 10;
export const SHORTEST_S = 3;
const SPOKEN_S = 2;
const QUIET_DB = -42;
const PAUSE_DB = 25;
const LOUD_PIECES = 5;
const CLIPPED_AT = 32735; // 0.999 of full scale
const CLIPPED_SHARE = 0.001;
const SILENT = 33; // 0.001 of it
const PIECE_S = 0.02;
const LATELY = 25; // pieces: half a second

const decibel = (/** @type {number} */ power) => 10 * Math.log10(power + 1e-12);

export class Recording {
  constructor() {
    this._pieces = /** @type {Int16Array[]} */ ([]);
    this._levels = /** @type {number[]} */ ([]);
    this._clipped = 0;
    this._peak = 0;
    this._clippedAt = -Infinity; // the latest piece that is
  }

  /** @param {Int16Array} pcm 20 ms, copied @param {number} power mean square */
  add(pcm, power) {
    this._pieces.push(pcm.slice());
    this._levels.push(decibel(power));
    for (const sample of pcm) {
      const size = Math.abs(sample);
      if (size >= CLIPPED_AT) [this._clipped, this._clippedAt] = [this._clipped + 1, this._pieces.length];
      if (size > this._peak) this._peak = size;
    }
  }

  get seconds() {
    return this._pieces.length * PIECE_S;
  }

  /** How loud it is now, in words. @returns {"" | "too quiet" | "good" | "too loud: it clips"} empty: nobody speaks yet */
  get level() {
    const loudest = Math.max(...this._levels.slice(-LATELY));
    if (this._tooLoud || this._pieces.length - this._clippedAt < LATELY) return "too loud: it clips";
    if (loudest > QUIET_DB) return "good";
    return loudest > QUIET_DB - PAUSE_DB ? "too quiet" : "";
  }

  get _tooLoud() {
    return this._clipped > CLIPPED_SHARE * this._pieces.length * PIECE_S * WIRE_RATE;
  }

  /** Why this is no voice, or null. @returns {string|null} */
  get trouble() {
    if (this.seconds < SHORTEST_S) return `That is too short: ${this.seconds.toFixed(1)} s. Read for at least ${SHORTEST_S} s; ten are best.`;
    if (this._peak < SILENT) return "Nothing was recorded. Is the right microphone chosen, and not muted?";
    if (this._tooLoud) return "That is too loud. Speak from further away, or turn the input down.";
    const loud = this._levels.toSorted((a, b) => b - a)[LOUD_PIECES - 1];
    if (loud < QUIET_DB) return "That is too quiet. Come closer to the microphone, or turn the input up.";
    const spoken = this._levels.filter((level) => level > loud - PAUSE_DB).length * PIECE_S;
    return spoken < SPOKEN_S ? `Only ${spoken.toFixed(1)} s of that is speech. Keep reading until the time is over.` : null;
  }

  /** 16 bits, mono, 24 kHz. @returns {Blob} */
  wav() {
    const size = this._pieces.reduce((sum, one) => sum + one.byteLength, 0);
    const head = new DataView(new ArrayBuffer(44));
    const word = (/** @type {number} */ at, /** @type {string} */ text) => [...text].forEach((c, i) => head.setUint8(at + i, c.charCodeAt(0)));
    word(0, "RIFF");
    head.setUint32(4, 36 + size, true);
    word(8, "WAVEfmt ");
    head.setUint32(16, 16, true);
    head.setUint16(20, 1, true);
    head.setUint16(22, 1, true);
    head.setUint32(24, WIRE_RATE, true);
    head.setUint32(28, WIRE_RATE * 2, true);
    head.setUint16(32, 2, true);
    head.setUint16(34, 16, true);
    word(36, "data");
    head.setUint32(40, size, true);
    return new Blob([head, ...this._pieces.map((one) => /** @type {BlobPart} */ (one))], { type: "audio/wav" });
  }
}
