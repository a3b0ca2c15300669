/** The microphone's worklet: device rate in, 20 ms pieces of 24 kHz PCM16 out. `process` allocates nothing. */

import { Resampler, WIRE_RATE, toInt16 } from "./pcm.js";

const PIECE = WIRE_RATE / 50;

class CaptureProcessor extends AudioWorkletProcessor {
  constructor() {
    super();
    this._resampler = new Resampler(sampleRate, WIRE_RATE);
    this._mono = new Float32Array(4096);
    this._made = new Float32Array(this._resampler.most(4096));
    this._fill = 0;
    this._power = 0;
    // Posting clones this object outside the JavaScript heap, so one object and one array serve for life.
    this._piece = { pcm: new Int16Array(PIECE), frame: 0, power: 0 };
  }

  process(inputs) {
    const channels = inputs[0];
    if (channels.length === 0) return true;
    const length = channels[0].length;
    const mono = this._mono;
    for (let i = 0; i < length; i++) {
      let sum = 0;
      for (let c = 0; c < channels.length; c++) sum += channels[c][i];
      mono[i] = sum / channels.length;
    }
    this._collect(this._resampler.process(mono, this._made, length), currentFrame + length);
    return true;
  }

  /** @param {number} count samples just made @param {number} frame device frame after the last input sample */
  _collect(count, frame) {
    const piece = this._piece;
    for (let i = 0; i < count; i++) {
      piece.pcm[this._fill] = toInt16(this._made[i]);
      this._power += this._made[i] * this._made[i];
      this._fill += 1;
      if (this._fill === PIECE) {
        piece.frame = frame;
        piece.power = this._power / PIECE;
        this.port.postMessage(piece);
        this._fill = 0;
        this._power = 0;
      }
    }
  }
}

registerProcessor("capture", CaptureProcessor);
