/** Draws the first sight: what to do, what can be asked, and what the model can do. Goes away with the first words. */

import { byName } from "../session.js";
import { modelLine } from "./better.js";
import { byId, make, setText } from "./dom.js";

const IDEAS = [
  "What time is it?",
  "Set a timer for 5 minutes.",
  "Count to twenty.",
  "Tell me a story.",
  "What is 12 times 9?",
  "What can you do?",
];

/** @param {{onAsk: (text: string) => void, onBetter: () => void}} actions */
export function welcome({ onAsk, onBetter }) {
  const root = byId("welcome");
  const runs = make("span");
  const more = make("button", { type: "button", onclick: onBetter });
  const about = make("p.runs", { hidden: true }, runs, more);
  const hello = make("p.hello");
  root.replaceChildren(
    hello,
    make("p.how", { text: "Interrupt whenever you like. It stops, and goes on from what you heard." }),
    make("ul.ideas", { "aria-label": "Things to ask" }, ...IDEAS.map((text) =>
      make("li", {}, make("button", { type: "button", text, onclick: () => onAsk(text) })))),
    about,
    make("p.runs", { text: "Not for emergencies: it cannot call for help." }),
  );
  /** @param {import("../session.js").State} state @param {string} name */
  return function render(state, name) {
    root.hidden = state.items.length > 0;
    setText(hello, byName(state) ? `Say “hey ${name}”, then ask.` : "Say something.");
    const known = modelLine(state.machine);
    about.hidden = known === null;
    if (known) {
      setText(runs, `${known.line} `);
      setText(more, known.more);
    }
  };
}
