/** Draws who answers: a persona with its voice is one choice; a voice that was added can speak for any of them. */

import { showMs } from "../timeline.js";
import { byId, make } from "./dom.js";

/** @param {{onPersona: (name: string) => void, onVoice: (name: string) => void, onVoices: () => void, onLanguage: (code: string) => void}} actions */
export function who({ onPersona, onVoice, onVoices, onLanguage }) {
  const root = byId("personas");
  let drawn = /** @type {any} */ ({});

  /** @param {import("../session.js").State} state */
  return function render(state) {
    const { personas, switchMs, session, language } = state;
    if (drawn.personas === personas && drawn.switchMs === switchMs && drawn.session === session && drawn.language === language) return;
    drawn = { personas, switchMs, session, language };
    const focused = root.contains(document.activeElement) ? document.activeElement?.id : null;
    root.replaceChildren(...choices(state, onPersona, onVoice, onVoices), ...languages(state, onLanguage));
    if (focused) document.getElementById(focused)?.focus(); // the keyboard stays with the control that had it
  };
}

/** The persona whose own voice this is, if another than the one that speaks. @param {import("../session.js").State} state @param {string} voice */
export function ownerOf({ personas }, voice) {
  return personas?.personas.find((one) => one.voice === voice && one.name !== personas.current)?.name ?? null;
}

/** @param {import("../session.js").State} state @param {(name: string) => void} onPersona @param {(name: string) => void} onVoice @param {() => void} onVoices */
function choices({ personas, switchMs, session }, onPersona, onVoice, onVoices) {
  if (!personas || personas.personas.length === 0) return [make("p.empty", { text: "Not connected yet." })];
  const list = personas.personas.map(({ name, title, description }) => {
    const id = `persona-${name}`;
    const took = switchMs?.name === name ? make("span.took", { text: `ready in ${showMs(switchMs.ms)}` }) : null;
    return make("div.persona", {},
      make("input", { type: "radio", name: "persona", id, value: name, checked: name === personas.current, onchange: () => onPersona(name) }),
      make("label", { for: id }, make("b", { text: title || name }), make("span", { text: description || "" }), took));
  });
  const own = personas.personas.find((one) => one.name === personas.current)?.voice ?? "";
  const added = personas.voices.filter((name) => !personas.personas.some((one) => one.voice === name));
  const current = session?.audio?.output?.voice;
  const voice = added.length === 0 ? [] : [
    make("label", { for: "voice", text: "In the voice" }),
    make("select", { id: "voice", onchange: (event) => onVoice(event.target.value) },
      own ? make("option", { value: own, text: "of their own", selected: current === own }) : null,
      ...added.map((name) => make("option", { value: name, text: name, selected: name === current })))];
  return [
    make("fieldset", {}, make("legend", { text: "Who answers" }), ...list),
    make("div.voice", {}, ...voice, make("button", { type: "button", id: "all-voices", text: "Hear, add or remove voices", onclick: onVoices }))];
}

/** The languages to choose from: those that ears, model and voice know, or, where that is not known, those of this browser. @param {import("../session.js").State} state @param {(code: string) => void} onLanguage */
function languages({ session, language }, onLanguage) {
  const known = session?.assistant?.languages;
  if (known === undefined) return [];
  const current = base(language ?? "en");
  const codes = known ?? [...new Set([current, "en", ...navigator.languages.map(base)])];
  if (codes.length < 2) return [];
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  return [make("label", { for: "language", text: "Language" }),
    make("select", { id: "language", onchange: (/** @type {any} */ event) => onLanguage(event.target.value) },
      ...codes.map((/** @type {string} */ code) => make("option", { value: code, text: names.of(code) ?? code, selected: code === current })))];
}

/** A language's code without its region. @param {string} code */
const base = (code) => code.split("-")[0].toLowerCase();
