/** The token: given in the address, kept on the device, and never one that a websocket would throw at. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ownToken } from "../../ui/token.js";

/** What the page takes for its token, what it keeps, and the address then. @param {string} hash of the address @param {string} [before] kept on this device */
function taken(hash, before) {
  const kept = new Map(before === undefined ? [] : [["token", before]]);
  const place = { pathname: "/", search: "?a=1", hash };
  globalThis.location = place;
  globalThis.history = { replaceState: (_state, _title, url) => Object.assign(place, { hash: "", url }) };
  globalThis.localStorage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value) };
  return [ownToken(), kept.get("token"), place.url ?? hash];
}

test("a token in the address is kept, goes before the one that was, and leaves the address", () => {
  assert.deepEqual(taken("#token=a-long-secret"), ["a-long-secret", "a-long-secret", "/?a=1"]);
  assert.deepEqual(taken("#token=a-long-secret", "an-older-one"), ["a-long-secret", "a-long-secret", "/?a=1"]);
  assert.deepEqual(taken("", "an-older-one"), ["an-older-one", "an-older-one", ""]);
  assert.deepEqual(taken("#token=", "an-older-one"), ["an-older-one", "an-older-one", "#token="]);
  assert.deepEqual(taken(""), [null, undefined, ""]);
});

test("one that a websocket cannot carry is asked for anew, instead of breaking the page for ever", () => {
  for (const token of ["two words", "half/base64==", "(brackets)", "schlüssel", ""]) assert.equal(taken("", token)[0], null, token);
});
