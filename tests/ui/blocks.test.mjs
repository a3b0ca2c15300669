/** Code in a reply is set apart from its words, whole or as it comes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { blocks } from "../../ui/blocks.js";

const code = (text) => ({ code: true, text });
const words = (text) => ({ code: false, text });

test("code stands apart from words and fences go", () => {
  assert.deepEqual(blocks("Look:\n```python\nx = 1\n\ny\n```\nDone."), [words("Look:"), code("x = 1\n\ny"), words("Done.")]);
  assert.deepEqual(blocks("~~~\na\n```\n~~~"), [code("a\n```")]);
  assert.deepEqual(blocks("- so:\n  ```\n  b\n  ```"), [words("- so:"), code("  b")]);
});

test("an open fence is code to the end, and inline code is words", () => {
  assert.deepEqual(blocks("Look:\n```\nx"), [words("Look:"), code("x")]);
  assert.deepEqual(blocks("```x``` is inline"), [words("```x``` is inline")]);
  assert.deepEqual(blocks("plain\ntwo"), [words("plain\ntwo")]);
  assert.deepEqual(blocks(""), []);
});
