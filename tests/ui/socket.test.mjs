/** The wire: when it comes back by itself, and when it stays closed. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";

const heard = /** @type {Record<string, () => void>} */ ({});
const sockets = /** @type {any[]} */ ([]);
globalThis.addEventListener = /** @type {any} */ ((kind, listener) => { heard[kind] = listener; });
globalThis.document = /** @type {any} */ ({ visibilityState: "visible" });
globalThis.WebSocket = /** @type {any} */ (class {
  static OPEN = 1;

  constructor(url) {
    this.url = url;
    sockets.push(this);
  }

  close() {}
});
const { Wire } = await import("../../ui/socket.js");

const wired = () => {
  sockets.length = 0;
  const links = /** @type {string[]} */ ([]);
  const wire = new Wire({ url: (id) => `ws://x/${id}`, protocols: [], onEvent: () => {}, onLink: (link) => links.push(link) });
  wire.connect();
  return { wire, links };
};

test("a lost connection is opened again, one whose talk moved stays closed", () => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  for (const [code, link, again] of /** @type {[number, string, number][]} */ ([[1006, "lost", 2], [1000, "lost", 2], [1013, "full", 2], [4001, "moved", 1]])) {
    const { links } = wired();
    sockets[0].onclose({ code });
    mock.timers.tick(60_000);
    heard.online();
    heard.visibilitychange();
    assert.equal(sockets.length, again, String(code));
    assert.equal(links[1], link);
  }
  mock.timers.reset();
});

test("a server that is there is not waited for", () => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { wire, links } = wired();
  sockets[0].onclose({ code: 1013 });
  wire.hurry();
  wire.hurry();
  assert.deepEqual([sockets.length, links], [2, ["connecting", "full", "connecting"]]);
  mock.timers.tick(60_000);
  assert.equal(sockets.length, 2);
  mock.timers.reset();
});

test("a talk that moved begins anew when the person asks for another", () => {
  const { wire, links } = wired();
  sockets[0].onclose({ code: 4001 });
  wire.restart();
  assert.deepEqual([sockets.length, links], [2, ["connecting", "moved", "connecting"]]);
});
