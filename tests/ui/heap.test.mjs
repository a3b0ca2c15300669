/** The worklets' `process` allocates nothing: thousands of blocks leave the heap where it was. */

import assert from "node:assert/strict";
import { test } from "node:test";

const processors = {};
let posted = 0;
globalThis.sampleRate = 24000;
globalThis.currentFrame = 0;
globalThis.AudioWorkletProcessor = class {
  constructor() {
    this.port = { onmessage: null, postMessage: () => { posted += 1; } };
  }
};
globalThis.registerProcessor = (name, type) => { processors[name] = type; };
await import("../../ui/audio/playback.worklet.js");
globalThis.sampleRate = 48000;
await import("../../ui/audio/capture.worklet.js");

/** Bytes that some thousand blocks allocate: the least of several tries, because compiling in between allocates too. */
function allocated(work, blocks) {
  let least = Infinity;
  for (let attempt = 0; attempt < 8 && least > MEASURING; attempt++) {
    work(blocks);
    globalThis.gc();
    const before = process.memoryUsage().heapUsed;
    work(blocks);
    least = Math.min(least, process.memoryUsage().heapUsed - before);
  }
  return least;
}

// Measuring costs a few hundred bytes; one number boxed per block would cost 64,000 or more.
const BLOCKS = 4000;
const MEASURING = 8000;

test("playback: starving and playing allocate nothing", () => {
  const player = new processors.playback();
  const outputs = [[new Float32Array(128)]];
  const noInputs = [];
  const samples = new Float32Array(128).fill(0.1);
  const order = { data: { do: "enqueue", samples } };
  const grew = allocated((blocks) => {
    for (let i = 0; i < blocks; i++) {
      if (i % 64 < 48) player.port.onmessage(order);
      player.process(noInputs, outputs);
      globalThis.currentFrame += 128;
    }
  }, BLOCKS);
  assert.ok(player._player.underruns > 3, "the check must cross underruns");
  assert.ok(posted > 100, "the check must cross reports");
  assert.ok(grew < MEASURING, `${grew} bytes in ${BLOCKS} blocks`);
});

test("capture: resampling and posting allocate nothing", () => {
  const capture = new processors.capture();
  const inputs = [[new Float32Array(128).fill(0.2), new Float32Array(128).fill(0.1)]];
  const before = posted;
  const grew = allocated((blocks) => {
    for (let i = 0; i < blocks; i++) {
      capture.process(inputs);
      globalThis.currentFrame += 128;
    }
  }, BLOCKS);
  assert.ok(posted - before > 500);
  assert.ok(grew < MEASURING, `${grew} bytes in ${BLOCKS} blocks`);
});

test("the check itself sees an allocation of one small object per block", () => {
  const kept = [];
  const grew = allocated((blocks) => {
    kept.length = 0;
    for (let i = 0; i < blocks; i++) kept.push({ i, x: i / 3 });
  }, BLOCKS);
  assert.ok(grew > MEASURING, `${grew} bytes`);
});
