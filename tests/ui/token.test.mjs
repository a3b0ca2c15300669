/** The token: given in the address, kept on the device, and never one that a websocket would throw at. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ownToken } from "../../ui/token.js";

/** What the page takes for its token. @param {string} hash of the address @param {string} [before] kept on this device */
function taken(hash, before) {
  const kept = new Map(before === undefined ? [] : [["token", before]]);
  globalThis.location = { hash };
  globalThis.localStorage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value) };
  return [ownToken(), kept.get("token")];
}

test("a token in the address is kept, and goes before the one that was", () => {
  assert.deepEqual(taken("#token=a-long-secret"), ["a-long-secret", "a-long-secret"]);
  assert.deepEqual(taken("#token=a-long-secret", "an-older-one"), ["a-long-secret", "a-long-secret"]);
  assert.deepEqual(taken("", "an-older-one"), ["an-older-one", "an-older-one"]);
  assert.deepEqual(taken("#token=", "an-older-one"), ["an-older-one", "an-older-one"]);
  assert.deepEqual(taken(""), [null, undefined]);
});

test("one that a websocket cannot carry is asked for anew, instead of breaking the page for ever", () => {
  for (const token of ["two words", "half/base64==", "(brackets)", "schlüssel", ""]) assert.equal(taken("", token)[0], null, token);
});
