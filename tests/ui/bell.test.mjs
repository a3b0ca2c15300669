/** What rang is told once, only while the page is hidden, and only where a click has asked for it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Bell } from "../../ui/bell.js";

const ring = (id) => ({ id, kind: "timer", told: `pasta ${id}`, at: "", left_s: 0, paused: false });

/** A browser that answers `answer` when it is asked. */
function browser(answer) {
  const told = [];
  class Sign {
    static permission = "default";
    static asked = 0;
    static async requestPermission() {
      Sign.asked += 1;
      Sign.permission = answer;
    }
    constructor(title, { tag }) {
      told.push(`${title} ${tag}`);
    }
  }
  const page = { hidden: true };
  return { told, page, Sign, bell: new Bell({ sign: Sign, hidden: () => page.hidden }) };
}

test("nothing is asked or told before a click", async () => {
  const { told, Sign, bell } = browser("granted");
  bell.follow([ring(1)]);
  assert.deepEqual([told, Sign.asked, bell.mayAsk], [[], 0, true]);
  await bell.ask();
  await bell.ask();
  assert.deepEqual([Sign.asked, bell.mayAsk], [1, false]);
});

test("each ring is told once, and only while the page is hidden", async () => {
  const { told, page, bell } = browser("granted");
  await bell.ask();
  const [one, two] = [ring(1), ring(2)];
  bell.follow([one]);
  bell.follow([one]);
  page.hidden = false;
  bell.follow([one, two]);
  page.hidden = true;
  bell.follow([one, two]);
  assert.deepEqual(told, ["⏰ pasta 1 ring-1"]);
});

test("a refusal is kept to, and a page without notifications does without", async () => {
  const { told, bell } = browser("denied");
  await bell.ask();
  bell.follow([ring(1)]);
  const none = new Bell({ sign: undefined, hidden: () => true });
  await none.ask();
  none.follow([ring(1)]);
  assert.deepEqual([told, bell.mayAsk, none.mayAsk], [[], false, false]);
});

test("a browser that has notifications by name alone goes on without, and asks no more", () => {
  class Sign {
    static permission = "granted";
    constructor() {
      throw new TypeError("Illegal constructor");
    }
  }
  const bell = new Bell({ sign: Sign, hidden: () => true });
  bell.follow([ring(1), ring(2)]);
  Sign.permission = "default";
  assert.equal(bell.mayAsk, false);
});
