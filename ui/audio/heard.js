/**
 * Which samples of which item have left the speaker, from the playback worklet's sparse reports.
 *
 * Two counts meet here. *Queue samples* number everything handed to the player since it opened; each item owns
 * a span of them. *Frames* are the audio context's clock. A report says: at this frame, so many queue samples
 * had been rendered. Between two reports the count grows with the clock, so a straight line is exact while
 * sound plays and off by less than one report interval around an underrun.
 */

const KEPT_REPORTS = 256; // about 11 s of playing

/** @typedef {{id: string, from: number, to: number, startFrame: number}} Span */

export class HeardLog {
  constructor() {
    /** @type {Span[]} in queue order */
    this.spans = [];
    this.queued = 0;
    this.rendered = 0;
    this._playing = false;
    /** @type {{frame: number, rendered: number}[]} oldest first */
    this._reports = [];
  }

  /** @param {string} id the item @param {number} count samples handed to the player */
  queue(id, count) {
    const last = this.spans.at(-1);
    if (last && last.id === id) last.to += count;
    else this.spans.push({ id, from: this.queued, to: this.queued + count, startFrame: -1 });
    this.queued += count;
    if (this.spans.length > 64) this.spans.shift();
  }

  /**
   * @param {number} frame @param {number} rendered
   * @param {number} startFrame frame at which sound began inside this report's interval, or -1
   * @param {boolean} playing whether the count goes on growing after this report
   */
  report(frame, rendered, startFrame, playing) {
    this.rendered = rendered;
    this._playing = playing;
    const before = this._reports.at(-1)?.rendered ?? 0;
    if (startFrame >= 0) this._push(startFrame, before);
    this._push(frame, rendered);
    for (const span of this.spans) {
      if (span.startFrame < 0 && span.from < rendered) span.startFrame = this.frameOf(span.from);
    }
  }

  _push(frame, rendered) {
    const last = this._reports.at(-1);
    if (last && frame < last.frame) return;
    this._reports.push({ frame, rendered });
    if (this._reports.length > KEPT_REPORTS) this._reports.shift();
  }

  /**
   * The player dropped everything beyond `rendered`, except the last `kept` samples queued, which had not been
   * handed to it yet and now follow at once.
   * @param {number} rendered @param {number} [kept]
   */
  dropped(rendered, kept = 0) {
    const edge = this.queued - kept;
    const shift = edge - rendered;
    for (const span of this.spans) {
      if (span.from >= edge) {
        span.from -= shift;
        span.to -= shift;
      } else {
        span.to = Math.min(span.to, rendered);
      }
    }
    this.spans = this.spans.filter((span) => span.to > span.from);
    this.queued = rendered + kept;
  }

  /** Queue samples rendered up to a frame. @param {number} frame */
  renderedAt(frame) {
    const reports = this._reports;
    let i = reports.length - 1;
    while (i >= 0 && reports[i].frame > frame) i -= 1;
    if (i < 0) return reports.length === 0 ? 0 : Math.max(0, reports[0].rendered - (reports[0].frame - frame));
    const latest = i === reports.length - 1;
    const roof = latest ? (this._playing ? this.queued : reports[i].rendered) : reports[i + 1].rendered;
    return Math.min(reports[i].rendered + (frame - reports[i].frame), Math.max(reports[i].rendered, roof));
  }

  /** The frame at which a queue sample was rendered. @param {number} sample */
  frameOf(sample) {
    const reports = this._reports;
    let i = reports.length - 1;
    while (i > 0 && reports[i - 1].rendered > sample) i -= 1;
    if (i < 0) return -1;
    return reports[i].frame - (reports[i].rendered - sample);
  }

  /** Samples of an item that had left the speaker at a frame. @param {string} id @param {number} frame */
  heard(id, frame) {
    return this._upTo(id, this.renderedAt(frame));
  }

  /** Samples of an item handed to the device so far, all of which will leave the speaker. @param {string} id */
  handed(id) {
    return this._upTo(id, this.rendered);
  }

  /** @param {string} id @param {number} rendered */
  _upTo(id, rendered) {
    let sum = 0;
    for (const span of this.spans) {
      if (span.id === id) sum += Math.max(0, Math.min(span.to, rendered) - span.from);
    }
    return sum;
  }

  /** Samples of an item queued so far. @param {string} id */
  length(id) {
    let sum = 0;
    for (const span of this.spans) if (span.id === id) sum += span.to - span.from;
    return sum;
  }

  /** The item whose sound is leaving the speaker, or the last one that did. @param {number} frame @returns {string|null} */
  current(frame) {
    const rendered = this.renderedAt(frame);
    let id = null;
    for (const span of this.spans) if (span.from < rendered) id = span.id;
    return id;
  }

  /** First frame of an item's sound, or -1 while none was rendered. @param {string} id */
  startFrame(id) {
    return this.spans.find((span) => span.id === id)?.startFrame ?? -1;
  }
}
