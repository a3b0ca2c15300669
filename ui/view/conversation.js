/** Draws the talk: who said what, what was heard of it, and what was not. */

import { blocks } from "../blocks.js";
import { spokenLength } from "../spoken.js";
import { byId, make, setText } from "./dom.js";
import { thumbnail } from "./shown.js";

/** @typedef {import("../session.js").Item} Item */

/** Names that say more than their identifier, for a tool line. @param {string} name */
const plain = (name) => name.replaceAll("_", " ");

/** Milliseconds as a guest reads them; the figures are under Details. @param {number} ms */
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/** A reply's words, with its code set apart. @param {HTMLElement} text @param {string} heard */
function write(text, heard) {
  const parts = blocks(heard);
  if (!parts.some((part) => part.code)) return setText(text, heard);
  return text.replaceChildren(...parts.map((part) => part.code ? make("span.code", { text: part.text }) : part.text));
}

/** Arguments as a person reads them. @param {string} args JSON text, perhaps unfinished */
function readable(args) {
  try {
    const parsed = JSON.parse(args);
    if (parsed === null || typeof parsed !== "object") return String(parsed);
    return Object.entries(parsed).map(([key, value]) => `${plain(key)} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
  } catch {
    return args;
  }
}

/**
 * @param {{
 *   onTurn: (responseId: string) => void, onLarger: (item: Item, picture: import("../session.js").Picture) => void,
 *   onAnswer: (id: string, allowed: boolean) => void, onTakeOut: (text: string) => void,
 * }} actions `onTakeOut`: out of the memory
 */
export function conversation({ onTurn, onLarger, onAnswer, onTakeOut }) {
  const list = byId("conversation");
  const scroller = byId("words");
  const live = byId("spoken");
  /** @type {Map<string, {row: HTMLElement, item: Item|null, speaker: boolean, turn: any, name: string, told: boolean}>} */
  const rows = new Map();
  /** @type {WeakMap<HTMLElement, import("../session.js").Picture[]>} */
  const shots = new WeakMap();
  let following = true; // the end of the talk, until somebody scrolls away from it
  scroller.addEventListener("scroll", () => { following = rows.size === 0 || scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 120; });
  // A page without a word begins at its top, which a low window would hide.
  const follow = new ResizeObserver(() => { if (following && rows.size > 0) scroller.scrollTop = scroller.scrollHeight; });
  for (const one of [list, scroller]) follow.observe(one);

  /** @param {Item} item */
  function build(item) {
    const row = item.kind !== "message"
      ? make("li.call", {}, make("p.tool"))
      : make(`li.${item.role === "user" ? "you" : "reply"}`, {}, make("p.who"), make("p.text"), make("p.meta"));
    rows.set(item.id, { row, item: null, speaker: false, turn: null, name: "", told: false });
    return row;
  }

  /** @param {HTMLElement} row @param {Item} item @param {boolean} speaker */
  function fillText(row, item, speaker) {
    const text = /** @type {HTMLElement} */ (row.querySelector(".text"));
    fillShots(row, text, item);
    const length = spokenLength(item, speaker);
    const heard = item.text.slice(0, length).trimEnd();
    const rest = item.cut ? item.text.slice(heard.length).trim() : "";
    row.classList.toggle("partial", item.partial);
    row.classList.toggle("cut", item.cut !== null);
    row.classList.toggle("nod", item.nod);
    if (item.pictures.length > 0 && heard === "") return setText(text, "");
    if (item.role === "user" && heard === "") {
      setText(text, item.status === "incomplete" ? "(not understood)" : "…");
      return;
    }
    if (item.partial && item.stable < heard.length) { // the last words may still change: they are drawn lighter
      const stable = heard.slice(0, item.stable);
      if (text.dataset.stable === stable && text.textContent === heard) return;
      text.replaceChildren(stable, make("span.tentative", { text: heard.slice(item.stable) }));
      text.dataset.stable = stable;
      return;
    }
    if (rest === "") {
      write(text, item.cut && heard !== "" ? `${heard} —` : heard); // broken off, as in a play
      return;
    }
    if (text.dataset.heard === heard && text.dataset.rest === rest) return;
    text.replaceChildren(heard, heard ? " " : "", make("s", {}, make("span.hidden", { text: "not heard: " }), rest));
    text.dataset.heard = heard;
    text.dataset.rest = rest;
  }

  /** @param {HTMLElement} row @param {HTMLElement} text @param {Item} item */
  function fillShots(row, text, item) {
    const before = row.querySelector(".shots");
    if (item.pictures.length === 0) return before?.remove();
    if (shots.get(row) === item.pictures) return undefined;
    shots.set(row, item.pictures);
    before?.remove();
    return text.before(make("div.shots", {}, ...item.pictures.map((one) => thumbnail(one, () => onLarger(item, one)))));
  }

  /** @param {HTMLElement} row @param {any} turn */
  function fillMeta(row, turn) {
    const meta = /** @type {HTMLElement} */ (row.querySelector(".meta"));
    if (!turn || turn.ttfaMs === null) return meta.replaceChildren();
    const key = turn.voiceMs === null ? `answered after ${seconds(turn.ttfaMs)}` : `answered ${seconds(turn.voiceMs)} after your last word`;
    const cut = turn.yieldMs === null ? "" : ` · quiet ${seconds(turn.yieldMs)} after you began`;
    const label = `${key}${cut}`;
    if (meta.textContent === label) return undefined;
    return meta.replaceChildren(make("button", { type: "button", text: label, title: `Show the time of turn ${turn.n}`, onclick: () => onTurn(turn.id) }));
  }

  /** Tell a screen reader each finished utterance once. @param {any} known @param {Item} item @param {string} name */
  function tell(known, item, name) {
    const pictured = item.pictures.length > 0 && item.text === "";
    const finished = item.role === "user" ? item.committed && !item.partial : item.status !== "in_progress";
    if (known.told || !finished || (item.text === "" && !pictured)) return;
    known.told = true;
    if (pictured) return live.append(make("p", { text: "You showed a picture." }));
    live.append(make("p", { text: `${item.role === "user" ? "You" : name}: ${item.text.slice(0, spokenLength({ ...item, heardMs: null }, false))}` }));
    while (live.childElementCount > 6) live.firstElementChild.remove();
  }

  /** @param {import("../session.js").State} state @param {any[]} turns with figures @param {(persona: string|null) => string} nameOf */
  return function render(state, turns, nameOf) {
    const keep = new Set();
    let before = null;
    const items = state.items.filter((item) => item.role !== "system" && item.shown);
    const firstOf = new Set();
    for (const item of items) {
      keep.add(item.id);
      const row = rows.get(item.id)?.row ?? build(item);
      const known = /** @type {any} */ (rows.get(item.id));
      const expected = before === null ? list.firstElementChild : before.nextElementSibling;
      if (expected !== row) list.insertBefore(row, expected);
      before = row;
      const turn = item.role === "assistant" && item.kind === "message" && !firstOf.has(item.responseId)
        ? turns.find((one) => one.id === item.responseId) ?? null : null;
      if (turn) firstOf.add(item.responseId);
      const name = nameOf(item.persona);
      if (known.item === item && known.speaker === state.speaker && known.turn === turn && known.name === name) continue;
      if (item.kind === "call") drawCall(row, item);
      else if (item.kind === "kept") drawKept(row, item, onTakeOut);
      else if (item.kind === "asked") drawAsked(row, item, onAnswer);
      else {
        setText(/** @type {Node} */ (row.querySelector(".who")), item.role === "user" ? "You" : name);
        fillText(row, item, state.speaker);
        if (item.role === "assistant") fillMeta(row, turn);
        tell(known, item, name);
      }
      Object.assign(known, { item, speaker: state.speaker, turn, name });
    }
    for (const [id, known] of rows) {
      if (keep.has(id)) continue;
      known.row.remove();
      rows.delete(id);
    }
  };
}

/** @param {HTMLElement} row @param {Item} item */
function drawCall(row, item) {
  const { name, args, output } = item.tool ?? { name: "", args: "", output: null };
  const asked = make("span", { text: args ? ` ${readable(args)}` : "" });
  const answer = output === null ? make("span.waiting", { text: " …" }) : make("span.answer", { text: ` → ${readable(output)}` });
  /** @type {HTMLElement} */ (row.querySelector(".tool")).replaceChildren(make("b", { text: plain(name) }), asked, answer);
}

/** A sentence that the memory got or lost in this turn. @param {HTMLElement} row @param {Item} item @param {(text: string) => void} onTakeOut */
function drawKept(row, item, onTakeOut) {
  const gone = item.status === "gone";
  /** @type {HTMLElement} */ (row.querySelector(".tool")).replaceChildren(
    make("span", { role: "status" }, gone ? "No longer kept: " : "Kept: ", make("b", { text: item.text })),
    ...(gone ? [] : [" ", make("button", { type: "button", text: "Undo", "aria-label": `Undo: do not keep “${item.text}”`, onclick: () => onTakeOut(item.text) })]));
}

/** A call that needs the person's word. @param {HTMLElement} row @param {Item} item @param {(id: string, allowed: boolean) => void} onAnswer */
function drawAsked(row, item, onAnswer) {
  const { name, callId, args } = item.tool ?? { name: "", callId: "", args: "" };
  const call = item.text ? `${plain(name)} of ${item.text}` : plain(name);
  const head = { waiting: "May it run this?", allowed: "Allowed:", refused: "Not allowed:" }[item.status] ?? "";
  const answer = (/** @type {boolean} */ allowed) => make("button", { type: "button", text: allowed ? "Allow" : "Do not allow", "aria-label": `${allowed ? "Allow" : "Do not allow"} ${call}`, onclick: () => onAnswer(callId, allowed) });
  /** @type {HTMLElement} */ (row.querySelector(".tool")).replaceChildren(
    make("span", { role: "status" }, `${head} `, make("b", { text: call }), args && readable(args) ? `: ${readable(args)}` : ""),
    ...(item.status === "waiting" ? [make("span.answers", { role: "group", "aria-label": "Your answer" }, answer(true), answer(false))] : []));
}
