/** The reducer: talks written as event lists, and random orders of events that must never break it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { exported, measure, preparedNote } from "../../ui/figures.js";
import { EMPTY, phase, reduce, unheardOf } from "../../ui/session.js";
import { spokenLength } from "../../ui/spoken.js";
import { random } from "./random.mjs";

const freeze = (value) => {
  if (value && typeof value === "object" && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
};
const run = (events, state = EMPTY) => events.reduce((s, e) => freeze(reduce(s, freeze(e))), state);

const OPEN = [
  { type: "session.created", session: { id: "s", model: "tiny", assistant: { persona: "ada" } } },
  { type: "conversation.created", conversation: { id: "conv_1" } },
];
const SPOKEN = [
  { type: "input_audio_buffer.speech_started", item_id: "u1", audio_start_ms: 100 },
  { type: "assistant.transcript", item_id: "u1", text: "count to" },
  { type: "assistant.transcript", item_id: "u1", text: "count to ten", stable: 5 },
  { type: "input_audio_buffer.speech_stopped", item_id: "u1", audio_end_ms: 900 },
  { type: "input_audio_buffer.committed", item_id: "u1", at: 1000 },
  { type: "conversation.item.added", item: { id: "u1", type: "message", role: "user", status: "completed", content: [{ type: "input_audio" }] } },
  { type: "conversation.item.done", item: { id: "u1", type: "message", role: "user", status: "completed", content: [{ type: "input_audio" }] } },
  { type: "conversation.item.input_audio_transcription.completed", item_id: "u1", transcript: "Count to ten." },
];
const WORDS = ["One, ", "two, ", "three, ", "four."];
const REPLY = [
  { type: "response.created", response: { id: "r1", status: "in_progress" } },
  { type: "response.output_item.added", response_id: "r1", item: { id: "a1", type: "message", role: "assistant", status: "in_progress", content: [] } },
  { type: "conversation.item.added", previous_item_id: "u1", item: { id: "a1", type: "message", role: "assistant", status: "in_progress", content: [] } },
  ...WORDS.flatMap((delta, i) => [
    { type: "response.output_audio_transcript.delta", item_id: "a1", delta, start_time: i * 0.5 },
    { type: "page.audio", itemId: "a1", responseId: "r1", ms: 500, at: 1200 + i },
  ]),
];
const DONE = [
  { type: "response.output_audio.done", item_id: "a1" },
  { type: "response.output_audio_transcript.done", item_id: "a1", transcript: WORDS.join("") },
  { type: "conversation.item.done", item: { id: "a1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_audio", transcript: WORDS.join("") }] } },
  { type: "response.done", response: { id: "r1", status: "completed" } },
];

test("a spoken turn: partial words, the final transcript, the reply, the times", () => {
  let state = run([...OPEN, ...SPOKEN.slice(0, 3)]);
  assert.equal(phase(state), "hearing");
  assert.deepEqual([state.items[0].text, state.items[0].partial, state.items[0].stable], ["count to ten", true, 5]);
  state = run(SPOKEN.slice(3), state);
  assert.deepEqual([state.items[0].text, state.items[0].partial], ["Count to ten.", false]);
  state = run(REPLY, state);
  assert.equal(phase(state), "thinking");
  state = run([...DONE, { type: "page.rendered", responseId: "r1", itemId: "a1", at: 1260 }], state);
  assert.equal(phase(state), "speaking", "it thinks no longer once the first sound is out");
  state = run([{ type: "page.playing", itemId: null }], state);
  assert.deepEqual(state.items.map((item) => item.id), ["u1", "a1"]);
  const [turn] = state.turns;
  assert.deepEqual([turn.askedAt, turn.receivedAt, turn.renderedAt, turn.status, turn.userItemId], [1000, 1200, 1260, "completed", "u1"]);
  assert.equal(phase(state), "idle");
});

test("a question about a call is settled by its answer, by the call itself, or by the next reply", () => {
  const ask = (n) => [
    { type: "response.created", response: { id: `q${n}` } },
    { type: "assistant.tool_asked", response_id: `q${n}`, approval_request_id: `m${n}`, name: "write_file", server: "files", arguments: "{}" },
    { type: "response.done", response: { id: `q${n}`, status: "completed" } },
  ];
  const begun = [{ type: "response.created", response: { id: "next" } }, { type: "assistant.tool_begun", response_id: "next", name: "write_file", server: "files", arguments: "{}" }];
  const statuses = (events) => run([...OPEN, ...events]).items.filter((item) => item.kind === "asked").map((item) => item.status);
  assert.deepEqual(statuses(ask(1)), ["waiting"]);
  assert.deepEqual(statuses([...ask(1), { type: "page.answered", id: "m1", allowed: false }]), ["refused"]);
  assert.deepEqual(statuses([...ask(1), begun[0]]), ["refused"], "anything else that is said leaves it undone");
  assert.deepEqual(statuses([...ask(1), ...begun]), ["allowed"], "a spoken yes");
  assert.deepEqual(statuses([...ask(1), ...ask(2), ...begun]), ["refused", "allowed"]);
});

test("what is kept stands in the talk, and what is taken back stands there as taken back", () => {
  const kept = (state) => state.items.filter((item) => item.kind === "kept").map((item) => [item.text, item.status]);
  let state = run([...OPEN, ...SPOKEN, ...REPLY, { type: "assistant.remembered", response_id: "r1", added: ["I like tea"], removed: [] }, ...DONE]);
  assert.deepEqual(kept(state), [["I like tea", "completed"]]);
  const again = { type: "assistant.remembered", response_id: "r1", added: ["I like tea"], removed: [] };
  assert.equal(kept(run([again], state)).length, 1, "told again to a page that comes back");
  const item = (id, role, previous) => ({ type: "conversation.item.added", item: { id, type: "message", role, content: [] }, previous_item_id: previous });
  const loaded = run([...OPEN, item("u1", "user"), again, item("a1", "assistant", "u1")]);
  assert.deepEqual(loaded.items.map((one) => one.kind), ["message", "kept", "message"], "where it stood before");
  assert.deepEqual(kept(run([{ type: "page.takenOut", text: "I like tea" }], state)), [["I like tea", "gone"]]);
  state = run([{ type: "conversation.item.deleted", item_id: "a1" }], state);
  assert.deepEqual(kept(state), [], "it goes with its turn");
  state = run([{ type: "assistant.remembered", response_id: "", added: [], removed: ["I like tea"] }, { type: "conversation.item.deleted", item_id: "u1" }], state);
  assert.deepEqual(kept(state), [["I like tea", "gone"]]);
});

test("what cannot be done in a language is said once, and no more when another is chosen", () => {
  const german = { type: "assistant.language", language: "de", limits: ["The ears here hear English only."] };
  const state = run([...OPEN, german]);
  assert.deepEqual([state.language, state.notices.map((one) => one.text)], ["de", german.limits]);
  const english = run([{ type: "assistant.language", language: "en", limits: [] }], state);
  assert.deepEqual([english.language, english.notices], ["en", []]);
});

test("words appear when their sound begins", () => {
  const state = run([...OPEN, ...SPOKEN, ...REPLY, ...DONE]);
  const at = (ms) => WORDS.join("").slice(0, spokenLength({ ...state.items[1], heardMs: ms }, true)).trim();
  assert.equal(at(0), "");
  assert.equal(at(1), "One,");
  assert.equal(at(600), "One, two,");
  assert.equal(at(1999), "One, two, three, four.");
  assert.equal(spokenLength(state.items[1], false), WORDS.join("").length, "without a speaker nothing is hidden");
});

test("after a cut the unheard words are those the server says were not heard", () => {
  const cut = [
    { type: "page.cut", itemId: "a1", ms: 700, yieldMs: 180 },
    { type: "conversation.item.truncated", item_id: "a1", content_index: 0, audio_end_ms: 700, transcript: "One, two," },
  ];
  const state = run([...OPEN, ...SPOKEN, ...REPLY, ...cut]);
  const item = state.items[1];
  assert.equal(item.text.slice(0, spokenLength(item, true)), "One, two,");
  assert.equal(state.turns[0].yieldMs, 180);
  const before = run([...OPEN, ...SPOKEN, ...REPLY, cut[0]]).items[1];
  assert.equal(before.text.slice(0, spokenLength(before, true)), "One, two,", "until the server answers, the marks decide");
  const reworded = { ...item, cut: { ms: 700, transcript: "one two" } };
  assert.equal(item.text.slice(0, spokenLength(reworded, true)), "One, two, ");
});

test("a cough leaves no trace: its item goes when the reply resumes", () => {
  const state = run([...OPEN, ...SPOKEN, ...REPLY,
    { type: "input_audio_buffer.speech_started", item_id: "u2", audio_start_ms: 1500 },
    { type: "assistant.duck", response_id: "r1", item_id: "a1" },
    { type: "assistant.resume", response_id: "r1", item_id: "a1" }]);
  assert.deepEqual(state.items.map((item) => item.id), ["u1", "a1"]);
  assert.equal(state.hearing, false);
});

const SHOT = { url: "data:image/jpeg;base64,", width: 64, height: 48, frame: true };
const SEEN = (id, shown) => ({ type: "assistant.frame", item_id: id, shown });

test("a frame is drawn when the model has it, before the words that it goes with, and no longer when it has it not", () => {
  const frame = { type: "page.shown", itemId: "f1", picture: SHOT, at: 1 };
  const echo = { type: "conversation.item.added", item: { id: "f1", type: "message", role: "user", status: "completed", content: [], pictures: [] } };
  const [began, ...rest] = SPOKEN;
  let state = run([...OPEN, began, frame, echo]);
  assert.deepEqual(state.items.map((item) => [item.id, item.shown]), [["u1", true], ["f1", false]]);
  state = run([SEEN("f1", true), ...rest], state);
  assert.deepEqual(state.items.map((item) => [item.id, item.shown]), [["f1", true], ["u1", true]]);
  assert.equal(state.items[0].pictures[0].url, SHOT.url);
  assert.equal(run([SEEN("f1", false)], state).items[0].shown, false);
});

test("of frames that never reached the model the newest alone is kept, and of a talk that goes on sizes come first", () => {
  const state = run([...OPEN, ...["f1", "f2", "f3"].map((itemId) => ({ type: "page.shown", itemId, picture: SHOT, at: 1 }))]);
  assert.deepEqual(state.items.map((item) => item.id), ["f3"]);
  const wire = { id: "p", type: "message", role: "user", status: "completed", content: [], pictures: [{ digest: "d", width: 64, height: 48, frame: false }] };
  const told = run([...OPEN, { type: "conversation.item.added", item: wire }]);
  assert.deepEqual(told.items[0].pictures, [{ url: null, width: 64, height: 48, frame: false }]);
  const whole = { ...wire, pictures: [{ ...wire.pictures[0], image_url: SHOT.url }] };
  const fetched = run([{ type: "conversation.item.retrieved", item: whole }, { type: "conversation.item.done", item: wire }], told);
  assert.equal(fetched.items[0].pictures[0].url, SHOT.url);
});

test("what was forgotten is shown no more: words, struck-out words, and the tools of its replies", () => {
  const texts = (/** @type {any} */ state) => state.items.map((/** @type {any} */ item) => item.text);
  let state = run([...OPEN, ...SPOKEN, ...REPLY, { type: "assistant.remembered", response_id: "r1", added: ["I like tea"], removed: [] },
    { type: "conversation.item.truncated", item_id: "a1", content_index: 0, audio_end_ms: 100, transcript: "I" },
    { type: "assistant.tool", response_id: "r0", name: "time", arguments: "{}", output: "noon", ms: 1 }, ...DONE]);
  state = run([{ type: "page.unheard", words: { a1: "I like tea", a0: "else" } }], state);
  const forgotten = { type: "assistant.forgotten", item_ids: ["u1", "a1"], response_ids: ["r1"], text: "[forgotten]" };
  state = run([forgotten], state);
  assert.deepEqual(texts(state), ["[forgotten]", "[forgotten]", ""]);
  assert.deepEqual(state.items.map((/** @type {any} */ item) => [item.tool?.name ?? null, item.cut]), [[null, null], [null, null], ["time", null]]);
  assert.deepEqual(state.unheard, { a0: "else" });
});

test("words that were forgotten while the link was lost are replaced when the talk is told again", () => {
  const before = run([...OPEN, ...SPOKEN, ...REPLY, ...DONE]);
  const item = { id: "a1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_audio", transcript: "[forgotten]" }] };
  const after = run([{ type: "conversation.item.done", item, previous_item_id: "u1" }], before);
  assert.equal(after.items.find((/** @type {any} */ one) => one.id === "a1").text, "[forgotten]");
});

test("servers that are still starting are named until they are there", () => {
  const starts = (/** @type {string[]} */ servers) => ({ type: "assistant.servers_starting", servers });
  const state = run([...OPEN, starts(["files", "house"]), starts(["house"])]);
  assert.deepEqual(state.notices.map((one) => one.text), ["Still starting: house. Their tools join our talk when they are ready."]);
  assert.deepEqual(run([starts([])], state).notices, []);
});

test("undo takes items away and marks their turn", () => {
  const state = run([...OPEN, ...SPOKEN, ...REPLY, ...DONE,
    { type: "conversation.item.deleted", item_id: "a1" }, { type: "conversation.item.deleted", item_id: "u1" }]);
  assert.deepEqual(state.items, []);
  assert.equal(state.turns[0].undone, true);
});

test("after a reconnection the replayed items fall onto the ones we have", () => {
  const before = run([...OPEN, ...SPOKEN, ...REPLY, ...DONE]);
  const after = run([{ type: "page.link", link: "lost", retryAt: 5 }, ...OPEN,
    { type: "conversation.item.added", item: { id: "u1", type: "message", role: "user", status: "completed", content: [{ type: "input_audio", transcript: "Count to ten." }] } },
    { type: "conversation.item.done", item: { id: "a1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_audio", transcript: WORDS.join("") }] } }], before);
  assert.deepEqual(after.items.map((item) => [item.id, item.text]), before.items.map((item) => [item.id, item.text]));
  assert.equal(after.link, "open");
});

test("another conversation than before starts with an empty page", () => {
  const before = run([...OPEN, ...SPOKEN, ...REPLY, ...DONE]);
  assert.deepEqual(run([{ type: "conversation.created", conversation: { id: "conv_2" } }], before).items, []);
});

test("a tool call shows its arguments as they come, then its answer", () => {
  const state = run([...OPEN, REPLY[0],
    { type: "response.output_item.added", response_id: "r1", item: { id: "c1", type: "function_call", name: "set_timer", call_id: "k1", arguments: "", status: "in_progress" } },
    { type: "response.function_call_arguments.delta", item_id: "c1", delta: '{"minutes":' },
    { type: "response.function_call_arguments.done", item_id: "c1", name: "set_timer", arguments: '{"minutes":5}' },
    { type: "conversation.item.added", item: { id: "o1", type: "function_call_output", call_id: "k1", output: "set" } }]);
  assert.deepEqual(state.items.map((item) => item.tool), [{ name: "set_timer", callId: "k1", args: '{"minutes":5}', output: "set" }]);
});

test("a tool that the server ran shows before its reply and goes with it", () => {
  const tool = { type: "assistant.tool", response_id: "r1", name: "get_time", arguments: "{}", output: "nine", ms: 0.3 };
  const state = run([...OPEN, ...SPOKEN, REPLY[0], tool, ...REPLY.slice(1), ...DONE]);
  assert.deepEqual(state.items.map((item) => item.tool?.name ?? item.id), ["u1", "get_time", "a1"]);
  assert.deepEqual(run([{ type: "conversation.item.deleted", item_id: "a1" }], state).items.map((item) => item.id), ["u1"]);
});

test("a switch brings the persona's voice, and what was said before keeps the name of who said it", () => {
  const state = run([...OPEN, ...SPOKEN, ...REPLY, ...DONE,
    { type: "assistant.persona", name: "ben", voice: "ben", ms: 3 },
    { type: "conversation.item.added", item: { id: "a2", type: "message", role: "assistant", status: "in_progress", content: [] } },
    { type: "assistant.persona", name: "eve", voice: null, ms: 3 }]);
  const replies = state.items.filter((item) => item.role === "assistant");
  assert.deepEqual(replies.map((item) => item.persona), ["ada", "ben"]);
  assert.deepEqual([state.session.assistant.persona, state.session.audio.output.voice], ["eve", "ben"]);
});

test("the export says of a cut turn what came, what was heard and when it fell silent", () => {
  const state = run([...OPEN, ...SPOKEN, ...REPLY, { type: "page.cut", itemId: "a1", ms: 700, at: 1900, yieldMs: 250 }]);
  const [turn] = exported(state, [measure(state.turns[0], { toPage: () => null, uncertainty: null })], "now").turns;
  assert.deepEqual([turn.audio_ms, turn.heard_ms, turn.silent_at_ms, turn.yield_ms], [2000, 700, 1900, 250]);
});

test("what was prepared before it was sure that the turn was over is told in words", () => {
  assert.equal(preparedNote(undefined), "");
  assert.equal(preparedNote({ candidate_begun_ms: 260, candidate_ready_ms: 180 }), "The answer was ready 180 ms before your turn was certain to be over.");
  assert.equal(preparedNote({ candidate_begun_ms: 90, candidates_dropped: 1, wasted_ms: 42 }),
    "The answer was begun 90 ms before your turn was certain to be over. An answer was begun in vain: 42 ms of work.");
  assert.equal(preparedNote({ candidates_dropped: 2, wasted_ms: 140 }), "2 answers were begun in vain: 140 ms of work.");
});

test("after a reload the words that nobody heard are struck out again", () => {
  const before = run([...OPEN, ...SPOKEN, ...REPLY, { type: "page.playing", itemId: "a1" }]);
  const words = unheardOf(before);
  assert.deepEqual(words, { a1: WORDS.join("") });
  const heard = { id: "a1", type: "message", role: "assistant", status: "incomplete", content: [{ type: "output_audio", transcript: "One, two," }] };
  const state = run([{ type: "page.unheard", words }, { type: "conversation.item.added", item: heard }, { type: "conversation.item.done", item: heard }]);
  assert.equal(state.items[0].text.slice(0, spokenLength(state.items[0], false)), "One, two,");
  assert.equal(state.items[0].text, WORDS.join(""));
  const other = run([{ type: "page.unheard", words: { a1: "something else" } }, { type: "conversation.item.added", item: heard }]);
  assert.equal(other.items[0].text, "One, two,", "what does not continue it is not shown");
});

test("a needless cancel is no news, other errors are", () => {
  const state = run([{ type: "error", error: { code: "response_cancel_not_active", message: "x" } },
    { type: "error", error: { code: "session_limit_reached", message: "shown as the state of the link" } },
    { type: "error", error: { code: "invalid_value", message: "That cannot be." } }]);
  assert.deepEqual(state.notices.map((one) => one.text), ["That cannot be."]);
});

test("what an event does not touch keeps its identity", () => {
  const state = run([...OPEN, ...SPOKEN]);
  const next = run([{ type: "assistant.state", state: "thinking" }, { type: "unheard.of" }, { type: "assistant.pong" }], state);
  assert.equal(next.items, state.items);
  assert.equal(next.turns, state.turns);
  assert.equal(run([{ type: "unheard.of" }], state), state);
});

test("random events in random orders: never an exception, never a doubled item, never a changed past", () => {
  const dice = random(13);
  const all = [...OPEN, ...SPOKEN, ...REPLY, ...DONE,
    { type: "conversation.item.truncated", item_id: "a1", audio_end_ms: 700, transcript: "One," },
    { type: "conversation.item.deleted", item_id: "u1" }, { type: "conversation.item.deleted", item_id: "a1" },
    { type: "page.link", link: "lost" }, { type: "page.heard", itemId: "a1", ms: 900 }, { type: "page.cut", itemId: "a1", ms: 300 },
    { type: "assistant.memory", what: "rollback", engine: "llm", position: 3, ms: 1 }, { type: "page.fresh" },
    { type: "assistant.timeline", response_id: "r1", parts: [] }, { type: "assistant.resume" }, { type: "input_audio_buffer.cleared" },
    { type: "response.done", response: { id: "r1", status: "failed", status_details: { error: { code: "x" } } } },
    { type: "conversation.item.added", item: null }, { type: "error", error: null }];
  for (let round = 0; round < 400; round++) {
    let state = EMPTY;
    for (let step = 0; step < 60; step++) {
      state = run([dice.pick(all)], state);
      const ids = state.items.map((item) => item.id);
      assert.equal(new Set(ids).size, ids.length);
      phase(state);
      for (const item of state.items) {
        const length = spokenLength(item, true);
        assert.ok(length >= 0 && length <= item.text.length);
      }
    }
  }
});

test("a talk that moved to another tab is no notice, and nothing is retried", () => {
  const state = run([...OPEN, { type: "error", error: { code: "conversation_moved", message: "x" } }, { type: "page.link", link: "moved", retryAt: null }]);
  assert.deepEqual([state.notices, state.link, state.retryAt, phase(state)], [[], "moved", null, "offline"]);
});

test("a talk that waits for its name says so until it is called", () => {
  const session = (wake) => ({ id: "s", model: "tiny", assistant: { persona: "ada", wake } });
  const on = run([...OPEN, { type: "page.microphone", status: "on" }]);
  assert.equal(phase(on), "listening");
  const waiting = run([{ type: "session.updated", session: session(true) }], on);
  assert.equal(phase(waiting), "waiting");
  const called = run([{ type: "assistant.wake", state: "called", called: "Ada" }], waiting);
  assert.equal(phase(called), "called");
  assert.equal(phase(run([{ type: "session.updated", session: session(true) }], called)), "called");
  assert.equal(phase(run([{ type: "assistant.wake", state: "open" }], called)), "listening");
  assert.equal(phase(run([{ type: "assistant.wake", state: "waiting" }, { type: "session.updated", session: session(false) }], called)), "listening");
});

test("a ring is told once, also where a late answer of the server still lists it", () => {
  const ring = { id: 1, kind: "timer", told: "2 seconds", at: "", left_s: 0, paused: false };
  const heard = (rings, at) => ({ type: "page.household", household: { rings, lists: [], at } });
  const rang = { type: "page.rang", rings: [ring] };
  const state = run([heard([ring], 1000), rang, heard([{ ...ring }], 1100), rang, heard([{ ...ring }], 1200), heard([], 1300)]);
  assert.deepEqual(state.rang, [ring]);
});
