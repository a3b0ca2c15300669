/** Draws the bar: the microphone button, what is going on, notices, and help when the microphone is not to be had. */

import { answering, byName, phase } from "../session.js";
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
  gone: {
    title: "If it has stopped, start it again:",
    steps: ["On the machine that runs it, type “assistant serve” in a terminal, or “make run” in its folder.", "This page then goes on by itself. Nothing is lost."],
  },
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
  if (link === "full") return `The assistant is talking with others, and all its places are taken. Close its page in another tab, or wait: trying again in ${seconds} s.`;
  if (link === "lost") return seconds > 1 ? `The assistant is not reachable. Trying again in ${seconds} s.` : "The assistant is not reachable. Trying again…";
  if (link === "connecting") return state.everOpen ? "Reconnecting to our talk…" : "Connecting…";
  if (microphone.status === "on" && microphone.paused) return "The microphone is paused. Tap to go on.";
  if (state.soundHeld && state.playing !== null) return "The sound is paused. Tap to go on.";
  switch (phase(state)) {
    case "hearing": return "Listening to you";
    case "thinking": return "Thinking";
    case "speaking": return microphone.status === "on" && microphone.mode === "open" && !microphone.muted ? `${name} is speaking. Just talk to interrupt.` : `${name} is speaking`;
    case "waiting": return `Say “hey ${name}” to begin`;
    case "called": return "Yes? I am listening";
    case "listening": return microphone.mode === "push" ? "Go on, I am listening" : byName(state) ? "Listening. No name is needed now" : "Listening";
    default: break;
  }
  if (microphone.status === "asking") return "Your browser asks to use the microphone";
  if (microphone.hint === "short") return "Hold the button down for as long as you speak";
  if (microphone.hint === "silent") return "I heard nothing. Is the microphone on?";
  if (microphone.mode === "push") {
    const hold = "Hold the button, or the space bar, and speak";
    return microphone.status === "on" ? (microphone.muted ? "Muted" : hold) : `${hold}. Your browser asks for the microphone first.`;
  }
  if (microphone.status === "on") return "Muted";
  return byName(state) ? `Press the button, then say “hey ${name}” to begin` : "Press the button and talk";
}

/** Whether the round button stops the reply; held down to talk it does so anyway. @param {import("../session.js").State} state */
export const stops = (state) => answering(state) && state.microphone.mode === "open";

/** @param {import("../session.js").State} state */
function micLabel(state) {
  const { microphone } = state;
  if (stops(state)) return "Stop the reply";
  if (microphone.mode === "push") return "Hold to talk";
  if (microphone.status !== "on") return "Start talking";
  return microphone.paused ? "Go on listening" : "Stop listening";
}

/** What the keyboard does now. @param {import("../session.js").State} state */
function keys(state) {
  if (!answering(state)) return "";
  return state.microphone.mode === "open" ? "Esc or Space stops it." : "Esc stops it.";
}

/** @param {{onDismiss: (id: number) => void, onOffer: (offer: import("../session.js").Offer) => void}} actions */
export function controls({ onDismiss, onOffer }) {
  let drawn = /** @type {any} */ ({});

  /** @param {import("../session.js").State} state @param {string} name */
  return function render(state, name) {
    const { microphone, items, link } = state;
    const live = microphone.status === "on" && !microphone.muted && (microphone.mode === "open" || microphone.held);
    document.body.dataset.phase = phase(state);
    document.body.dataset.link = link;
    setText(byId("phase"), sentence(state, performance.now(), name));
    setText(byId("mic-label"), micLabel(state));
    setText(byId("keys"), keys(state));
    byId("mic").classList.toggle("live", live);
    byId("mic").classList.toggle("stop", stops(state));
    byId("mode").setAttribute("aria-pressed", String(microphone.mode === "push"));
    byId("wake").hidden = !state.session?.assistant?.extensions?.includes("wake") || microphone.mode === "push";
    byId("wake").setAttribute("aria-pressed", String(byName(state)));
    byId("mute").setAttribute("aria-pressed", String(microphone.muted));
    const off = microphone.status !== "on";
    setText(byId("mute"), off ? "Listen" : microphone.muted ? "Unmute" : "Mute");
    byId("mute").hidden = off && !stops(state); // the round button starts to listen, unless it stops a reply
    byId("turns").hidden = link !== "open" || items.length === 0;
    byId("retry").hidden = !items.some((item) => item.role === "assistant" && item.kind === "message");
    byId("remembered").hidden = !state.session?.assistant?.extensions?.includes("memory");
    byId("send").disabled = link !== "open";
    const wanted = link === "lost" && state.machine?.status !== "starting" ? "gone" : microphone.help;
    if (drawn.help !== wanted) byId("help").replaceChildren(...help(wanted));
    if (drawn.notices !== state.notices) {
      byId("notices").replaceChildren(...state.notices.map((one) => make("p.notice", {},
        make("span", { text: one.text }),
        one.offer && make("button.act", { type: "button", text: one.offer.label, onclick: () => onOffer(/** @type {any} */ (one.offer)) }),
        make("button", { type: "button", text: "×", "aria-label": "Dismiss", onclick: () => onDismiss(one.id) }))));
    }
    drawn = { help: wanted, notices: state.notices };
  };
}

/** @param {string|null} kind @returns {HTMLElement[]} */
function help(kind) {
  if (kind === null) return [];
  const { title, steps } = HELP[kind] ?? HELP.failed;
  return [make("div.help", { role: "alert" }, make("p", {}, make("b", { text: title })), make("ol", {}, ...steps.map((text) => make("li", { text }))))];
}

/** @param {"device"|"loudspeaker"} id @param {string} kind as it is called @param {{id: string, label: string}[]} devices @param {string} chosen */
export function fillDevices(id, kind, devices, chosen) {
  const select = byId(id);
  const options = devices.filter((one) => one.id !== "").map((one, i) => make("option", { value: one.id, text: one.label || `${kind[0].toUpperCase()}${kind.slice(1)} ${i + 1}`, selected: one.id === chosen }));
  select.replaceChildren(...(options.some((one) => one.value === "default") ? [] : [make("option", { value: "", text: `Default ${kind}` })]), ...options);
  if (chosen) select.value = chosen;
}
