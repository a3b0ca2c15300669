/**
 * Whose time is it: the server's clock seen from the page, and the page's clock seen from the microphone.
 *
 * Page time is `performance.now()`, in milliseconds. Nothing here reads a clock; readings are passed in.
 */

const KEPT = 16;

/** The server's clock by round trips: the shortest one tells most, and half of it is what we cannot know. */
export class ServerClock {
  constructor() {
    /** @type {{rtt: number, offset: number}[]} latest last */
    this._trips = [];
  }

  /** @param {number} sent page time of the ping @param {number} server its clock when it answered @param {number} received */
  add(sent, server, received) {
    const rtt = received - sent;
    if (!(rtt >= 0) || !Number.isFinite(server)) return;
    this._trips.push({ rtt, offset: server - (sent + received) / 2 });
    if (this._trips.length > KEPT) this._trips.shift();
  }

  clear() {
    this._trips = [];
  }

  get best() {
    let best = null;
    for (const trip of this._trips) if (best === null || trip.rtt < best.rtt) best = trip;
    return best;
  }

  /** ± milliseconds, or null before the first answer. */
  get uncertainty() {
    const best = this.best;
    return best === null ? null : best.rtt / 2;
  }

  /** @param {number} server its milliseconds @returns {number|null} page time */
  toPage(server) {
    const best = this.best;
    return best === null ? null : server - best.offset;
  }
}

/**
 * When a sample count was reached, from messages that each arrive a little late: the least late ones define
 * the line. Counts start over with each connection.
 */
export class InputClock {
  /** @param {number} rate samples per second @param {number} [kept] pieces looked back on for the line */
  constructor(rate, kept = 250) {
    this.rate = rate;
    this._kept = kept;
    /** @type {number[]} page time minus sample time, ms */
    this._offsets = [];
  }

  clear() {
    this._offsets = [];
  }

  /** @param {number} samples count after this piece @param {number} now page time of its arrival */
  add(samples, now) {
    const offset = now - (samples * 1000) / this.rate;
    const last = this._offsets.at(-1);
    if (last !== undefined && offset - last > 500) this.clear(); // sending paused in between: a new line
    this._offsets.push(offset);
    if (this._offsets.length > this._kept) this._offsets.shift();
  }

  /** @param {number} ms input time @returns {number|null} page time at which that sample was captured */
  at(ms) {
    if (this._offsets.length === 0) return null;
    let least = Infinity;
    for (const offset of this._offsets) if (offset < least) least = offset;
    return least + ms;
  }
}
