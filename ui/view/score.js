/**
 * Draws the score: the last seconds of both voices on one line of time, yours above, the reply below, so that the
 * silence between them can be seen; and the two level meters.
 */

import { meterLevel } from "../audio/pcm.js";
import { byId } from "./dom.js";

const SECONDS = 12;
const PER_SECOND = 25;

/** Height of a bar: nearer to what the eye expects of a waveform than the meter's decibels. @param {number} power mean square */
const height = (power) => Math.min(1, (3.2 * Math.sqrt(power)) ** 0.7);
const SLOTS = SECONDS * PER_SECOND;

export class Score {
  constructor() {
    this._canvas = byId("score");
    this._paint = /** @type {CanvasRenderingContext2D} */ (this._canvas.getContext("2d"));
    this._you = new Float32Array(SLOTS);
    this._reply = new Float32Array(SLOTS);
    /** @type {{at: number, kind: "asked"|"first"|"cut"}[]} */
    this._marks = [];
    this._slot = 0; // slot number since the page opened
    this._meterAt = 0;
    this._still = matchMedia("(prefers-reduced-motion: reduce)");
    this._dark = matchMedia("(prefers-color-scheme: dark)");
    this._ink = this._inks();
    this._dark.addEventListener("change", () => {
      this._ink = this._inks();
      this.draw(performance.now());
    });
    new ResizeObserver(() => this.draw(performance.now())).observe(this._canvas);
  }

  _inks() {
    const style = getComputedStyle(this._canvas);
    const ink = (/** @type {string} */ name) => style.getPropertyValue(name);
    return { you: ink("--score-you"), reply: ink("--score-reply"), rule: ink("--rule") };
  }

  /** Page time → slot number. @param {number} now */
  _advance(now) {
    const slot = Math.floor((now / 1000) * PER_SECOND);
    for (let i = Math.max(this._slot + 1, slot - SLOTS + 1); i <= slot; i++) {
      this._you[i % SLOTS] = 0;
      this._reply[i % SLOTS] = 0;
    }
    this._slot = Math.max(this._slot, slot);
    return slot % SLOTS;
  }

  /** @param {number} power mean square @param {number} now */
  you(power, now) {
    const at = this._advance(now);
    this._you[at] = Math.max(this._you[at], power);
  }

  /** @param {number} power @param {number} now */
  reply(power, now) {
    const at = this._advance(now);
    this._reply[at] = Math.max(this._reply[at], power);
  }

  /** @param {"asked"|"first"|"cut"} kind @param {number} at page time */
  mark(kind, at) {
    this._marks.push({ at, kind });
    if (this._marks.length > 60) this._marks.shift();
  }

  /** @param {number} now page time at the right edge */
  draw(now) {
    this._advance(now);
    const { clientWidth: width, clientHeight: tall } = this._canvas;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    if (this._canvas.width !== Math.round(width * scale) || this._canvas.height !== Math.round(tall * scale)) {
      this._canvas.width = Math.round(width * scale);
      this._canvas.height = Math.round(tall * scale);
    }
    const paint = this._paint;
    const ink = this._ink;
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, tall);
    const middle = Math.round(tall / 2);
    const step = width / SLOTS;
    const exact = this._still.matches ? this._slot : (now / 1000) * PER_SECOND;
    const x = (slot) => width - (exact - slot) * step;
    paint.fillStyle = ink.rule;
    paint.fillRect(0, middle, width, 1);
    for (let second = Math.ceil((exact - SLOTS) / PER_SECOND); second * PER_SECOND <= exact; second++) {
      paint.fillRect(Math.round(x(second * PER_SECOND)), middle - 3, 1, 7);
    }
    const bar = Math.max(1.2, step * 0.62);
    this._bars(ink.you, this._you, (slot, tall) => paint.roundRect(x(slot), middle - tall - 1, bar, tall, bar / 2), middle - 3);
    this._bars(ink.reply, this._reply, (slot, tall) => paint.roundRect(x(slot), middle + 2, bar, tall, bar / 2), middle - 3);
    this._drawMarks(paint, x, middle, tall, ink);
    this._meters(now);
  }

  /** One path for a whole voice: a fill for each bar costs the page more than all else it draws. */
  _bars(fill, levels, add, tallest) {
    this._paint.fillStyle = fill;
    this._paint.beginPath();
    for (let slot = Math.max(0, this._slot - SLOTS + 1); slot <= this._slot; slot++) {
      const tall = height(levels[slot % SLOTS]) * tallest;
      if (tall > 0.5) add(slot, tall);
    }
    this._paint.fill();
  }

  /** The wait from the committed turn to the first sound lies on the line; a cut stands where the reply fell silent. */
  _drawMarks(paint, x, middle, tall, ink) {
    for (const [i, mark] of this._marks.entries()) {
      const here = x((mark.at / 1000) * PER_SECOND);
      if (mark.kind === "cut") {
        paint.fillStyle = ink.you;
        paint.fillRect(here, middle + 2, 1.5, tall - middle - 4);
      }
      if (mark.kind !== "first") continue;
      const asked = this._marks.slice(0, i).findLast((one) => one.kind === "asked");
      if (!asked) continue;
      const from = x((asked.at / 1000) * PER_SECOND);
      if (here < 0) continue;
      paint.fillStyle = ink.reply;
      paint.fillRect(from, middle - 1, Math.max(1, here - from), 3);
    }
  }

  _meters(now) {
    if (now - this._meterAt < 66) return;
    this._meterAt = now;
    const slot = this._slot;
    for (const [id, levels] of /** @type {[string, Float32Array][]} */ ([["meter-you", this._you], ["meter-reply", this._reply]])) {
      let power = 0;
      for (let i = Math.max(0, slot - 4); i <= slot; i++) power = Math.max(power, levels[i % SLOTS]);
      const level = meterLevel(power);
      const element = byId(id);
      const percent = Math.round(level * 100);
      if (element.getAttribute("aria-valuenow") === String(percent)) continue;
      element.setAttribute("aria-valuenow", String(percent));
      element.style.setProperty("--level", String(level));
    }
  }
}

/** Runs the score while there is something to see, and lets the machine rest otherwise. @param {Score} score @param {() => boolean} lively */
export function animate(score, lively) {
  let last = -Infinity;
  let drawnAt = 0;
  const frame = (/** @type {number} */ now) => {
    if (lively()) last = now;
    const calm = now - last > SECONDS * 1000; // all has scrolled away
    if (!calm && now - drawnAt > 900 / PER_SECOND) { // a bar's width for each picture
      drawnAt = now;
      score.draw(now);
    }
    if (calm) setTimeout(() => requestAnimationFrame(frame), 200);
    else requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
