/** Draws the first sight: what to do, what can be asked, and what runs here. Goes away with the first words. */

import { byId, make, setText } from "./dom.js";

const IDEAS = [
  "What time is it?",
  "Set a timer for 5 minutes.",
  "Count to twenty.",
  "Tell me a story.",
  "What is 12 times 9?",
  "What can you do?",
];

/** @param {{onAsk: (text: string) => void, onLarger: () => void}} actions */
export function welcome({ onAsk, onLarger }) {
  const root = byId("welcome");
  const runs = make("span");
  const about = make("p.runs", { hidden: true }, runs, make("button", { type: "button", text: "Larger models", onclick: onLarger }));
  root.replaceChildren(
    make("p.hello", { text: "Say something." }),
    make("p.how", { text: "Interrupt whenever you like: it knows how much of its reply you heard." }),
    make("p.how", { text: "Not for emergencies: it cannot call for help." }),
    make("ul.ideas", { "aria-label": "Things to ask" }, ...IDEAS.map((text) =>
      make("li", {}, make("button", { type: "button", text, onclick: () => onAsk(text) })))),
    about,
  );
  /** @param {import("../session.js").State} state */
  return function render(state) {
    root.hidden = state.items.length > 0;
    const models = state.machine?.models;
    about.hidden = !models;
    if (models) setText(runs, `${models.llm} thinks, ${models.tts} speaks and ${models.hearing} listens. `);
  };
}
