/** Draws time: the two large figures, the waterfall of one turn, the strip of all turns, and what is usual. */

import { preparedNote } from "../figures.js";
import { partLabel, partMeaning, rowsOf, showMs, summary } from "../timeline.js";
import { byId, draw, make } from "./dom.js";

/** The measures of the table, with how to read them from a turn. */
export const MEASURES = [
  { name: "First audio", of: (turn) => turn.ttfaMs },
  { name: "Voice to voice", of: (turn) => turn.voiceMs },
  { name: "Yield", of: (turn) => turn.yieldMs },
  { name: "Restore", of: (turn) => turn.restoreMs },
  { name: "Rollback", of: (turn) => turn.rollbackMs },
];

/** @param {number|null} ms @param {string} label @param {string} note */
function figure(ms, label, note) {
  const [value, unit] = showMs(ms).split(" ");
  return make("div.figure", {},
    make("p.value", {}, value, unit ? make("small", { text: ` ${unit}` }) : null),
    make("p.label", { text: label }),
    make("p.note", { text: note }));
}

/** @param {any} chosen */
function voiceNote(chosen) {
  if (chosen?.typed) return "this turn was typed";
  return chosen?.fall?.uncertaintyMs == null ? "" : `clocks agree to ± ${showMs(chosen.fall.uncertaintyMs)}`;
}

/** @param {{onTurn: (responseId: string) => void, onStep: (by: number) => void}} actions */
export function time({ onTurn, onStep }) {
  let drawn = /** @type {any} */ (null);

  /** @param {any[]} turns with figures @param {any} chosen the turn shown, or null */
  return function render(turns, chosen) {
    if (drawn && drawn.turns === turns && drawn.chosen === chosen) return;
    drawn = { turns, chosen };
    byId("figures").replaceChildren(
      figure(chosen?.ttfaMs ?? null, "to first audio", chosen?.serverTtfaMs == null ? "" : `server says ${showMs(chosen.serverTtfaMs)}`),
      figure(chosen?.voiceMs ?? null, "voice to voice", voiceNote(chosen)),
    );
    byId("waterfall").replaceChildren(...waterfallRows(turns, chosen, onStep));
    byId("strip").replaceChildren(strip(turns, chosen, onTurn));
    byId("usual").replaceChildren(usual(turns));
    for (const id of ["save-json", "save-picture"]) byId(id).disabled = turns.length === 0;
  };
}

/** @param {any[]} turns @param {any} chosen @param {(by: number) => void} onStep */
function waterfallRows(turns, chosen, onStep) {
  if (!chosen) return [make("p.empty", { text: "After the first turn, its timeline appears here." })];
  const index = turns.indexOf(chosen);
  const stepper = make("div.stepper", {},
    make("button", { type: "button", "aria-label": "Earlier turn", text: "‹", disabled: index <= 0, onclick: () => onStep(-1) }),
    make("span", { text: `Turn ${chosen.n} of ${turns.at(-1).n}${chosen.undone ? ", undone" : chosen.status === "cancelled" ? ", interrupted" : ""}` }),
    make("button", { type: "button", "aria-label": "Later turn", text: "›", disabled: index >= turns.length - 1, onclick: () => onStep(1) }));
  const fall = chosen.fall;
  if (!fall) return [stepper, make("p.empty", { text: "No timeline for this turn." })];
  const parts = rowsOf(fall.parts, fall.totalMs);
  const longest = parts.reduce((most, part) => Math.max(most, part.ms), 0);
  const rows = parts.map((part) => {
    const bar = part.name === "small" ? make("span") : make(`i.${part.where}${part.ms === longest ? ".longest" : ""}`);
    bar.style.setProperty("--from", String(part.startMs / (fall.totalMs || 1)));
    bar.style.setProperty("--share", String(part.ms / (fall.totalMs || 1)));
    return make("tr", {}, make("th", { scope: "row", text: partLabel(part.name) }), make("td.bar", {}, bar), make("td", { text: showMs(part.ms) }));
  });
  const total = make("tr.total", {}, make("th", { scope: "row", text: "Sum" }), make("td"), make("td", { text: showMs(fall.totalMs) }));
  const table = make("table.fall", { "aria-label": "Where the time of this turn went" }, make("tbody", {}, ...rows), make("tfoot", {}, total));
  const memory = chosen.memory.map((one) => `${one.what} of the ${one.engine === "llm" ? "mind" : "voice"} ${showMs(one.ms)}`);
  const prepared = make("p.memory", { text: preparedNote(chosen.timeline?.figures) });
  return [stepper, table, prepared, make("p.memory", { text: memory.join(", ") }), meanings(parts)];
}

let meant = false;

/** What the rows mean; stays open from turn to turn. @param {import("../timeline.js").Part[]} parts */
function meanings(parts) {
  const told = [
    ["To first audio", "from the end of your turn until sound reaches this page"],
    ["Voice to voice", "from your last sound until the reply's first sound leaves the loudspeaker: the sum above, for spoken turns"],
    ...parts.map(({ name }) => [partLabel(name), partMeaning(name)]),
  ];
  const list = told.flatMap(([name, meaning]) => (meaning ? [make("dt", { text: name }), make("dd", { text: meaning })] : []));
  const details = make("details.meanings", { open: meant }, make("summary", { text: "What these mean" }), make("dl", {}, ...list));
  details.addEventListener("toggle", () => { meant = details.open; });
  return details;
}

const WIDTH = 360;
const HEIGHT = 84;

/** @param {any[]} turns @param {any} chosen @param {(id: string) => void} onTurn */
function strip(turns, chosen, onTurn) {
  const shown = turns.filter((turn) => turn.ttfaMs !== null).slice(-40);
  if (shown.length === 0) return make("span");
  const value = (turn) => turn.voiceMs ?? turn.ttfaMs;
  const top = Math.max(...shown.map(value)) * 1.08;
  const step = Math.min(26, WIDTH / shown.length);
  const y = (ms) => HEIGHT - 14 - (ms / top) * (HEIGHT - 24);
  const spoken = shown.filter((turn) => turn.voiceMs !== null); // a written turn has no wait for the end of speech
  const median = summary((spoken.length > 0 ? spoken : shown).map(value)).median ?? 0;
  const marks = shown.flatMap((turn, i) => {
    const x = i * step + step / 2;
    const group = draw("g", { class: turn === chosen ? "chosen" : "", "data-turn": turn.id },
      draw("rect", { class: "reach", x: i * step, y: 0, width: step, height: HEIGHT }),
      draw("line", { class: "stem", x1: x, x2: x, y1: HEIGHT - 14, y2: y(value(turn)) }),
      draw("circle", { class: turn.voiceMs === null ? "typed" : "voice", cx: x, cy: y(value(turn)), r: 3.5 }),
      draw("line", { class: "ttfa", x1: x - 4, x2: x + 4, y1: y(turn.ttfaMs), y2: y(turn.ttfaMs) }),
      ...(shown.length <= 15 || turn.n % 5 === 0 ? [draw("text", { x, y: HEIGHT - 2, text: turn.n })] : []));
    group.addEventListener("click", () => onTurn(turn.id));
    return [group];
  });
  const line = draw("line", { class: "median", x1: 0, x2: WIDTH, y1: y(median), y2: y(median) });
  const label = draw("text", { class: "median", x: WIDTH, y: y(median) - 4, text: `median ${showMs(median)}` });
  const words = `${shown.length} turns: median ${showMs(median)}, slowest ${showMs(Math.max(...shown.map(value)))}`;
  return make("figure.strip", {},
    draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words }, line, ...marks, label),
    make("figcaption", {}, make("span.key.dot", { text: "voice to voice" }), make("span.key.dash", { text: "first audio" })));
}

/** @param {any[]} turns */
function usual(turns) {
  const counted = turns.filter((turn) => !turn.undone);
  const rows = MEASURES.map(({ name, of }) => ({ name, ...summary(counted.map(of)) })).filter((row) => row.n > 0);
  if (rows.length === 0) return make("span");
  const head = ["Measure", "median", "p90", "p99", "n"].map((text) => make("th", { scope: "col", text }));
  const body = rows.map((row) => make("tr", {}, make("th", { scope: "row", text: row.name }),
    ...[row.median, row.p90, row.p99].map((ms) => make("td", { text: showMs(ms) })), make("td", { text: String(row.n) })));
  return make("table.usual", {}, make("caption", { text: "This session" }), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
}
