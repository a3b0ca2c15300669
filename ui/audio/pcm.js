/**
 * Sample arithmetic at the page's borders: base64 ↔ PCM16 ↔ float, loudness, and streaming resampling.
 *
 * The wire carries signed 16-bit little-endian mono at 24 kHz; the audio graph carries floats in [-1, 1].
 */

export const WIRE_RATE = 24000;

/** @param {Int16Array} samples @returns {string} base64 of little-endian bytes */
export function encodeBase64(samples) {
  const bytes = new Uint8Array(samples.length * 2);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < samples.length; i++) view.setInt16(i * 2, samples[i], true);
  let binary = "";
  const step = 8192; // String.fromCharCode takes its characters as arguments; keep their number modest
  for (let at = 0; at < bytes.length; at += step) {
    binary += String.fromCharCode.apply(null, /** @type {any} */ (bytes.subarray(at, at + step)));
  }
  return btoa(binary);
}

/**
 * @param {string} text base64 of PCM16
 * @returns {Float32Array} samples in [-1, 1); an odd trailing byte is dropped
 */
export function decodeBase64(text) {
  const binary = atob(text);
  const out = new Float32Array(binary.length >> 1);
  for (let i = 0; i < out.length; i++) {
    const value = binary.charCodeAt(2 * i) | (binary.charCodeAt(2 * i + 1) << 8);
    out[i] = (value > 32767 ? value - 65536 : value) / 32768;
  }
  return out;
}

/** Round one float to 16 bits, clipping. @param {number} sample @returns {number} */
export function toInt16(sample) {
  const value = Math.round(sample * 32768);
  return value > 32767 ? 32767 : value < -32768 ? -32768 : value;
}

/** Loudness for a meter: mean square → 0 (−60 dBFS or less) … 1 (0 dBFS). @param {number} power */
export function meterLevel(power) {
  if (!(power > 1e-6)) return 0;
  return Math.min(1, 1 + (10 * Math.log10(power)) / 60);
}

/** Pieces of sound on their way out: joined where nobody has to be heard at once. */
export class Packets {
  /** @param {number} samples in a packet at most, if it is a multiple of a piece's */
  constructor(samples) {
    this._most = samples;
    this.clear();
  }

  clear() {
    /** @type {Int16Array[]} */
    this._pieces = [];
    this._samples = 0;
  }

  /** @param {Int16Array} piece @param {boolean} now @returns {Int16Array|null} the packet, if it is full or `now` */
  add(piece, now) {
    this._pieces.push(piece);
    this._samples += piece.length;
    if (!now && this._samples < this._most) return null;
    const packet = new Int16Array(this._samples);
    let at = 0;
    for (const one of this._pieces) {
      packet.set(one, at);
      at += one.length;
    }
    this.clear();
    return packet;
  }
}

/** @param {number} a @param {number} b @returns {number} */
function gcd(a, b) {
  return b === 0 ? a : gcd(b, a % b);
}

/** Modified Bessel function I0, for the Kaiser window. @param {number} x */
function bessel(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; k < 40; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/**
 * Streaming conversion between two sampling rates: a windowed-sinc filter in polyphase form, exact for the
 * rational ratio, equal for every way of cutting the input into blocks. `process` allocates nothing.
 *
 * Delay: `delay` input samples, constant over frequency. Pass band to 0.9 of the lower Nyquist frequency.
 */
export class Resampler {
  /** @param {number} from @param {number} to samples per second, integers */
  constructor(from, to) {
    if (!Number.isInteger(from) || !Number.isInteger(to) || from < 1 || to < 1) {
      throw new RangeError(`Resampler takes whole sampling rates above zero, not ${from} and ${to}.`);
    }
    const divisor = gcd(from, to);
    this.up = to / divisor;
    this.down = from / divisor;
    const squeeze = Math.max(1, from / to); // going down, the filter gets longer in input samples
    this._half = from === to ? 0 : Math.ceil(24 * squeeze);
    this._taps = 2 * this._half + 1;
    this.delay = this._half;
    this._table = this._design((0.95 * Math.min(from, to)) / from);
    this._history = new Float32Array(this._taps);
    this._at = 0; // newest sample in the history ring
    this._phase = 0; // position of the next output sample after the newest input sample, in 1/up input samples
  }

  /** One row of taps per phase. @param {number} cutoff as a share of the input's Nyquist frequency */
  _design(cutoff) {
    const table = new Float32Array(this.up * this._taps);
    const beta = 9;
    for (let phase = 0; phase < this.up; phase++) {
      let sum = 0;
      for (let tap = 0; tap < this._taps; tap++) {
        const x = tap - this._half - phase / this.up;
        const edge = x / (this._half + 1);
        const window = Math.abs(edge) >= 1 ? 0 : bessel(beta * Math.sqrt(1 - edge * edge)) / bessel(beta);
        const angle = Math.PI * cutoff * x;
        const value = window * (x === 0 ? 1 : Math.sin(angle) / angle);
        table[phase * this._taps + tap] = value;
        sum += value;
      }
      for (let tap = 0; tap < this._taps; tap++) table[phase * this._taps + tap] /= sum; // 1 at zero frequency
    }
    return table;
  }

  /** Most output samples that `count` input samples can give. @param {number} count */
  most(count) {
    return Math.ceil((count * this.up) / this.down) + 1;
  }

  /**
   * @param {Float32Array} input
   * @param {Float32Array} output at least `most(count)` long
   * @param {number} [count] input samples to take
   * @returns {number} output samples written
   */
  process(input, output, count = input.length) {
    const taps = this._taps;
    let made = 0;
    for (let i = 0; i < count; i++) {
      this._at = this._at + 1 === taps ? 0 : this._at + 1;
      this._history[this._at] = input[i];
      while (this._phase < this.up) {
        const row = this._phase * taps;
        let sum = 0;
        let index = this._at + 1 === taps ? 0 : this._at + 1; // oldest sample
        for (let tap = 0; tap < taps; tap++) {
          sum += this._history[index] * this._table[row + tap];
          index = index + 1 === taps ? 0 : index + 1;
        }
        output[made] = sum;
        made += 1;
        this._phase += this.down;
      }
      this._phase -= this.up;
    }
    return made;
  }
}
