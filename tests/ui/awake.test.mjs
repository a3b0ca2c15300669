/** The screen stays on while a talk runs and no longer, whatever the order of answers. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Awake } from "../../ui/awake.js";

/** A system that counts the locks that are held; `answer` lets a request through. */
function system() {
  const one = { held: 0, asked: 0, answer: [], refuse: false };
  one.request = () => {
    one.asked += 1;
    if (one.refuse) return Promise.reject(new Error("battery"));
    return new Promise((resolve) => one.answer.push(() => {
      one.held += 1;
      resolve({ release: async () => { one.held -= 1; } });
    }));
  };
  return one;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("one lock for a talk, and none after it", async () => {
  const screen = system();
  const awake = new Awake(screen);
  for (const wanted of [false, true, true, true]) awake.follow(wanted);
  await settled();
  screen.answer.shift()();
  await settled();
  assert.deepEqual([screen.asked, screen.held], [1, 1]);
  await awake.follow(false);
  assert.equal(screen.held, 0);
});

test("a talk that ends before the system answers leaves no lock", async () => {
  const screen = system();
  const awake = new Awake(screen);
  awake.follow(true);
  await settled();
  awake.follow(false);
  screen.answer.shift()();
  await settled();
  assert.equal(screen.held, 0);
});

test("two answers for two talks in a row hold one lock", async () => {
  const screen = system();
  const awake = new Awake(screen);
  for (const wanted of [true, false, true]) awake.follow(wanted);
  await settled();
  for (const answer of screen.answer) answer();
  await settled();
  assert.equal(screen.held, 1);
  await awake.follow(false);
  assert.equal(screen.held, 0);
});

test("a refusal, and a browser without locks, disturb nothing", async () => {
  const screen = system();
  screen.refuse = true;
  const awake = new Awake(screen);
  await awake.follow(true);
  screen.refuse = false;
  await awake.follow(true);
  assert.equal(screen.asked, 1, "not again and again in one talk");
  await awake.follow(false);
  awake.follow(true);
  await settled();
  assert.equal(screen.asked, 2);
  await new Awake(undefined).follow(true);
});
