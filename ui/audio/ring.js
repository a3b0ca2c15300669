/**
 * A ring of samples with one writer and one reader, which allocates nothing after birth.
 *
 * Positions are counted from the first sample ever written, as plain numbers (exact up to 2^53), so
 * "how many were written, how many were taken" never wraps and needs no second bookkeeping.
 */

export class Ring {
  /** @param {number} capacity samples held at most; a positive integer */
  constructor(capacity) {
    if (!Number.isInteger(capacity) || capacity < 1) {
      throw new RangeError(`Ring capacity is ${capacity}; it must be a positive integer number of samples.`);
    }
    this.capacity = capacity;
    this.written = 0;
    this.taken = 0;
    this._data = new Float32Array(capacity);
    this._head = 0; // where the next sample is read
    this._tail = 0; // where the next sample is written
  }

  get available() {
    return this.written - this.taken;
  }

  get free() {
    return this.capacity - (this.written - this.taken);
  }

  /**
   * Append as much of `source` as fits.
   * @param {Float32Array} source
   * @param {number} [offset] first sample of `source` to take
   * @returns {number} samples accepted; fewer than offered when the ring is full
   */
  write(source, offset = 0) {
    const n = Math.max(0, Math.min(source.length - offset, this.free));
    let tail = this._tail;
    for (let i = 0; i < n; i++) {
      this._data[tail] = source[offset + i];
      tail = tail + 1 === this.capacity ? 0 : tail + 1;
    }
    this._tail = tail;
    this.written += n;
    return n;
  }

  /** Take one sample. The caller has checked `available`; an empty ring gives silence and counts nothing. */
  shift() {
    if (this.written === this.taken) return 0;
    const sample = this._data[this._head];
    this._head = this._head + 1 === this.capacity ? 0 : this._head + 1;
    this.taken += 1;
    return sample;
  }

  /**
   * Take up to `count` samples into `target`; the rest of `target` is left as it was.
   * @param {Float32Array} target
   * @param {number} [count]
   * @returns {number} samples taken
   */
  read(target, count = target.length) {
    const n = Math.min(count, target.length, this.available);
    let head = this._head;
    for (let i = 0; i < n; i++) {
      target[i] = this._data[head];
      head = head + 1 === this.capacity ? 0 : head + 1;
    }
    this._head = head;
    this.taken += n;
    return n;
  }

  /** Drop everything unread. `written` falls back to `taken`: dropped samples were never heard. */
  clear() {
    this.written = this.taken;
    this._tail = this._head;
  }
}
