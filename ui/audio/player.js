/**
 * What the loudspeaker does next, sample by sample: cushion, play, underrun, duck, fade and stop.
 *
 * Pure arithmetic over a Ring, so that it runs in Node as it runs in the worklet. `render` allocates nothing.
 * `rendered` counts samples that left the ring towards the speaker; silence and declick tails are not counted,
 * so it is the honest upper bound of what can have been heard.
 */

import { Ring } from "./ring.js";

export const IDLE = 0; // nothing queued
export const FILLING = 1; // waiting for the cushion
export const PLAYING = 2;
export const STARVED = 3; // ran dry in mid-reply; waits for a larger cushion
export const HELD = 4; // silent at a sample from which it goes on

export const STATE_NAMES = ["idle", "filling", "playing", "starved", "held"];

/** How much audio is kept in hand before the first sample, in milliseconds. Grows on underruns, shrinks slowly. */
export class Cushion {
  /** @param {{startMs?: number, mostMs?: number, cleanReplies?: number}} [options] */
  constructor({ startMs = 40, mostMs = 480, cleanReplies = 4 } = {}) {
    this.leastMs = startMs;
    this.mostMs = mostMs;
    this.ms = startMs;
    this._patience = cleanReplies;
    this._clean = 0;
    this._spoiled = false;
  }

  underrun() {
    this._spoiled = true;
    this._clean = 0;
    this.ms = Math.min(this.mostMs, this.ms * 2);
  }

  /** A reply was played to its end. */
  finished() {
    if (!this._spoiled) {
      this._clean += 1;
      if (this._clean >= this._patience) {
        this._clean = 0;
        this.ms = Math.max(this.leastMs, this.ms / 2);
      }
    }
    this._spoiled = false;
  }
}

export class Player {
  /**
   * @param {number} rate samples per second
   * @param {{seconds?: number, riseMs?: number, fallMs?: number, cushion?: Cushion}} [options]
   *   `seconds`: what the ring can hold
   */
  constructor(rate, { seconds = 10, riseMs = 3, fallMs = 12, cushion = new Cushion() } = {}) {
    this.rate = rate;
    this.ring = new Ring(Math.ceil(rate * seconds));
    this.cushion = cushion;
    this.state = IDLE;
    this.underruns = 0;
    this.stops = 0;
    /** Squares of all samples rendered so far, for the meter; an array, because a field may be boxed anew. */
    this.energy = new Float64Array(1);
    /** Index in the last block at which sound (re)started, or -1. */
    this.startedAt = -1;
    this._rise = 1000 / (rate * riseMs); // gain change per sample
    this._fall = 1000 / (rate * fallMs);
    this._gain = 0;
    this._target = 1;
    this._ended = true;
    this._stopping = false;
    this._last = 0; // last value sent out, decays into silence after the queue runs dry
    this._decay = Math.exp(-1000 / (rate * 1.5));
  }

  get rendered() {
    return this.ring.taken;
  }

  /**
   * @param {Float32Array} samples
   * @returns {number} samples accepted
   */
  enqueue(samples) {
    this._ended = false;
    if (this.state === IDLE) this.state = FILLING;
    return this.ring.write(samples);
  }

  /** Nothing more of this reply will come: play what is there, and running dry is no underrun. */
  end() {
    this._ended = true;
    if (this.ring.available > 0 || (this.state !== STARVED && this.state !== FILLING)) return;
    this.state = IDLE; // the end came after the last sample had been played
    this.cushion.finished();
  }

  /**
   * Lower the level while somebody may be interrupting; 1 restores it. At 0 it falls silent and stays at that sample.
   * @param {number} level 0..1
   */
  duck(level) {
    if (!this._stopping) this._target = level;
  }

  /** Fade out, then drop what is queued. `stops` counts up once it is silent. */
  stop() {
    this._stopping = true;
    this._target = 0;
    if (this.state !== PLAYING) this._silence();
  }

  _silence() {
    this.ring.clear();
    this.state = IDLE;
    this.stops += 1;
    this._stopping = false;
    this._ended = true;
    this._gain = 0;
    this._target = 1;
  }

  _ready() {
    const waiting = this.ring.available;
    return waiting > 0 && (this._ended || waiting >= (this.rate * this.cushion.ms) / 1000 || this.ring.free === 0);
  }

  /** Fill one block. @param {Float32Array} out mono */
  render(out) {
    this.startedAt = -1;
    let energy = 0;
    for (let i = 0; i < out.length; i++) {
      if (this.state === HELD && this._target > 0) {
        this.state = PLAYING;
        this.startedAt = i;
      }
      if ((this.state === FILLING || this.state === STARVED) && this._ready()) {
        this.state = PLAYING;
        this.startedAt = i;
        this._gain = 0;
      }
      let sample = 0;
      if (this.state === PLAYING && this.ring.available === 0) this._ranDry();
      if (this.state === PLAYING) {
        sample = this.ring.shift() * this._gain;
        this._ramp();
        if (this._gain === 0 && this._target === 0) this._fellSilent();
      } else {
        sample = this._last * this._decay;
        if (sample < 1e-5 && sample > -1e-5) sample = 0;
      }
      this._last = sample;
      out[i] = sample;
      energy += sample * sample;
    }
    this.energy[0] += energy;
  }

  _fellSilent() {
    if (this._stopping) this._silence();
    else this.state = HELD;
  }

  _ramp() {
    if (this._gain < this._target) this._gain = Math.min(this._target, this._gain + this._rise);
    else if (this._gain > this._target) this._gain = Math.max(this._target, this._gain - this._fall);
  }

  _ranDry() {
    if (this._stopping) {
      this._silence();
    } else if (this._ended) {
      this.state = IDLE;
      this.cushion.finished();
    } else {
      this.state = STARVED;
      this.underruns += 1;
      this.cushion.underrun();
    }
  }
}
