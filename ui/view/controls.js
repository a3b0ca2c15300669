/** Draws the bar: the microphone button, what is going on, notices, and help when the microphone is not to be had. */

import { phase } from "../session.js";
import { byId, make, setText } from "./dom.js";

/** @type {Record<string, {title: string, steps: string[]}>} */
const HELP = {
  insecure: {
    title: "The browser blocks the microphone for this address.",
    steps: [
      "On the machine that runs the assistant, open http://127.0.0.1:8765 instead: browsers trust it without a certificate.",
      "On another machine, open the page over https. “assistant serve --help” says how to set that up.",
      "You can still write; replies then come as text.",
    ],
  },
  refused: {
    title: "The microphone is blocked.",
    steps: [
      "Open the site settings at the left of the address bar and set the microphone to “allow”.",
      "If the system blocks the browser, allow it in the system's privacy settings.",
      "Then press the button again. Meanwhile you can write.",
    ],
  },
  missing: { title: "No microphone was found.", steps: ["Plug one in or choose another device below, then press the button again.", "Meanwhile you can write."] },
  busy: { title: "Another program is using the microphone.", steps: ["Close it, then press the button again.", "Meanwhile you can write."] },
  failed: { title: "The microphone could not be started.", steps: ["Press the button again. If it happens every time, restart the browser.", "Meanwhile you can write."] },
};

/** @param {import("../session.js").State} state @param {number} now @param {string} name */
function sentence(state, now, name) {
  const { microphone, link, retryAt } = state;
  const seconds = retryAt === null ? 0 : Math.max(0, Math.ceil((retryAt - now) / 1000));
  if (link !== "open" && state.machine?.status === "starting") {
    return `Starting: ${state.machine.doing} (${Math.round(state.machine.uptime_s)} s)`;
  }
  if (link === "moved") return "Our talk goes on in another tab. Reload this page to bring it back here.";
  if (link === "full") return `All places are taken. Trying again in ${seconds} s.`;
  if (link === "lost") return seconds > 1 ? `The assistant is not reachable. Trying again in ${seconds} s.` : "The assistant is not reachable. Trying again…";
  if (link === "connecting") return state.everOpen ? "Reconnecting to our talk…" : "Connecting…";
  switch (phase(state)) {
    case "hearing": return "Listening to you";
    case "thinking": return "Thinking";
    case "speaking": return microphone.status === "on" && microphone.mode === "open" && !microphone.muted ? `${name} is speaking. Just talk to interrupt.` : `${name} is speaking`;
    case "listening": return microphone.mode === "push" ? "Go on, I am listening" : "Listening";
    default: break;
  }
  if (microphone.status === "asking") return "Your browser asks to use the microphone";
  if (microphone.status === "on") return microphone.muted ? "Muted" : "Hold the button, or the space bar, and speak";
  return "Press the button and talk";
}

/** @param {import("../session.js").State} state */
function micLabel({ microphone }) {
  if (microphone.status !== "on") return "Start talking";
  return microphone.mode === "push" ? "Hold to talk" : "Stop listening";
}

/** @param {{onDismiss: (id: number) => void}} actions */
export function controls({ onDismiss }) {
  let drawn = /** @type {any} */ ({});

  /** @param {import("../session.js").State} state @param {string} name */
  return function render(state, name) {
    const { microphone, items, link } = state;
    const live = microphone.status === "on" && !microphone.muted && (microphone.mode === "open" || microphone.held);
    document.body.dataset.phase = phase(state);
    document.body.dataset.link = link;
    setText(byId("phase"), sentence(state, performance.now(), name));
    setText(byId("mic-label"), micLabel(state));
    byId("mic").setAttribute("aria-pressed", String(live));
    byId("mic").classList.toggle("live", live);
    byId("mode").setAttribute("aria-pressed", String(microphone.mode === "push"));
    byId("mute").setAttribute("aria-pressed", String(microphone.muted));
    setText(byId("mute"), microphone.muted ? "Unmute" : "Mute");
    byId("mute").disabled = microphone.status !== "on";
    const open = link === "open";
    byId("undo").disabled = !open || items.length === 0;
    byId("retry").disabled = !open || !items.some((item) => item.role === "assistant" && item.kind === "message");
    byId("over").disabled = !open || items.length === 0;
    byId("send").disabled = !open;
    if (drawn.help !== microphone.help) byId("help").replaceChildren(...help(microphone.help));
    if (drawn.notices !== state.notices) {
      byId("notices").replaceChildren(...state.notices.map((one) => make("p.notice", {},
        make("span", { text: one.text }),
        make("button", { type: "button", text: "×", "aria-label": "Dismiss", onclick: () => onDismiss(one.id) }))));
    }
    drawn = { help: microphone.help, notices: state.notices };
  };
}

/** @param {string|null} kind @returns {HTMLElement[]} */
function help(kind) {
  if (kind === null) return [];
  const { title, steps } = HELP[kind] ?? HELP.failed;
  return [make("div.help", { role: "alert" }, make("p", {}, make("b", { text: title })), make("ol", {}, ...steps.map((text) => make("li", { text }))))];
}

/** @param {{id: string, label: string}[]} devices @param {string} chosen */
export function fillDevices(devices, chosen) {
  const select = byId("device");
  const options = devices.filter((one) => one.id !== "").map((one, i) => make("option", { value: one.id, text: one.label || `Microphone ${i + 1}`, selected: one.id === chosen }));
  select.replaceChildren(...(options.some((one) => one.value === "default") ? [] : [make("option", { value: "", text: "Default microphone" })]), ...options);
  if (chosen) select.value = chosen;
}
