/** What runs in the home: the time that is left, what rang, and the tab's title. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { leftS, over, rangBetween, showLeft, title } from "../../ui/running.js";

const timer = { id: 1, kind: "timer", told: "pasta, 5 minutes", at: "", left_s: 300, paused: false };
const held = { ...timer, id: 2, left_s: 10, paused: true };
const alarm = { id: 3, kind: "alarm", told: "7:00 am", at: "", left_s: 20, paused: false };
const home = (...rings) => ({ rings, lists: [], at: 1000 });

test("time passes for what runs and stands still for what is paused", () => {
  const household = home(timer, held);
  assert.equal(leftS(timer, household, 61_000), 240);
  assert.equal(leftS(held, household, 61_000), 10);
});

test("a countdown is rounded up and names hours only when there are some", () => {
  assert.deepEqual([299.2, 60, 59.01, 0.4, -3, 3872].map(showLeft), ["5:00", "1:00", "1:00", "0:01", "0:00", "1:04:32"]);
});

test("what is over rings, and a paused one never is", () => {
  assert.deepEqual(over(home(timer, held, alarm), 21_000).map((ring) => ring.id), [3]);
  assert.deepEqual(over(null, 21_000), []);
});

test("the title counts the soonest timer down, then rings, then is the name again", () => {
  assert.equal(title(home(timer, held, alarm), [], "Ada", 1000), "5:00 · Ada");
  assert.equal(title(home(held, alarm), [], "Ada", 1000), "Ada", "an alarm is hours away, and no countdown");
  assert.equal(title(home(timer), [alarm], "Ada", 1000), "⏰ 7:00 am");
  assert.equal(title(null, [], "Ada", 1000), "Ada");
});

test("a ring that the server took away as it was due has rung, one removed by hand has not", () => {
  const ring = (id, left_s, paused = false) => ({ id, kind: "timer", told: `${id}`, at: "", left_s, paused });
  const before = { rings: [ring(1, 3), ring(2, 60), ring(3, 2, true), ring(4, 3)], lists: [], at: 1000 };
  const after = { rings: [ring(4, 0.1)], lists: [], at: 3000 };
  assert.deepEqual(rangBetween(before, after).map((one) => one.id), [1]);
  assert.deepEqual(rangBetween(null, after), []);
});
