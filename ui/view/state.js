/** Draws what the assistant is: its personas and voices, its capsules, and the machine it runs on. */

import { showMs } from "../timeline.js";
import { byId, make, showAge, showBytes } from "./dom.js";

/** @param {{onPersona: (name: string) => void, onVoice: (name: string) => void, onVoices: () => void}} actions */
export function state({ onPersona, onVoice, onVoices }) {
  let drawn = /** @type {any} */ ({});

  /** @param {import("../session.js").State} view */
  return function render(view) {
    const { personas, switchMs, capsules, session, machine } = view;
    if (drawn.personas !== personas || drawn.switchMs !== switchMs || drawn.session !== session) {
      refill(byId("personas"), personaList(view, onPersona, onVoice, onVoices));
    }
    if (drawn.capsules !== capsules || drawn.session !== session) refill(byId("capsules"), capsuleTable(view));
    if (drawn.session !== session || drawn.machine !== machine) refill(byId("machine"), aboutMachine(session, machine));
    drawn = { personas, switchMs, capsules, session, machine };
  };
}

/** Replace the content and give the keyboard back to the control that had it. @param {HTMLElement} root @param {Node[]} nodes */
function refill(root, nodes) {
  const focused = root.contains(document.activeElement) ? document.activeElement?.id : null;
  root.replaceChildren(...nodes);
  if (focused) document.getElementById(focused)?.focus();
}

/** @param {import("../session.js").State} view @param {(name: string) => void} onPersona @param {(name: string) => void} onVoice @param {() => void} onVoices */
function personaList({ personas, switchMs, session }, onPersona, onVoice, onVoices) {
  if (!personas || personas.personas.length === 0) return [];
  const choices = personas.personas.map(({ name, title, description }) => {
    const id = `persona-${name}`;
    const took = switchMs?.name === name ? make("span.took", { text: `ready in ${showMs(switchMs.ms)}` }) : null;
    return make("div.persona", {},
      make("input", { type: "radio", name: "persona", id, value: name, checked: name === personas.current, onchange: () => onPersona(name) }),
      make("label", { for: id }, make("b", { text: title || name }), make("span", { text: description || "" }), took));
  });
  const current = session?.audio?.output?.voice;
  const voices = make("p.voice", {},
    make("label", { for: "voice", text: "Voice" }),
    make("select", { id: "voice", onchange: (event) => onVoice(event.target.value) },
      ...personas.voices.map((name) => make("option", { value: name, text: name, selected: name === current }))),
    make("button", { type: "button", id: "all-voices", text: "Hear, add, remove", onclick: onVoices }));
  return [make("fieldset", {}, make("legend", { text: "Persona" }), ...choices), voices];
}

/** Talks bear identifiers; a person knows them as this one and others. @param {string} name @param {string|null} conversationId */
function capsuleName(name, conversationId) {
  if (name === conversationId) return "this talk";
  return name.startsWith("conv_") ? "another talk" : name;
}

/** @param {import("../session.js").State} view */
function capsuleTable({ capsules, session, conversationId }) {
  const title = make("h3", { text: "Capsules" });
  if (session?.assistant?.capsules === false) {
    return [title, make("p.empty", { text: "Off: a model runs on another server, so its state cannot be kept here." })];
  }
  if (!capsules || capsules.capsules.length === 0) {
    return [title, make("p.empty", { text: "The saved states of this talk, its personas and voices appear here." })];
  }
  const rows = capsules.capsules.map((one) => make("tr", {},
    make("th", { scope: "row" }, make("span.name", { text: capsuleName(one.name, conversationId), title: one.name }), make("span.of", { text: `${one.engine === "llm" ? "mind" : "voice"}, position ${one.position}` })),
    make("td", { text: showBytes(one.bytes) }),
    make("td", {}, one.tier, one.pinned ? make("span.pin", { text: " pinned" }) : null),
    make("td", { text: showAge(one.age_s) })));
  const tiers = Object.entries(capsules.tiers).filter(([, { used_bytes: used }]) => used > 0).map(([tier, { used_bytes: used, budget_bytes: budget }]) =>
    make("span", { text: `${tier} ${showBytes(used)}${budget ? ` of ${showBytes(budget)}` : ""}` }));
  const head = ["Size", "Where", "Age"].map((text) => make("th", { scope: "col", text }));
  return [title,
    make("table.capsules", { "aria-label": "Capsules" }, make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "Name" }), ...head)), make("tbody", {}, ...rows)),
    make("p.tiers", {}, ...tiers)];
}

const COMMANDS = ["assistant doctor", "assistant pull"];

/** @param {any} session @param {Record<string, any>|null} facts */
function aboutMachine(session, facts) {
  if (!session && !facts) return [];
  const rows = [
    ["Profile", facts?.profile], ["Language model", facts?.models?.llm ?? session?.model], ["Voice", facts?.models?.tts],
    ["Hearing", facts?.models?.hearing], ["Device", facts?.device],
  ].filter(([, value]) => typeof value === "string" && value !== "");
  const list = make("dl", {}, ...rows.flatMap(([term, value]) => [make("dt", { text: term }), make("dd", { text: value })]));
  const offered = facts?.larger;
  const advice = offered
    ? `This machine can run a larger model: ${offered.models.join(" and ")}. Download it once, then start with it:`
    : "The first command says what this machine can run, the second lists the models that can be downloaded:";
  const commands = offered ? [offered.command, `assistant serve --profile ${offered.profile}`] : COMMANDS;
  const larger = make("details", { open: Boolean(offered) },
    make("summary", { text: "Larger models" }),
    make("p", { text: advice }),
    make("pre", { tabindex: "0", "aria-label": "Commands" }, make("code", { text: commands.join("\n") })));
  return [make("h3", { text: "This machine" }), list, make("p.local", { text: session?.assistant?.capsules === false
    ? "A model runs on another server, which receives the words of this talk. Your voice is heard here."
    : "Nothing you say leaves this machine." }), larger];
}
