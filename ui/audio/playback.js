/** The loudspeaker seen from the page: items in, and at any time what was heard of them. */

import { HeardLog } from "./heard.js";
import { WIRE_RATE } from "./pcm.js";
import { HELD, IDLE, PLAYING } from "./player.js";

/** Samples kept on their way to the worklet; the rest waits here, so a long reply needs no long ring. */
const AHEAD = WIRE_RATE * 8;
const WAKING_MS = 600;
/** Two soft tones, a fifth apart. */
const NOTES_HZ = [660, 990];
const NOTE_S = 0.11;
const NOTE_LEVEL = 0.12;

/**
 * @typedef {{rendered: number, frame: number, startFrame: number, queued: number, state: number,
 *   underruns: number, stops: number, cushionMs: number, power: number}} Report
 */

export class Playback {
  /** @param {AudioContext} context @param {AudioWorkletNode} node @param {GainNode} gain @param {(report: Report) => void} onReport */
  constructor(context, node, gain, onReport) {
    this.context = context;
    this._gain = gain;
    this.log = new HeardLog();
    this.power = 0;
    this.state = IDLE;
    this._node = node;
    this._onReport = onReport;
    /** @type {Float32Array[]} */
    this._waiting = [];
    this._ended = true;
    this._sent = 0; // samples handed to the worklet since the last stop, as queue samples
    this._rendered = 0;
    this._stops = 0;
    this._silentFrame = -1; // from which frame on the sound is held; -1 while it is not
    /** @type {((frame: number) => void)|null} */
    this._stopped = null;
    node.port.onmessage = (message) => this._receive(message.data);
  }

  /** Worklets are kept from pages that are not in a secure context; such a page gets its replies as text. */
  static get possible() {
    return globalThis.isSecureContext && "audioWorklet" in AudioContext.prototype;
  }

  /** Raises what the browser raises if the worklet cannot be loaded. @param {(report: Report) => void} onReport @returns {Promise<Playback>} */
  static async open(onReport) {
    const context = new AudioContext({ sampleRate: WIRE_RATE, latencyHint: "interactive" });
    try {
      await context.audioWorklet.addModule(new URL("./playback.worklet.js", import.meta.url));
      const node = new AudioWorkletNode(context, "playback", { numberOfInputs: 0, outputChannelCount: [1] });
      const gain = new GainNode(context);
      node.connect(gain);
      gain.connect(context.destination);
      return new Playback(context, node, gain, onReport);
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  /** Of replies, beside the system's own. @param {number} volume 0..1 */
  set volume(volume) {
    this._gain.gain.setTargetAtTime(volume, this.context.currentTime, 0.01); // a jump would click
  }

  /** The sound that answers a name, beside what is queued and as loud as replies are. */
  chime() {
    NOTES_HZ.forEach((hertz, i) => {
      const at = this.context.currentTime + i * NOTE_S;
      const tone = new OscillatorNode(this.context, { frequency: hertz });
      const level = new GainNode(this.context, { gain: 0 });
      level.gain.setValueAtTime(0, at);
      level.gain.linearRampToValueAtTime(NOTE_LEVEL, at + NOTE_S / 2);
      level.gain.linearRampToValueAtTime(0, at + NOTE_S);
      tone.connect(level).connect(this._gain);
      tone.start(at);
      tone.stop(at + NOTE_S);
    });
  }

  /** Whether this browser can choose a loudspeaker for a page. */
  static get choosesSink() {
    return "setSinkId" in AudioContext.prototype;
  }

  /** Play on this device; empty: the system's own. One that is gone leaves the device before. @param {string} deviceId */
  async useSink(deviceId) {
    await /** @type {any} */ (this.context).setSinkId?.(deviceId).catch(() => {});
  }

  /**
   * Browsers keep a context silent until a gesture, and without any sound device some never start it: so the wait
   * is short, and nobody's turn hangs on it.
   * @returns {Promise<boolean>} whether sound comes out now
   */
  async wake() {
    if (!this.running) {
      const patience = new Promise((resolve) => setTimeout(resolve, WAKING_MS));
      await Promise.race([this.context.resume(), patience]);
    }
    return this.running;
  }

  get running() {
    return this.context.state === "running";
  }

  /** @param {string} id the item @param {Float32Array} samples */
  enqueue(id, samples) {
    this._ended = false;
    this.log.queue(id, samples.length);
    this._waiting.push(samples);
    this._feed();
  }

  /** The reply is complete. */
  end() {
    this._ended = true;
    this._feed();
  }

  /** @param {number} level 0..1 */
  duck(level) {
    this._node.port.postMessage({ do: "duck", level });
  }

  /**
   * Fade out and drop the rest.
   * @returns {Promise<number>} page time since which it is silent, which is earlier if it was held; `log` then says
   *   what was heard
   */
  stop() {
    this._waiting = [];
    this._ended = true;
    this._node.port.postMessage({ do: "stop" });
    return new Promise((resolve) => {
      const earlier = this._stopped;
      this._stopped = (frame) => {
        earlier?.(frame);
        resolve(this.pageTime(frame));
      };
    });
  }

  _feed() {
    if (this._stopped !== null) return; // what comes now belongs after the silence
    while (this._waiting.length > 0 && this._sent - this._rendered < AHEAD) {
      const samples = /** @type {Float32Array} */ (this._waiting.shift());
      this._sent += samples.length;
      this._node.port.postMessage({ do: "enqueue", samples });
    }
    if (this._ended && this._waiting.length === 0) this._node.port.postMessage({ do: "end" });
  }

  /** @param {Report} report */
  _receive(report) {
    this.power = report.power;
    if (report.state === HELD && this.state !== HELD) this._silentFrame = report.frame;
    else if (report.state === PLAYING) this._silentFrame = -1;
    this.state = report.state;
    this._rendered = report.rendered;
    this.log.report(report.frame, report.rendered, report.startFrame, report.state === PLAYING);
    if (report.stops !== this._stops) {
      this._stops = report.stops;
      this._sent = report.rendered;
      const done = this._stopped;
      this._stopped = null;
      this._settle(report.rendered);
      done?.(this._silentFrame < 0 ? report.frame : this._silentFrame);
      this._silentFrame = -1;
    }
    this._feed();
    this._onReport(report);
  }

  /** What was queued before the stop and not rendered is gone; what was queued since stays. @param {number} rendered */
  _settle(rendered) {
    const later = this._waiting.reduce((sum, samples) => sum + samples.length, 0);
    this.log.dropped(rendered, later);
  }

  /** The frame that leaves the speaker now: the context's clock less the output's latency. */
  heardFrame() {
    const { contextTime = 0, performanceTime = 0 } = this.context.getOutputTimestamp?.() ?? {};
    if (performanceTime > 0) {
      const since = Math.max(0, performance.now() - performanceTime);
      return Math.min(this.context.currentTime, contextTime + since / 1000) * WIRE_RATE;
    }
    const latency = (this.context.outputLatency || 0) + (this.context.baseLatency || 0);
    return Math.max(0, this.context.currentTime - latency) * WIRE_RATE;
  }

  /** @param {number} frame @returns {number} page time at which it leaves (or left) the speaker */
  pageTime(frame) {
    return performance.now() + ((frame - this.heardFrame()) / WIRE_RATE) * 1000;
  }

  /** Milliseconds of an item that have left the speaker by now. @param {string} id */
  heardMs(id) {
    return (this.log.heard(id, this.heardFrame()) / WIRE_RATE) * 1000;
  }

  /** Milliseconds of an item handed to the device: all of it will have been heard in a moment. @param {string} id */
  renderedMs(id) {
    return (this.log.handed(id) / WIRE_RATE) * 1000;
  }

  get idle() {
    return this.state === IDLE && this._waiting.length === 0;
  }
}
