/** Draws what runs here: the machine, its models, and the saved states of talks. For those who want to know. */

import { byId, make, showAge, showBytes } from "./dom.js";

export function state() {
  let drawn = /** @type {any} */ ({});

  /** @param {import("../session.js").State} view */
  return function render(view) {
    const { capsules, session, machine } = view;
    if (drawn.capsules !== capsules || drawn.session !== session) byId("capsules").replaceChildren(capsuleList(view));
    if (drawn.session !== session || drawn.machine !== machine) byId("machine").replaceChildren(...aboutMachine(session, machine));
    drawn = { capsules, session, machine };
  };
}

let unfolded = false;

/** @param {import("../session.js").State} view */
function capsuleList(view) {
  const fold = make("details", { open: unfolded, ontoggle: () => { unfolded = fold.open; } }, make("summary", { text: "Saved states" }), ...capsuleTable(view));
  return fold;
}

/** @param {import("../session.js").State} view */
function capsuleTable({ capsules, session, conversationId }) {
  if (session?.assistant?.capsules === false) {
    return [make("p.empty", { text: "Off: a model runs on another server, so its state cannot be kept here." })];
  }
  if (!capsules || capsules.capsules.length === 0) {
    return [make("p.empty", { text: "The saved states of this talk, its personas and voices appear here." })];
  }
  const earlier = capsules.capsules.filter((one) => one.name.startsWith("conv_") && one.name !== conversationId);
  const rows = capsules.capsules.filter((one) => !earlier.includes(one)).map((one) => make("tr", {},
    make("th", { scope: "row" }, make("span.name", { text: one.name === conversationId ? "this talk" : one.name, title: one.name }), make("span.of", { text: `${one.engine === "llm" ? "language model" : "voice"}, ${one.position} tokens` })),
    make("td", { text: showBytes(one.bytes) }),
    make("td", {}, PLACES[one.tier] ?? one.tier, one.pinned ? make("span.pin", { text: ", stays" }) : null),
    make("td", { text: showAge(one.age_s) })));
  if (earlier.length > 0) {
    rows.push(make("tr", {}, make("th", { scope: "row", text: `${earlier.length} of earlier talks` }),
      make("td", { text: showBytes(earlier.reduce((sum, one) => sum + one.bytes, 0)) }), make("td"), make("td")));
  }
  const tiers = Object.entries(capsules.tiers).filter(([, { used_bytes: used }]) => used > 0).map(([tier, { used_bytes: used, budget_bytes: budget }]) =>
    make("span", { text: `${PLACES[tier] ?? tier}: ${showBytes(used)}${budget ? ` of ${showBytes(budget)}` : ""}` }));
  const head = ["Size", "Where", "Age"].map((text) => make("th", { scope: "col", text }));
  return [
    make("table.capsules", { "aria-label": "Saved states" }, make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "Of" }), ...head)), make("tbody", {}, ...rows)),
    make("p.tiers", {}, ...tiers)];
}

/** @type {Record<string, string>} */
const PLACES = { gpu: "GPU", host: "memory", disk: "disk" };

/** @param {any} session @param {Record<string, any>|null} facts */
function aboutMachine(session, facts) {
  if (!session && !facts) return [];
  const rows = [
    ["Profile", facts?.profile], ["Language model", facts?.models?.llm ?? session?.model], ["Voice", facts?.models?.tts],
    ["Hearing", facts?.models?.hearing], ["Device", facts?.device],
  ].filter(([, value]) => typeof value === "string" && value !== "");
  const list = make("dl", {}, ...rows.flatMap(([term, value]) => [make("dt", { text: term }), make("dd", { text: value })]));
  return [make("h3", { text: "This machine" }), list, make("p.local", { text: session?.assistant?.capsules === false
    ? "A model runs on another server, which receives the words of this talk. Your voice is heard here."
    : "Nothing you say leaves this machine." })];
}
