/** Clocks, waterfalls and heard positions: pure arithmetic with exact answers. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { HeardLog } from "../../ui/audio/heard.js";
import { InputClock, ServerClock } from "../../ui/clock.js";
import { partLabel, partMeaning, quantile, rowsOf, showMs, summary, waterfall } from "../../ui/timeline.js";
import { random } from "./random.mjs";

test("the shortest round trip sets the server's clock, and the truth lies within its uncertainty", () => {
  const dice = random(1);
  for (let round = 0; round < 100; round++) {
    const offset = dice.unit() * 1e6 - 5e5;
    const clock = new ServerClock();
    let now = 0;
    for (let i = 0; i < 16; i++) {
      now += 1000;
      const there = dice.unit() * 20;
      const back = dice.unit() * 20;
      clock.add(now, now + there + offset, now + there + back);
    }
    const error = Math.abs(clock.toPage(5000 + offset) - 5000);
    assert.ok(error <= clock.uncertainty + 1e-6, `${error} > ${clock.uncertainty}`);
  }
});

test("a clock nobody answered knows nothing, and nonsense is not learnt", () => {
  const clock = new ServerClock();
  clock.add(10, NaN, 12);
  clock.add(10, 5, 8);
  assert.equal(clock.toPage(3), null);
  assert.equal(clock.uncertainty, null);
});

test("the input clock finds the capture time under late messages, and a new line after a pause", () => {
  const dice = random(2);
  const clock = new InputClock(24000);
  for (let i = 1; i <= 400; i++) clock.add(i * 480, 1000 + i * 20 + (i % 7 === 0 ? 0.2 : 3 + dice.unit() * 30));
  assert.ok(Math.abs(clock.at(4000) - 5000.2) < 1e-6);
  for (let i = 401; i <= 500; i++) clock.add(i * 480, 4000 + i * 20 + 1);
  assert.ok(Math.abs(clock.at(9000) - 13001) < 1e-6);
});

const CLOCK = { toPage: (ms) => ms - 5000, uncertainty: 0.4 };
const TIMELINE = { started_ms: 6000, parts: [{ name: "turn_wait", ms: 200 }, { name: "prefill", ms: 30.5 }, { name: "rows", ms: 80 }] };

test("server, link and player parts follow without a gap and sum to the total", () => {
  const dice = random(4);
  for (let round = 0; round < 500; round++) {
    const parts = Array.from({ length: dice.below(8) }, (_, i) => ({ name: `p${i}`, ms: dice.unit() * 100 }));
    const received = dice.unit() < 0.1 ? null : 1000 + dice.unit() * 600;
    const rendered = received === null || dice.unit() < 0.1 ? null : received + dice.unit() * 80;
    const fall = waterfall({ started_ms: 6000, parts }, CLOCK, received, rendered);
    let at = 0;
    for (const part of fall.parts) {
      assert.ok(Math.abs(part.startMs - at) < 1e-9 && part.ms >= 0);
      at += part.ms;
    }
    assert.ok(Math.abs(at - fall.totalMs) < 1e-9);
    if (rendered !== null) assert.ok(Math.abs(fall.startedAt + fall.totalMs - rendered) < 1e-9);
  }
});

test("rows fold what is too small to see and what follows itself, and still sum to the total", () => {
  const dice = random(8);
  for (let round = 0; round < 300; round++) {
    const parts = Array.from({ length: dice.below(12) }, () => ({ name: dice.pick(["a", "b", "player", "transport"]), ms: dice.unit() ** 4 * 300 }));
    const fall = waterfall({ started_ms: 6000, parts }, CLOCK, 2500, 2540);
    assert.ok(fall.parts.filter((part) => part.name === "player").length === 1, "the server's guess at the player gives way");
    const rows = rowsOf(fall.parts, fall.totalMs);
    assert.ok(Math.abs(rows.reduce((sum, row) => sum + row.ms, 0) - fall.totalMs) < 1e-9);
    assert.ok(rows.every((row, i) => i === 0 || row.name !== rows[i - 1].name));
  }
});

test("sound cannot arrive before it was sent: the clocks give way, not the sum", () => {
  const fall = waterfall(TIMELINE, CLOCK, 1310.2, 1350);
  assert.equal(fall.parts.find((part) => part.name === "transport").ms, 0);
  assert.ok(Math.abs(fall.totalMs - (310.5 + 39.8)) < 1e-9);
});

test("quantiles interpolate; nothing has no median", () => {
  assert.equal(quantile([], 0.5), null);
  assert.equal(quantile([3], 0.99), 3);
  assert.equal(quantile([4, 1, 3, 2], 0.5), 2.5);
  assert.ok(Math.abs(quantile(Array.from({ length: 101 }, (_, i) => i), 0.9) - 90) < 1e-9);
  assert.deepEqual(summary([null, undefined, NaN, 7]), { n: 1, median: 7, p90: 7, p99: 7 });
});

test("milliseconds are written with as many figures as mean something", () => {
  assert.deepEqual([null, 0, 0.04, 9.94, 9.96, 99.4, 99.6, 1234.4, 12345].map(showMs), ["–", "0.0 ms", "< 0.1 ms", "9.9 ms", "10 ms", "99 ms", "100 ms", "1234 ms", "12.3 s"]);
  assert.equal(partLabel("tts_prefill"), "Voice reads");
  assert.equal(partLabel("some_new_part"), "Some new part");
  assert.equal(partLabel("constructor"), "Constructor");
  assert.match(partMeaning("tts_prefill"), /the voice reads/);
  assert.equal(partMeaning("some_new_part"), "");
});

test("heard positions equal a sample-by-sample simulation with underruns, cuts and several items", () => {
  const dice = random(6);
  for (let round = 0; round < 60; round++) {
    const log = new HeardLog();
    const truth = []; // per frame: item of the sample rendered there, or null
    const queue = [];
    let frame = 0;
    let rendered = 0;
    let quiet = true;
    for (let step = 0; step < 120; step++) {
      if (dice.below(4) === 0) {
        const id = `item${Math.floor(step / 15)}`;
        const count = 1 + dice.below(900);
        log.queue(id, count);
        for (let i = 0; i < count; i++) queue.push(id);
      }
      if (dice.below(25) === 0) {
        queue.length = 0;
        log.dropped(rendered);
        quiet = true;
      }
      let start = -1;
      for (let i = 0; i < 128; i++) {
        if (queue.length > 0) {
          if (quiet) start = frame;
          quiet = false;
          truth.push(queue.shift());
          rendered += 1;
        } else {
          quiet = true;
          truth.push(null);
        }
        frame += 1;
      }
      log.report(frame, rendered, start, queue.length > 0);
      const seen = log.current(frame);
      if (seen === null) continue;
      const want = truth.filter((id) => id === seen).length;
      assert.equal(log.heard(seen, frame), want, "at a report the count is exact");
      const back = frame - 64 - dice.below(60);
      const then = truth.slice(0, back).filter((id) => id === seen).length;
      assert.ok(Math.abs(log.heard(seen, back) - then) <= 128, "between reports it is off by less than one interval");
      assert.ok(Math.abs(log.startFrame(seen) - truth.indexOf(seen)) <= 128);
    }
  }
});
