/** The chooser of language models: which one answers, which others are here, which can be fetched; one click for each. */

import { make, setText, showBytes } from "./view/dom.js";

const PATH = "/v1/models";
const LOOK_MS = 500;
const AT_WORK = ["asking", "fetching", "pausing", "cancelling"];

/**
 * @typedef {{name: string, program: string, bytes: number, answers: boolean, runs: boolean, needs_bytes: number, told: string}} Here
 * @typedef {{name: string, repo: string, bytes: number, licence: string, memory: string, fits: boolean, here: boolean, begun_bytes: number, expect: string}} Offer
 * @typedef {{phase: string, repo: string, done_bytes: number, total_bytes: number, told: string}} Fetching
 * @typedef {{phase: string, model: string, told: string}} Switching
 * @typedef {{answers: {name: string, told: string}, here: Here[], offers: Offer[], fetch: Fetching, switch: Switching}} Overview
 */

/**
 * Returns what draws the chooser into an element, in place of what stands there, if the server has one.
 * @param {string|null} token @param {() => void} onSwitched
 */
export function chooser(token, onSwitched) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  let root = /** @type {HTMLElement|null} */ (null);
  let overview = /** @type {Overview|null} */ (null);
  let looking = false;
  const line = make("p.told", { role: "status" });

  /** Raises Error with the server's sentence. @param {string} path @param {object|null} [body] */
  async function ask(path, body = null) {
    const sent = body && { method: "POST", body: JSON.stringify(body), headers: { ...headers, "Content-Type": "application/json" } };
    const answer = await fetch(PATH + path, sent ?? { headers }).catch(() => null);
    const data = await answer?.json().catch(() => null);
    if (answer?.ok) return data;
    throw new Error(sentence(data?.error?.message ?? "the assistant is not reachable"));
  }

  /** @param {HTMLElement} into */
  async function show(into) {
    root = into;
    const found = await ask("?extensions=all").catch(() => null);
    if (!found?.here) return;
    overview = found;
    draw();
    look();
  }

  /** @param {string} verb @param {object} [body] */
  async function act(verb, body = {}) {
    try {
      setText(line, "");
      take(await ask(`/${verb}`, body));
      if (!busy()) await again(); // it was over at once, as a cancelled fetch that was paused
      look();
    } catch (error) {
      setText(line, /** @type {Error} */ (error).message);
    }
  }

  /** @param {{fetch: Fetching, switch: Switching}} now */
  function take(now) {
    if (!overview) return;
    overview = { ...overview, fetch: now.fetch, switch: now.switch };
    draw();
  }

  function busy() {
    return overview !== null && (AT_WORK.includes(overview.fetch.phase) || overview.switch.phase === "switching");
  }

  async function again() {
    overview = (await ask("?extensions=all").catch(() => null)) ?? overview;
    draw();
  }

  /** Follow what is under way, to its end. While models are switched the server lets requests wait. */
  async function look() {
    if (looking) return;
    looking = true;
    while (busy()) {
      const switching = overview?.switch.phase === "switching";
      const doing = switching ? setInterval(tellDoing, LOOK_MS) : 0;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const now = await ask("?extensions=progress").catch(() => null);
      clearInterval(doing);
      if (now) take(now);
      if (switching && now && now.switch.phase !== "switching") onSwitched();
      if (!busy()) await again();
    }
    looking = false;
  }

  async function tellDoing() {
    const health = await fetch("/healthz").then((answer) => answer.json()).catch(() => null);
    if (overview?.switch.phase === "switching" && health?.doing) setText(line, `${sentence(health.doing)} The talk goes on by itself.`);
  }

  function draw() {
    if (!root || !overview) return;
    const { answers, here, offers, fetch: fetched, switch: switched } = overview;
    const focused = root.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
    const able = here.filter((one) => one.answers || one.runs);
    const unable = here.filter((one) => !one.answers && !one.runs);
    const taken = AT_WORK.includes(fetched.phase) || fetched.phase === "paused";
    const open = Boolean(root.querySelector("details[open]"));
    if (switched.phase === "failed") setText(line, sentence(`${switched.model} did not load, so ${answers.name} answers: ${switched.told}`));
    else if (fetched.phase === "failed") setText(line, sentence(fetched.told));
    else if (switched.phase === "done") setText(line, "");
    root.replaceChildren(
      make("p", {}, make("b", { text: answers.name }), " answers.", answers.told ? ` ${sentence(answers.told)}` : ""),
      line,
      fetched.phase === "idle" || fetched.phase === "done" || fetched.phase === "failed" ? "" : progress(fetched),
      list("On this machine", able.map((one) => hereRow(one, switched.phase === "switching"))),
      unable.length ? make("details", { open }, make("summary", { text: `${unable.length} more that cannot run here` }), list("", unable.map((one) => hereRow(one, true)))) : "",
      list("To fetch", offers.filter((one) => !one.here).map((one) => offerRow(one, taken))),
      make("p.kept", { text: "A choice is kept for the next start; `assistant serve --profile auto` begins without it." }),
    );
    if (focused) /** @type {HTMLElement|null} */ (root.querySelector(`[aria-label="${CSS.escape(focused)}"]`))?.focus();
  }

  /** @param {Here} one @param {boolean} still */
  function hereRow(one, still) {
    const facts = [one.program, one.bytes ? showBytes(one.bytes) : "", one.needs_bytes ? `needs ${showBytes(one.needs_bytes)} of memory` : ""].filter(Boolean).join(", ");
    return make("li", {},
      make("p", {}, make("b", { text: one.name }), make("span", { text: facts }), one.told && !one.answers ? make("span", { text: sentence(one.told) }) : null),
      one.answers ? make("span.now", { text: "answers" })
        : one.runs ? make("button", { type: "button", text: "Use", "aria-label": `Use ${one.name}`, disabled: still, onclick: () => act("switch", { model: one.name }) }) : null);
  }

  /** @param {Offer} one @param {boolean} still */
  function offerRow(one, still) {
    const facts = `${showBytes(one.bytes)} to fetch, needs ${one.memory}, licence ${one.licence}.`;
    return make("li", {},
      make("p", {}, make("b", { text: one.repo }), make("span", { text: one.fits ? `${facts} ${one.expect}` : `${facts} More than is free here.` })),
      one.fits ? make("button", { type: "button", text: one.begun_bytes ? "Go on" : "Fetch", "aria-label": `Fetch ${one.repo}`, disabled: still, onclick: () => act("fetch", { model: one.name }) }) : null);
  }

  /** @param {Fetching} now */
  function progress({ phase, repo, done_bytes: done, total_bytes: total }) {
    const halted = phase === "paused";
    const wait = phase === "pausing" || phase === "cancelling";
    const words = { asking: "Asking the hub about", pausing: "Stopping", paused: "Paused:", cancelling: "Cancelling" }[phase] ?? "Fetching";
    return make("div.fetch", {},
      make("label", {}, `${words} ${repo}`, make("progress", { max: total || 1, value: done, "aria-label": `How much of ${repo} is here` })),
      make("span", { text: total ? `${showBytes(done)} of ${showBytes(total)}` : "" }),
      make("button", { type: "button", text: halted ? "Go on" : "Pause", disabled: wait, "aria-label": halted ? "Go on fetching" : "Pause fetching", onclick: () => (halted ? act("fetch", { model: repo }) : act("pause")) }),
      make("button", { type: "button", text: "Cancel", disabled: phase === "cancelling", "aria-label": "Cancel fetching", onclick: () => act("cancel") }));
  }

  return show;
}

/** @param {string} title @param {Node[]} rows */
function list(title, rows) {
  return rows.length ? make("section", {}, title ? make("h3", { text: title }) : null, make("ul.choices", {}, ...rows)) : "";
}

/** @param {string} text */
function sentence(text) {
  return text === "" ? "" : `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
