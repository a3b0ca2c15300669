/** Draws which model answers, and what a better one takes: what fits this machine, its size, and what to type. */

import { byId, make, setText } from "./dom.js";

/** Profiles of which a guest should know that they are small. */
const SMALL = "tiny";

/** @param {Record<string, any>|null} machine @returns {{small: boolean, line: string, more: string}|null} */
export function modelLine(machine) {
  const name = machine?.models?.llm;
  if (!name) return null;
  const small = machine.profile === SMALL && !machine.chosen;
  return small
    ? { small, line: "This is a small model: it tells the time, sets timers, does sums, keeps lists and notes, and knows little else.", more: "A better one is one click away." }
    : { small, line: `${name} answers here.`, more: "Other models" };
}

/** @param {HTMLElement} root where the header names the model @param {(into: HTMLElement) => void} choose draws more, if the server lets models be chosen */
export function better(root, choose) {
  const button = make("button", { type: "button", id: "model", onclick: () => show(), hidden: true });
  root.append(button);
  let machine = /** @type {Record<string, any>|null} */ (null);

  function show() {
    byId("better-told").replaceChildren(...told(machine));
    byId("better").showModal();
    choose(byId("better-told"));
  }

  /** @param {import("../session.js").State} state */
  function render(state) {
    if (state.machine === machine) return;
    machine = state.machine;
    const known = modelLine(machine);
    button.hidden = known === null;
    if (known) setText(button, known.small ? "small model" : machine?.models.llm);
  }

  return { render, show };
}

/** @param {Record<string, any>|null} machine */
function told(machine) {
  const offered = machine?.larger;
  const runs = make("p", {}, "Here runs ", make("b", { text: machine?.models?.llm ?? "a model" }), ". A larger one knows more and talks more freely.");
  if (!offered) {
    return [runs, make("p", { text: "This machine has no free memory for a larger one now. What could run here, and what it takes, is listed by:" }),
      command("assistant doctor"), command("assistant pull")];
  }
  const size = offered.download_gb ? `, ${offered.download_gb} GB to download once` : "";
  return [runs,
    make("p", {}, "This machine has room for ", make("b", { text: offered.models.join(" and ") }), `${size}. Type this in a terminal on the machine that runs the assistant:`),
    command(offered.command),
    make("p", { text: "Then stop the assistant with Ctrl-C and start it again. It takes the best model that fits:" }),
    command(`assistant serve --profile ${offered.profile}`),
    make("p", { text: "Your talks, timers and lists stay." })];
}

/** A line to type, and a button that copies it. @param {string} text */
function command(text) {
  const copy = make("button", { type: "button", text: "Copy", "aria-label": `Copy: ${text}`, onclick: async () => {
    const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    if (!done) getSelection()?.selectAllChildren(code);
    setText(copy, done ? "Copied" : "Selected");
  } });
  const code = make("code", { text });
  return make("div.command", {}, make("pre", { tabindex: "0", "aria-label": "Command" }, code), copy);
}
