import assert from "node:assert/strict";
import { test } from "node:test";

import { Recording } from "../../ui/recording.js";

const PIECE = 480;

/** @param {number} seconds @param {number} gain @param {(i: number) => number} [shape] of a piece */
function recorded(seconds, gain, shape = () => 1) {
  const made = new Recording();
  for (let i = 0; i < Math.round(seconds * 50); i++) {
    const pcm = Int16Array.from({ length: PIECE }, (_, n) => Math.max(-32768, Math.min(32767, Math.round(32767 * gain * shape(i) * Math.sin(n / 6)))));
    made.add(pcm, pcm.reduce((sum, x) => sum + (x / 32768) ** 2, 0) / PIECE);
  }
  return made;
}

test("what is good is kept, what is not is told in words", () => {
  assert.equal(recorded(10, 0.2).trouble, null);
  assert.equal(recorded(10, 0.2, (i) => (i % 4 < 2 ? 1 : 0.001)).trouble, null);
  for (const [made, said] of [
    [recorded(2, 0.2), "too short: 2.0 s"], [recorded(10, 0), "Nothing was recorded"], [recorded(10, 9), "too loud"],
    [recorded(10, 0.004), "too quiet"], [recorded(10, 0.2, (i) => (i < 50 ? 1 : 0.001)), "1.0 s of that is speech"],
  ]) assert.match(made.trouble, new RegExp(said));
});

test("the level is told while it grows", () => {
  assert.deepEqual([recorded(1, 0.2), recorded(1, 0.004), recorded(1, 0), recorded(1, 9)].map((one) => one.level), ["good", "too quiet", "", "too loud: it clips"]);
  const once = (/** @type {number} */ at) => recorded(8, 0.2, (i) => (i === at ? 5.1 : 1));
  assert.deepEqual([once(399), once(375), once(374)].map((one) => one.level), ["too loud: it clips", "too loud: it clips", "good"]);
  assert.equal(once(399).trouble, null);
});

test("the file is a WAV of all that came, each piece copied", async () => {
  const made = new Recording();
  const pcm = new Int16Array(PIECE).fill(7);
  made.add(pcm, 1e-3);
  pcm.fill(9);
  made.add(pcm, 1e-3);
  const view = new DataView(await made.wav().arrayBuffer());
  assert.equal(view.byteLength, 44 + 4 * PIECE);
  assert.deepEqual([view.getUint32(24, true), view.getUint32(40, true), view.getInt16(44, true), view.getInt16(44 + 2 * PIECE, true)], [24000, 4 * PIECE, 7, 9]);
});
