/** The ring and the player: nothing lost, nothing doubled, nothing written outside, nothing allocated. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Cushion, FILLING, HELD, IDLE, PLAYING, Player, STARVED } from "../../ui/audio/player.js";
import { Ring } from "../../ui/audio/ring.js";
import { random } from "./random.mjs";

test("the ring gives back what was written, in order, for random sizes and capacities", () => {
  const dice = random(7);
  for (let round = 0; round < 200; round++) {
    const ring = new Ring(1 + dice.below(300));
    const model = [];
    let next = 0;
    for (let step = 0; step < 60; step++) {
      if (dice.below(2) === 0) {
        const block = Float32Array.from({ length: dice.below(400) }, () => next++ % 65536);
        const took = ring.write(block);
        assert.equal(took, Math.min(block.length, ring.capacity - model.length));
        model.push(...block.subarray(0, took));
        next -= block.length - took;
      } else {
        const canary = -1234.5;
        const out = new Float32Array(dice.below(400) + 8).fill(canary);
        const wanted = Math.max(0, out.length - 8);
        const took = ring.read(out.subarray(4, 4 + wanted));
        assert.equal(took, Math.min(wanted, model.length));
        assert.deepEqual(Array.from(out.subarray(4, 4 + took)), model.splice(0, took));
        assert.ok(out.subarray(0, 4).every((x) => x === canary) && out.subarray(4 + took).every((x) => x === canary));
      }
      assert.equal(ring.available, model.length);
      assert.equal(ring.free, ring.capacity - model.length);
    }
  }
});

test("the ring writes only inside its own memory", () => {
  const dice = random(11);
  const ring = new Ring(64);
  const guarded = new Float32Array(64 + 16).fill(77);
  ring._data = guarded.subarray(8, 72);
  for (let step = 0; step < 5000; step++) {
    ring.write(new Float32Array(dice.below(100)).fill(1));
    ring.read(new Float32Array(dice.below(100)));
  }
  assert.ok(guarded.subarray(0, 8).every((x) => x === 77) && guarded.subarray(72).every((x) => x === 77));
});

test("shift and read are the same, and an empty ring gives silence and counts nothing", () => {
  const ring = new Ring(3);
  assert.equal(ring.shift(), 0);
  assert.equal(ring.taken, 0);
  ring.write(Float32Array.of(1, 2, 3, 4));
  assert.deepEqual([ring.shift(), ring.shift(), ring.shift(), ring.shift()], [1, 2, 3, 0]);
  assert.equal(ring.taken, 3);
});

test("a ring of no samples is refused with a sentence", () => {
  for (const bad of [0, -1, 1.5, NaN]) assert.throws(() => new Ring(bad), /positive integer/);
});

/** Render `blocks` blocks and give all samples. */
function listen(player, blocks, size = 128) {
  const all = new Float32Array(blocks * size);
  for (let b = 0; b < blocks; b++) player.render(all.subarray(b * size, (b + 1) * size));
  return all;
}

test("sound starts once the cushion is full, or at once when the reply is already complete", () => {
  const player = new Player(24000, { cushion: new Cushion({ startMs: 40 }) });
  player.enqueue(new Float32Array(959).fill(0.5));
  listen(player, 2);
  assert.equal(player.state, FILLING);
  assert.equal(player.rendered, 0);
  player.enqueue(new Float32Array(1).fill(0.5));
  listen(player, 1);
  assert.equal(player.state, PLAYING);
  assert.equal(player.startedAt, 0);

  const short = new Player(24000);
  short.enqueue(new Float32Array(100).fill(0.5));
  short.end();
  listen(short, 2);
  assert.equal(short.rendered, 100);
  assert.equal(short.state, IDLE);
  assert.equal(short.underruns, 0);
});

test("an underrun widens the cushion, clean replies narrow it again", () => {
  const player = new Player(24000, { cushion: new Cushion({ startMs: 40, mostMs: 100, cleanReplies: 2 }) });
  for (let i = 0; i < 3; i++) {
    player.enqueue(new Float32Array(4800).fill(0.1));
    listen(player, 60);
    assert.equal(player.state, STARVED);
  }
  assert.equal(player.underruns, 3);
  assert.equal(player.cushion.ms, 100);
  for (let i = 0; i < 8; i++) {
    player.enqueue(new Float32Array(4800).fill(0.1));
    player.end();
    listen(player, 60);
    assert.equal(player.state, IDLE);
  }
  assert.equal(player.cushion.ms, 40);
});

test("an end that comes after the last sample was played ends the reply", () => {
  const player = new Player(24000);
  player.enqueue(new Float32Array(2400).fill(0.1));
  listen(player, 40);
  assert.equal(player.state, STARVED);
  player.end();
  assert.equal(player.state, IDLE);
  player.enqueue(new Float32Array(100).fill(0.1));
  player.end();
  listen(player, 2);
  assert.deepEqual([player.state, player.rendered], [IDLE, 2500]);
});

test("stop fades to silence, counts what was rendered and drops the rest", () => {
  const player = new Player(24000, { fallMs: 12 });
  player.enqueue(new Float32Array(24000).fill(0.8));
  listen(player, 20);
  const before = player.rendered;
  player.stop();
  const after = listen(player, 10);
  const fade = 288; // 12 ms
  assert.ok(Math.abs(player.rendered - before - fade) <= 1, "the fade is counted as heard");
  assert.equal(player.stops, 1);
  assert.equal(player.state, IDLE);
  assert.ok(after.subarray(fade + 256).every((x) => x === 0), "silent after the fade");
  for (let i = 1; i < after.length; i++) assert.ok(Math.abs(after[i] - after[i - 1]) < 0.02, "no click");
  player.enqueue(new Float32Array(2400).fill(0.3));
  player.end();
  assert.ok(Math.abs(listen(player, 4)[200] - 0.3) < 1e-6, "the next reply is at full level");
});

test("duck lowers and restores the level without losing a sample", () => {
  const ramp = Float32Array.from({ length: 9600 }, (_, i) => (i + 1) / 9600);
  const player = new Player(24000);
  player.enqueue(ramp);
  player.end();
  listen(player, 10);
  player.duck(0.2);
  const low = listen(player, 10);
  assert.ok(Math.abs(low[1279] - 0.2 * ramp[2559]) < 1e-6);
  player.duck(1);
  const high = listen(player, 10);
  assert.ok(Math.abs(high[1279] - ramp[3839]) < 1e-6);
});

test("at level 0 it falls silent, stays at its sample, and goes on from there", () => {
  const ramp = Float32Array.from({ length: 9600 }, (_, i) => (i + 1) / 9600);
  const player = new Player(24000);
  player.enqueue(ramp);
  player.end();
  listen(player, 10);
  player.duck(0.25);
  listen(player, 10);
  player.duck(0);
  listen(player, 3);
  const held = player.rendered;
  assert.equal(player.state, HELD);
  assert.ok(listen(player, 20).every((x) => x < 1e-3), "silence");
  assert.equal(player.rendered, held);
  player.duck(1);
  const on = listen(player, 10);
  assert.equal(player.state, PLAYING);
  assert.ok(Math.abs(on[1279] - ramp[held + 1279]) < 1e-6, "no sample was lost");
  player.duck(0);
  listen(player, 4);
  player.stop();
  assert.deepEqual([player.state, player.stops], [IDLE, 1]);
});

test("every sample handed over is rendered exactly once, whatever the sizes", () => {
  const dice = random(3);
  for (let round = 0; round < 40; round++) {
    const player = new Player(24000, { seconds: 2, riseMs: 0.001, cushion: new Cushion({ startMs: dice.below(80) + 1 }) });
    const heard = [];
    let handed = 0;
    for (let step = 0; step < 80; step++) {
      const block = Float32Array.from({ length: dice.below(700) }, (_, i) => 0.25 + ((handed + i) % 1000) / 2000);
      handed += player.enqueue(block);
      const before = player.rendered;
      const out = new Float32Array(128);
      player.render(out);
      heard.push(...out.subarray(0, player.rendered - before));
    }
    player.end();
    listen(player, 400);
    assert.equal(player.rendered, handed);
  }
});
