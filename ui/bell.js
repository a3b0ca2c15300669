/** Tells what rang while the page is hidden, as the browser's notification. It may only once a click has asked for it. */

export class Bell {
  /** @param {{sign?: typeof Notification, hidden?: () => boolean}} [browser] without a sign, as on pages that are not secure, nothing is told */
  constructor({ sign = globalThis.Notification, hidden = () => document.hidden } = {}) {
    this._sign = sign;
    this._hidden = hidden;
    this._told = new WeakSet();
  }

  /** Whether there is a permission to ask for. */
  get mayAsk() {
    return this._sign?.permission === "default";
  }

  /** On a click: browsers ignore it otherwise. */
  async ask() {
    if (this.mayAsk) await this._sign.requestPermission();
  }

  /** Each ring is told once. @param {import("./running.js").Ring[]} rang that nobody has seen to yet */
  follow(rang) {
    for (const ring of rang) {
      if (this._told.has(ring)) continue;
      this._told.add(ring);
      if (this._hidden() && this._sign?.permission === "granted") this._tell(ring);
    }
  }

  /** @param {import("./running.js").Ring} ring */
  _tell(ring) {
    try {
      const note = new this._sign(`⏰ ${ring.told}`, { tag: `ring-${ring.id}`, requireInteraction: true });
      note.onclick = () => {
        focus();
        note.close();
      };
    } catch {
      this._sign = undefined; // Chrome on Android has the name alone: there only a service worker may notify
    }
  }
}
