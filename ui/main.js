/** Joins the page: one state, one talk, the views, and what the person's hands do. */

import { Microphone, inputDevices } from "./audio/capture.js";
import { Measures, exported } from "./figures.js";
import { EMPTY, phase, reduce } from "./session.js";
import { View } from "./shown.js";
import { Talk } from "./talk.js";
import { controls, fillDevices } from "./view/controls.js";
import { conversation } from "./view/conversation.js";
import { byId, setText } from "./view/dom.js";
import { picture, save } from "./view/picture.js";
import { Score, animate } from "./view/score.js";
import { drawShowing, NO_EYES, showLarger as showPicture } from "./view/shown.js";
import { state as stateView } from "./view/state.js";
import { time as timeView } from "./view/time.js";
import { welcome } from "./view/welcome.js";

const sees = () => state.session?.assistant?.sees !== false;
const KEPT_CONVERSATION = "conversation_id";
const STARTING_EVERY_MS = 300;

let state = EMPTY;
let chosen = /** @type {string|null} */ (null); // the turn whose time is shown; null follows the latest
let due = false;

/** @param {any} event */
function dispatch(event) {
  const next = reduce(state, event);
  if (next === state) return;
  state = next;
  if (view.source !== null && !sees()) {
    view.close(); // before it is told: closing draws, and the sign must not outlive the reason
    dispatch({ type: "page.notice", text: `${NO_EYES} It is off again.` });
  }
  if (state.conversationId) sessionStorage.setItem(KEPT_CONVERSATION, state.conversationId);
  if (due) return;
  due = true;
  // A hidden page gets no animation frames, but its talk goes on and its live region must too.
  if (document.hidden) setTimeout(render, 100);
  else requestAnimationFrame(render);
}

/** @param {string|null} conversationId */
function url(conversationId) {
  const { protocol, host } = location;
  const query = new URLSearchParams({ extensions: "all" });
  if (conversationId) query.set("conversation_id", conversationId);
  return `${protocol === "https:" ? "wss:" : "ws:"}//${host}/v1/realtime?${query}`;
}

/** A token in the address (`#token=…`) opens a server that asks for one; browsers can send it only like this. */
const token = new URLSearchParams(location.hash.slice(1)).get("token");
function protocols() {
  return token ? ["realtime", `openai-insecure-api-key.${token}`] : ["realtime"];
}

const score = new Score();
const talk = new Talk({
  dispatch,
  state: () => state,
  url,
  protocols: protocols(),
  view: () => view,
  onYou: (power) => score.you(power, performance.now()),
  onReply: (power, at) => score.reply(power, at),
  onMark: (kind, at) => score.mark(kind, at),
  onDevices: fillDevices,
});
const view = new View(byId("view"), () => render());
const measures = new Measures(talk.clock);

const showTurn = (/** @type {string} */ id) => {
  chosen = id;
  document.body.dataset.panel = "time";
  render();
};
const showLarger = () => {
  document.body.dataset.panel = "state";
  render();
  const summary = /** @type {HTMLElement} */ (byId("machine").querySelector("summary"));
  /** @type {HTMLDetailsElement} */ (summary.parentElement).open = true;
  summary.scrollIntoView({ block: "center" });
  summary.focus();
};
const step = (/** @type {number} */ by) => {
  const { turns, shown } = shownTurn();
  const at = turns.indexOf(shown);
  const next = at + by;
  chosen = next >= turns.length - 1 ? null : turns[Math.max(0, next)].id;
  render();
};

/** What is known of how a picture was seen stands with the turn that answered it. @param {any} item @param {any} picture */
const enlarge = (item, picture) => {
  const answer = state.items.slice(state.items.indexOf(item)).find((one) => one.role === "assistant" && one.kind === "message");
  const figures = state.turns.find((turn) => turn.id === answer?.responseId)?.timeline?.figures ?? {};
  showPicture(picture, { tokens: figures.image_tokens ?? null, ms: figures.picture_ms ?? null });
};

const drawConversation = conversation({ onTurn: showTurn, onLarger: enlarge });
const drawTime = timeView({ onTurn: showTurn, onStep: step });
const drawState = stateView({ onPersona: (name) => talk.persona(name), onVoice: (name) => talk.voice(name), onVoices: () => showVoices() });
/** Loaded when it is asked for: most who open the page never do. */
const loadVoices = async () => {
  const [{ voiceDialog }, { Voices }] = await Promise.all([import("./view/voices.js"), import("./voices.js")]);
  return voiceDialog({
    voices: new Voices(token),
    open: async (onPiece) => {
      const own = talk.apart(); // what is read aloud is not said to the assistant
      const microphone = await Microphone.open({ deviceId: state.microphone.deviceId, raw: true, onPiece, onEnded: () => {} }).catch((error) => {
        own();
        throw error;
      });
      return { close: () => microphone.close().finally(own) };
    },
    onUse: (name) => talk.voice(name),
    onChanged: () => talk.askPersonas(),
  });
};
let voicesLoaded = /** @type {ReturnType<typeof loadVoices>|null} */ (null);
const showVoices = async () => (await (voicesLoaded ??= loadVoices()))();
const drawControls = controls({ onDismiss: (id) => dispatch({ type: "page.dismiss", id }) });
const drawWelcome = welcome({ onAsk: (text) => talk.write(text), onLarger: showLarger });

/** Who answers, or answered. @param {string|null} [persona] */
function nameOf(persona = state.session?.assistant?.persona ?? null) {
  const known = state.personas?.personas.find((one) => one.name === persona);
  return known?.title || (persona && persona !== "default" ? persona : "Assistant");
}

let measured = /** @type {any[]} */ ([]);
let answered = /** @type {any[]} */ ([]); // the turns that have been heard of: those with a first sound

/** @returns {{turns: any[], shown: any}} the same array while no turn changed */
function shownTurn() {
  const all = measures.of(state.turns);
  if (all !== measured) {
    measured = all;
    answered = all.filter((turn) => turn.ttfaMs !== null);
  }
  return { turns: answered, shown: answered.find((turn) => turn.id === chosen) ?? answered.at(-1) ?? null };
}

function render() {
  due = false;
  const name = nameOf();
  const { turns, shown } = shownTurn();
  drawControls(state, name);
  drawShowing(view.source, state.link === "open", sees());
  drawWelcome(state);
  drawConversation(state, turns, nameOf);
  drawTime(turns, shown);
  drawState(state);
  setText(byId("name"), name);
  setText(byId("link"), state.link === "open" ? [state.machine?.profile, state.machine?.device].filter((fact) => typeof fact === "string").join(" · ") : "");
  for (const button of document.querySelectorAll(".panels button")) {
    button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.panel === document.body.dataset.panel));
  }
}

// ---------------------------------------------------------------------------------------------- hands

const mic = byId("mic");
const pushing = () => state.microphone.mode === "push";

mic.addEventListener("click", () => !pushing() && talk.toggleMicrophone());
mic.addEventListener("pointerdown", (event) => {
  if (!pushing()) return;
  mic.setPointerCapture(event.pointerId);
  talk.press();
});
for (const end of ["pointerup", "pointercancel"]) mic.addEventListener(end, () => talk.release());

/** Whether a key belongs to the element that has it. @param {EventTarget|null} target */
const takesKeys = (target) => target instanceof HTMLElement && target !== mic && target.matches("input, select, textarea, button, summary, a, [tabindex='0']");

addEventListener("keydown", (event) => {
  if (byId("larger").open || byId("voices").open) return; // their keys are their own
  if (event.key === "Escape") talk.hush();
  if (event.code !== "Space" || event.repeat || takesKeys(event.target) || !pushing()) return;
  event.preventDefault();
  talk.press();
});
addEventListener("keyup", (event) => {
  if (event.code !== "Space" || !pushing() || !state.microphone.held) return;
  event.preventDefault();
  talk.release();
});
addEventListener("blur", () => talk.release());

byId("mode").addEventListener("click", () => talk.setMode(pushing() ? "open" : "push"));
byId("mute").addEventListener("click", () => talk.mute(!state.microphone.muted));
byId("device").addEventListener("change", (/** @type {any} */ event) => talk.chooseDevice(event.target.value));
byId("stop").addEventListener("click", () => talk.hush());
byId("undo").addEventListener("click", () => talk.undo());
byId("retry").addEventListener("click", () => talk.retry());
byId("over").addEventListener("click", () => {
  chosen = null;
  sessionStorage.removeItem(KEPT_CONVERSATION);
  talk.startOver();
});
byId("write").addEventListener("submit", (/** @type {any} */ event) => {
  event.preventDefault();
  const field = byId("text");
  const text = field.value.trim();
  if (text === "" || state.link !== "open") return;
  field.value = "";
  talk.write(text);
});
for (const button of document.querySelectorAll(".panels button")) {
  button.addEventListener("click", () => {
    document.body.dataset.panel = /** @type {HTMLElement} */ (button).dataset.panel ?? "talk";
    render();
  });
}
// ------------------------------------------------------------------------------------------- showing

/** @param {DataTransfer|null} data */
const picturesIn = (data) => [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));
/** @param {Iterable<File>} files */
const show = (files) => state.link === "open" && talk.show(files);
const toggleView = async (/** @type {import("./shown.js").Source} */ source) => {
  if (view.source === source) return view.close();
  if (!sees()) return dispatch({ type: "page.notice", text: NO_EYES });
  const trouble = await view.open(source);
  return trouble === null ? undefined : dispatch({ type: "page.notice", text: trouble });
};

byId("choose").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", (/** @type {any} */ event) => {
  show([...event.target.files]);
  event.target.value = ""; // the same file may be chosen again
});
byId("camera").addEventListener("click", () => toggleView("camera"));
byId("screen").addEventListener("click", () => toggleView("screen"));
byId("screen").hidden = navigator.mediaDevices?.getDisplayMedia === undefined; // phones share no windows
byId("now").addEventListener("click", () => talk.showNow());
byId("off").addEventListener("click", () => view.close());
addEventListener("paste", (event) => show(picturesIn(event.clipboardData)));
for (const over of ["dragenter", "dragover"]) {
  addEventListener(over, (/** @type {any} */ event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
}
addEventListener("dragleave", (event) => event.relatedTarget === null && document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault(); // else the browser leaves the page for the file
  const found = picturesIn(event.dataTransfer);
  if (found.length === 0) dispatch({ type: "page.notice", text: "This browser cannot read that file as a picture." });
  else show(found);
});
byId("save-json").addEventListener("click", () => {
  const data = exported(state, measures.of(state.turns), new Date().toISOString());
  save(new Blob([JSON.stringify(data, null, 2)], { type: "application/json" }), "session.json");
});
byId("save-picture").addEventListener("click", async () => {
  const { turns, shown } = shownTurn();
  if (shown) save(await picture(shown, turns, nameOf()), `turn-${shown.n}.png`);
});

navigator.mediaDevices?.addEventListener?.("devicechange", async () => fillDevices(await inputDevices(), state.microphone.deviceId));
setInterval(() => state.link !== "open" && render(), 1000); // the countdown to the next try
animate(score, () => state.playing !== null || state.microphone.status === "on" || phase(state) === "thinking");

/** What runs here, for the first-run panel; a server that does not say is no worse a server. */
async function askMachine() {
  const answer = await fetch("/healthz").catch(() => null);
  const facts = answer?.ok ? await answer.json() : null;
  if (facts) dispatch({ type: "page.machine", facts });
  if (facts?.status === "starting") setTimeout(askMachine, STARTING_EVERY_MS);
}

talk.wire.conversationId = sessionStorage.getItem(KEPT_CONVERSATION);
talk.wire.connect();
askMachine();
render();
performance.mark("interactive");
