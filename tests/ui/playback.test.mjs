/** The loudspeaker seen from the page, with a worklet and a clock of the test's own. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Playback } from "../../ui/audio/playback.js";
import { HELD, IDLE, PLAYING } from "../../ui/audio/player.js";

const RATE = 24000;
const REPORT = { rendered: 0, startFrame: -1, queued: 0, underruns: 0, stops: 0, cushionMs: 40, power: 0 };

/** A playback whose output has no latency, and the page time of the frame that sounds now. */
function opened() {
  const context = { currentTime: 0, outputLatency: 0, baseLatency: 0 };
  const node = { port: { postMessage() {}, onmessage: /** @type {any} */ (null) } };
  const playback = new Playback(/** @type {any} */ (context), /** @type {any} */ (node), /** @type {any} */ ({}), () => {});
  const report = (/** @type {object} */ fields) => node.port.onmessage({ data: { ...REPORT, ...fields } });
  return { playback, report, context };
}

/** Milliseconds between the frame that sounds now and the moment since which a stopped reply is silent. */
async function silentFor(/** @type {(report: (fields: object) => void) => void} */ before) {
  const { playback, report, context } = opened();
  playback.enqueue("a", new Float32Array(RATE));
  report({ frame: 2400, rendered: 2400, state: PLAYING });
  before(report);
  context.currentTime = 1;
  const stopped = playback.stop();
  report({ frame: 24000, rendered: 6000, state: IDLE, stops: 1 });
  return Math.round(performance.now() - (await stopped));
}

test("a reply that sounds is silent when it has stopped", async () => {
  assert.ok((await silentFor(() => {})) < 50);
});

test("one that was held has been silent since then", async () => {
  const silent = await silentFor((report) => {
    report({ frame: 6000, rendered: 6000, state: HELD });
    report({ frame: 9000, rendered: 6000, state: HELD });
  });
  assert.ok(silent >= 750 && silent < 800, `${silent} ms`);
});

test("one that was held and went on is silent when it has stopped", async () => {
  const silent = await silentFor((report) => {
    report({ frame: 3000, rendered: 3000, state: HELD });
    report({ frame: 6000, rendered: 5000, state: PLAYING });
  });
  assert.ok(silent < 50, `${silent} ms`);
});
