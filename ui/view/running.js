/** Draws what runs and what is kept, as a quiet strip: timers with their time left, alarms, reminders, lists, notes. */

import { leftS, showLeft } from "../running.js";
import { byId, make, setText } from "./dom.js";

/**
 * @param {{
 *   onRemove: (key: number|string, told: string) => void, onNoticed: () => void,
 *   onAdjust: (id: number, change: {paused?: boolean, add_s?: number}) => void,
 *   mayNotify: () => boolean, onNotify: () => void,
 * }} actions
 */
export function running(actions) {
  const root = byId("running");
  let drawn = /** @type {any} */ ({});

  /** @param {import("../session.js").State} state @param {number} now */
  return function render({ household, rang }, now) {
    const notify = (household?.rings.length ?? 0) > 0 && actions.mayNotify();
    if (drawn.household !== household || drawn.rang !== rang || drawn.notify !== notify) {
      drawn = { household, rang, notify };
      const open = root.querySelector("details[open]")?.id;
      const focused = root.contains(document.activeElement) ? document.activeElement?.id : null;
      root.replaceChildren(
        ...rang.map((ring) => make("p.rang", { role: "alert" }, make("b", { text: `⏰ ${ring.told}` }), make("button", { type: "button", text: "OK", onclick: actions.onNoticed }))),
        ...(household?.rings ?? []).map((ring) => chip(ring, actions)),
        ...(household?.lists ?? []).map((list) => listChip(list, actions)),
        ...(notify ? [make("span.small", {}, button("notify", "Notify me", actions.onNotify, "Notify me when it rings while this page is hidden"))] : []));
      root.hidden = root.childElementCount === 0;
      const again = /** @type {HTMLDetailsElement|null} */ (open ? document.getElementById(open) : null);
      if (again) again.open = true; // it stays open while its list grows
      if (focused) (document.getElementById(focused) ?? again?.querySelector("summary"))?.focus();
    }
    for (const ring of household?.rings ?? []) {
      if (ring.kind === "timer") setText(byId(`left-${ring.id}`), showLeft(leftS(ring, /** @type {any} */ (household), now)));
    }
  };
}

/** @param {string} id @param {Node[]} summary @param {...Node} inside */
const sheet = (id, summary, ...inside) => make("details.pop.up", { id }, make("summary", {}, ...summary), make("div.sheet", {}, ...inside));
/** @param {string} id @param {string} text @param {() => void} onclick @param {string} [label] */
const button = (id, text, onclick, label) => make("button", { type: "button", id, text, "aria-label": label, onclick });

/** @param {import("../running.js").Ring} ring @param {Parameters<typeof running>[0]} actions */
function chip(ring, { onRemove, onAdjust }) {
  const { id, kind, told, paused } = ring;
  const stop = button(`stop-${id}`, kind === "timer" ? "Stop it" : "Cancel it", () => onRemove(id, `The ${kind} is off: ${told}.`));
  const name = `${kind[0].toUpperCase()}${kind.slice(1)}`;
  if (kind !== "timer") return sheet(`ring-${id}`, [make("span", { text: `${name} ${told}` })], stop);
  return sheet(`ring-${id}`,
    [make("span", { text: `${paused ? "Paused" : "Timer"} ` }), make("b", { id: `left-${id}`, role: "timer", "aria-label": `Time left of ${told}` })],
    make("p", { text: told }),
    button(`pause-${id}`, paused ? "Go on" : "Pause", () => onAdjust(id, { paused: !paused })),
    button(`more-${id}`, "One minute more", () => onAdjust(id, { add_s: 60 })), stop);
}

/** @param {import("../running.js").List} list @param {Parameters<typeof running>[0]} actions */
function listChip({ key, name, things }, { onRemove }) {
  const rows = things.map(({ id, text }) => make("li", {}, make("span", { text }), button(`drop-${id}`, "Remove", () => onRemove(id, `Removed: ${text}.`), `Remove ${text}`)));
  const title = `${name[0].toUpperCase()}${name.slice(1)}`;
  return sheet(`list-${key.replaceAll(" ", "-")}`, [make("span", { text: `${title} ` }), make("b", { text: String(things.length) })],
    make("ul", { "aria-label": title }, ...rows),
    button(`clear-${key.replaceAll(" ", "-")}`, "Remove all", () => onRemove(key, `${title}: removed all ${things.length}.`), `Remove all of ${title}`));
}
