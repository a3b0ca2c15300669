/** The loudspeaker's worklet: a Player behind a message port. `process` allocates nothing. */

import { Player } from "./player.js";

const REPORT_EVERY = 6; // blocks of 128 samples: 32 ms at 24 kHz

class PlaybackProcessor extends AudioWorkletProcessor {
  constructor() {
    super();
    this._player = new Player(sampleRate);
    this._blocks = 0;
    this._energy = 0; // of the player at the last report
    this._state = this._player.state;
    this._stops = 0;
    // Posting clones this object outside the JavaScript heap, so one object serves for life.
    this._report = {
      rendered: 0, frame: 0, startFrame: -1, queued: 0, free: this._player.ring.free,
      state: 0, underruns: 0, stops: 0, cushionMs: 0, power: 0,
    };
    this.port.onmessage = (message) => this._receive(message.data);
  }

  /** @param {{do: string, samples?: Float32Array, level?: number}} order */
  _receive(order) {
    if (order.do === "enqueue") this._player.enqueue(/** @type {Float32Array} */ (order.samples));
    else if (order.do === "end") this._player.end();
    else if (order.do === "duck") this._player.duck(order.level ?? 1);
    else if (order.do === "stop") this._player.stop();
  }

  process(_inputs, outputs) {
    const output = outputs[0][0]; // one channel: the node is made so
    const player = this._player;
    player.render(output);
    this._blocks += 1;
    const changed = player.state !== this._state || player.stops !== this._stops || player.startedAt >= 0;
    if (changed || (this._blocks >= REPORT_EVERY && player.state !== 0)) this._tell(player, output.length);
    return true;
  }

  _tell(player, length) {
    const report = this._report;
    report.rendered = player.rendered;
    report.frame = currentFrame + length; // the frame after the last one rendered
    report.startFrame = player.startedAt < 0 ? -1 : currentFrame + player.startedAt;
    report.queued = player.ring.available;
    report.free = player.ring.free;
    report.state = player.state;
    report.underruns = player.underruns;
    report.stops = player.stops;
    report.cushionMs = player.cushion.ms;
    report.power = (player.energy[0] - this._energy) / (this._blocks * length);
    this._energy = player.energy[0];
    this.port.postMessage(report);
    this._blocks = 0;
    this._state = player.state;
    this._stops = player.stops;
  }
}

registerProcessor("playback", PlaybackProcessor);
