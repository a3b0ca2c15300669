/** Draws the first sight: what to do, and what can be asked. Goes away with the first words. */

import { byId, make } from "./dom.js";

const IDEAS = [
  "What time is it?",
  "Set a timer for five minutes.",
  "Count to twenty.",
  "Tell me a story.",
  "What is twelve times nine?",
  "What can you do?",
];

/** @param {{onAsk: (text: string) => void}} actions */
export function welcome({ onAsk }) {
  const root = byId("welcome");
  root.replaceChildren(
    make("p.hello", { text: "Say something." }),
    make("p.how", { text: "Interrupt whenever you like: what you did not hear, it did not say." }),
    make("ul.ideas", { "aria-label": "Things to ask" }, ...IDEAS.map((text) =>
      make("li", {}, make("button", { type: "button", text, onclick: () => onAsk(text) })))),
  );
  /** @param {import("../session.js").State} state */
  return function render(state) {
    root.hidden = state.items.length > 0;
  };
}
