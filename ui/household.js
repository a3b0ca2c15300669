/** The timers, alarms, reminders, lists and notes of the home: asked for, followed and changed over HTTP. */

import { over } from "./running.js";

const PATH = "/v1/household";
/** Another page or program may change it meanwhile. */
const LOOK_MS = 20_000;

export class Household {
  /**
   * @param {import("./asker.js").Asker} asker
   * @param {{dispatch: (event: any) => void, state: () => import("./session.js").State}} page
   */
  constructor(asker, { dispatch, state }) {
    this._asker = asker;
    this._dispatch = dispatch;
    this._state = state;
    this._there = true; // some servers keep nothing
    this._looked = -Infinity;
  }

  /** Ask what there is now. */
  async look() {
    if (!this._there) return;
    this._looked = performance.now();
    try {
      this._take(await this._asker.json("GET", PATH));
    } catch (error) {
      this._there = ![404, 501].includes(/** @type {any} */ (error).status);
    }
  }

  /** Once a second: what is over has rung. */
  tick() {
    const now = performance.now();
    const rang = over(this._state().household, now);
    if (rang.length > 0) this._dispatch({ type: "page.rang", rings: rang });
    if (rang.length > 0 || (!document.hidden && now - this._looked > LOOK_MS && this._state().link === "open")) this.look();
  }

  /** Somebody is here: what rang has been noticed. */
  noticed() {
    if (this._state().rang.length > 0) this._dispatch({ type: "page.noticed" });
  }

  /** Stop, remove or empty it. @param {number|string} key @param {string} told what is said of it */
  async remove(key, told) {
    await this._change("DELETE", `${PATH}/${encodeURIComponent(key)}`, undefined, told);
  }

  /** @param {number} id of a timer @param {{paused?: boolean, add_s?: number}} change */
  async adjust(id, change) {
    await this._change("POST", `${PATH}/${id}`, change);
  }

  /** @param {any} removed as the server told it */
  async putBack(removed) {
    await this._change("POST", PATH, { removed });
  }

  /** @param {string} method @param {string} path @param {any} [body] @param {string} [told] */
  async _change(method, path, body, told) {
    try {
      const answer = await this._asker.json(method, path, body);
      this._take(answer);
      if (told) this._dispatch({ type: "page.notice", text: told, offer: { label: "Put back", what: "put back", removed: answer.removed } });
    } catch (error) {
      this._dispatch({ type: "page.notice", text: /** @type {Error} */ (error).message });
      this.look();
    }
  }

  /** @param {any} answer */
  _take({ rings, lists }) {
    this._dispatch({ type: "page.household", household: { rings, lists, at: performance.now() } });
  }
}
