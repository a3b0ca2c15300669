/**
 * Keeps the screen of a phone on while a talk runs: one that goes dark takes the microphone along.
 *
 * The system lets go by itself when the page is hidden, and may refuse, with a low battery for instance: the talk goes on
 * all the same, and it is asked again for the next one.
 */
export class Awake {
  /** @param {Pick<WakeLock, "request">|undefined} system not there in every browser, and on https pages only */
  constructor(system) {
    this._system = system;
    this._wanted = false;
    /** @type {Pick<WakeLockSentinel, "release">|null} */
    this._lock = null;
  }

  /** @param {boolean} wanted a talk runs, and the page is seen */
  async follow(wanted) {
    if (wanted === this._wanted || this._system === undefined) return;
    this._wanted = wanted;
    const held = this._lock;
    this._lock = null;
    await held?.release();
    if (!wanted) return;
    const lock = await this._system.request("screen").catch(() => null);
    if (this._wanted && this._lock === null) this._lock = lock;
    else await lock?.release(); // the talk was over before the system had answered
  }
}
