/** Joins the page: one state, one talk, the views, and what the person's hands do. */

import { Microphone, soundDevices } from "./audio/capture.js";
import { Playback } from "./audio/playback.js";
import { Asker } from "./asker.js";
import { Awake } from "./awake.js";
import { Measures, exported } from "./figures.js";
import { Household } from "./household.js";
import { pictures, sees } from "./pictures.js";
import { title } from "./running.js";
import { MemoryFile } from "./memory.js";
import { chooser } from "./models.js";
import { EMPTY, answering, byName, phase, reduce, unheardOf } from "./session.js";
import { View } from "./shown.js";
import { Talk } from "./talk.js";
import { askForToken, ownToken } from "./token.js";
import { better, modelLine } from "./view/better.js";
import { controls, fillDevices, stops } from "./view/controls.js";
import { conversation } from "./view/conversation.js";
import { byId, setText } from "./view/dom.js";
import { picture, save } from "./view/picture.js";
import { pops } from "./view/pop.js";
import { running } from "./view/running.js";
import { Score, animate } from "./view/score.js";
import { NO_EYES, drawShowing, showLarger as showPicture } from "./view/shown.js";
import { state as stateView } from "./view/state.js";
import { time as timeView } from "./view/time.js";
import { welcome } from "./view/welcome.js";
import { ownerOf, who } from "./view/who.js";
import { Bell } from "./bell.js";

const KEPT_CONVERSATION = "conversation_id";
const KEPT_UNHEARD = "unheard"; // a reload is an interruption, and shows like one
const KEPT_SIDE = "side"; // whether Time and State are open
const STARTING_EVERY_MS = 300;

let state = EMPTY;
let chosen = /** @type {string|null} */ (null); // the turn whose time is shown; null follows the latest
let due = false;

/** @param {any} event */
function dispatch(event) {
  if (event.error?.code === "server_starting") askMachine();
  const next = reduce(state, event);
  if (next === state) return;
  state = next;
  if (view.source !== null && !sees(state)) {
    view.close(); // before it is told: closing draws, and the sign must not outlive the reason
    dispatch({ type: "page.notice", text: `${NO_EYES} It is off again.` });
  }
  if (event.type === "page.link" && event.link === "lost" && !state.everOpen) askForToken(asker);
  if (state.conversationId) sessionStorage.setItem(KEPT_CONVERSATION, state.conversationId);
  bell.follow(state.rang); // not when it is drawn: a hidden page is not
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

const token = ownToken();
function protocols() {
  return token ? ["realtime", `openai-insecure-api-key.${token}`] : ["realtime"];
}

const asker = new Asker(token);
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
  onDevices: () => listDevices(),
  onKept: () => household.look(),
});
const view = new View(byId("view"), () => render());
const bell = new Bell();
const household = new Household(asker, { dispatch, state: () => state });
const measures = new Measures(talk.clock);
const awake = new Awake(navigator.wakeLock);

/** Time and State are for those who want to know, and stay as they were left. @param {boolean} open */
const showSide = (open) => {
  document.body.dataset.side = open ? "open" : "closed";
  localStorage.setItem(KEPT_SIDE, document.body.dataset.side);
  byId("details").setAttribute("aria-expanded", String(open));
};
const showTurn = (/** @type {string} */ id) => {
  chosen = id;
  showSide(true);
  render();
  byId("time").scrollIntoView({ block: "start" });
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

const memory = new MemoryFile(asker);
const takeOut = async (/** @type {string} */ text) => {
  try {
    await memory.change({ take_out: text });
    dispatch({ type: "page.takenOut", text });
  } catch (error) {
    dispatch({ type: "page.notice", text: /** @type {Error} */ (error).message });
  }
};
const drawConversation = conversation({ onTurn: showTurn, onLarger: enlarge, onAnswer: (id, allowed) => talk.answer(id, allowed), onTakeOut: takeOut });
const drawTime = timeView({ onTurn: showTurn, onStep: step });
const drawState = stateView();
const useVoice = (/** @type {string} */ name) => {
  const owner = ownerOf(state, name); // a persona and its voice are one choice
  if (owner === null) talk.voice(name);
  else talk.persona(owner);
};
const drawWho = who({ onPersona: (name) => talk.persona(name), onVoice: (name) => talk.voice(name), onVoices: () => showVoices(), onLanguage: (code) => talk.language(code) });
/** Loaded when it is asked for: most who open the page never do. */
const loadVoices = async () => {
  const [{ voiceDialog }, { Voices }] = await Promise.all([import("./view/voices.js"), import("./voices.js")]);
  return voiceDialog({
    voices: new Voices(asker),
    open: async (onPiece) => {
      const own = talk.apart(); // what is read aloud is not said to the assistant
      const microphone = await Microphone.open({ deviceId: state.microphone.deviceId, raw: true, onPiece, onEnded: () => {} }).catch((error) => {
        own();
        throw error;
      });
      return { close: () => microphone.close().finally(own) };
    },
    onUse: useVoice,
    onChanged: () => talk.askPersonas(),
  });
};
let voicesLoaded = /** @type {ReturnType<typeof loadVoices>|null} */ (null);
const closePops = pops();
const showVoices = async () => {
  closePops();
  await (await (voicesLoaded ??= loadVoices()))();
};
const loadTalks = async () => {
  const [{ talkDialog }, { Talks }] = await Promise.all([import("./view/talks.js"), import("./talks.js")]);
  return talkDialog({ talks: new Talks(asker), current: () => state.conversationId, onOpen: (id) => reopen(id), onLeave: () => startOver() });
};
let talksLoaded = /** @type {ReturnType<typeof loadTalks>|null} */ (null);
const showTalks = async () => (await (talksLoaded ??= loadTalks()))();
const loadMemory = async () => {
  const { memoryDialog } = await import("./view/memory.js");
  const small = () => modelLine(state.machine)?.small ?? false;
  return memoryDialog({ memory, current: () => state.conversationId, small, onOpen: (id) => reopen(id) });
};
let memoryLoaded = /** @type {ReturnType<typeof loadMemory>|null} */ (null);
const showMemory = async () => (await (memoryLoaded ??= loadMemory()))();
const drawControls = controls({
  onDismiss: (id) => dispatch({ type: "page.dismiss", id }),
  onOffer: ({ what, id, removed }) => (what === "reopen" ? reopen(/** @type {string} */ (id)) : household.putBack(removed)),
});
const drawRunning = running({
  onRemove: (key, told) => household.remove(key, told),
  onAdjust: (id, change) => household.adjust(id, change),
  onNoticed: () => household.noticed(),
  mayNotify: () => bell.mayAsk,
  onNotify: async () => {
    await bell.ask();
    render();
  },
});
const model = better(byId("models"), chooser(token, askMachine));
const drawWelcome = welcome({ onAsk: (text) => talk.write(text), onBetter: () => model.show() });

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
  drawShowing(view.source, state.link === "open", sees(state));
  drawWelcome(state, name);
  drawConversation(state, turns, nameOf);
  drawTime(turns, shown);
  drawState(state);
  drawWho(state);
  drawRunning(state, performance.now());
  awake.follow(!document.hidden && (state.microphone.status === "on" || state.playing !== null));
  document.title = title(state.household, state.rang, name, performance.now());
  model.render(state);
  setText(byId("name"), name);
}

// ---------------------------------------------------------------------------------------------- hands

const mic = byId("mic");
const pushing = () => state.microphone.mode === "push";

mic.addEventListener("click", () => {
  if (stops(state)) talk.hush();
  else if (!pushing()) talk.toggleMicrophone();
});
mic.addEventListener("pointerdown", (event) => {
  if (!pushing()) return;
  mic.setPointerCapture(event.pointerId);
  talk.press();
});
for (const end of ["pointerup", "pointercancel"]) mic.addEventListener(end, () => talk.release());

/** Whether a key belongs to the element that has it. @param {EventTarget|null} target */
const takesKeys = (target) => target instanceof HTMLElement && target !== mic && target.matches("input, select, textarea, button, summary, a, [tabindex='0']");

addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return; // its keys are its own
  if (event.key === "Escape") talk.hush();
  if (event.code !== "Space" || event.repeat || takesKeys(event.target)) return;
  if (pushing()) talk.press();
  else if (answering(state) && event.target !== mic) talk.hush(); // on the button itself, Space is its click
  else return;
  event.preventDefault();
});
addEventListener("keyup", (event) => {
  if (event.code !== "Space" || !pushing() || !state.microphone.held) return;
  event.preventDefault();
  talk.release();
});
addEventListener("blur", () => talk.release());
// Any press lets sound go on that the system has suspended.
for (const press of ["pointerdown", "keydown"]) addEventListener(press, () => state.soundHeld && talk.speaker.wake(), true);

byId("mode").addEventListener("click", () => talk.setMode(pushing() ? "open" : "push"));
byId("wake").addEventListener("click", () => talk.byName(!byName(state)));
byId("mute").addEventListener("click", () => (talk.listener.open ? talk.listener.mute(!state.microphone.muted) : talk.toggleMicrophone()));
byId("undo").addEventListener("click", () => talk.undo());
byId("retry").addEventListener("click", () => talk.retry());
byId("over").addEventListener("click", () => {
  const before = startOver();
  if (before !== null) dispatch({ type: "page.notice", text: "A new talk. The one before is kept.", offer: { label: "Undo", what: "reopen", id: before } });
});
byId("all-talks").addEventListener("click", showTalks);
byId("remembered").addEventListener("click", showMemory);
byId("details").addEventListener("click", () => showSide(document.body.dataset.side !== "open"));
byId("write").addEventListener("submit", (/** @type {any} */ event) => {
  event.preventDefault();
  const field = byId("text");
  const text = field.value.trim();
  if (text === "" || state.link !== "open") return;
  field.value = "";
  talk.write(text);
});
byId("save-json").addEventListener("click", () => {
  const data = exported(state, measures.of(state.turns), new Date().toISOString());
  save(new Blob([JSON.stringify(data, null, 2)], { type: "application/json" }), "session.json");
});
byId("save-picture").addEventListener("click", async () => {
  const { turns, shown } = shownTurn();
  if (shown) save(await picture(shown, turns, nameOf()), `turn-${shown.n}.png`);
});

// ------------------------------------------------------------------------------------------- talks

/** Leave this talk, which stays kept, and begin another. @returns {string|null} the one before */
function startOver() {
  chosen = null;
  sessionStorage.removeItem(KEPT_CONVERSATION);
  return talk.startOver();
}

/** Go on with a talk that is kept. @param {string} conversationId */
function reopen(conversationId) {
  chosen = null;
  talk.reopen(conversationId);
}

// ------------------------------------------------------------------------------------------- sound

const { speaker } = talk;
const drawVolume = () => {
  byId("volume").value = String(Math.round(speaker.volume * 100));
  byId("quiet").setAttribute("aria-pressed", String(speaker.quiet));
  setText(byId("quiet"), speaker.quiet ? "Unmute replies" : "Mute replies");
};
byId("volume").addEventListener("input", (/** @type {any} */ event) => {
  speaker.setVolume(event.target.value / 100);
  drawVolume();
});
byId("quiet").addEventListener("click", () => {
  speaker.setQuiet(!speaker.quiet);
  drawVolume();
});
byId("device").addEventListener("change", (/** @type {any} */ event) => talk.listener.choose(event.target.value));
byId("loudspeaker").addEventListener("change", (/** @type {any} */ event) => speaker.setSink(event.target.value));
for (const part of [byId("loudspeaker"), document.querySelector("label[for='loudspeaker']")]) /** @type {HTMLElement} */ (part).hidden = !Playback.choosesSink;

async function listDevices() {
  fillDevices("device", "microphone", await soundDevices("audioinput"), state.microphone.deviceId);
  fillDevices("loudspeaker", "loudspeaker", await soundDevices("audiooutput"), byId("loudspeaker").value);
}

navigator.mediaDevices?.addEventListener?.("devicechange", listDevices);
setInterval(() => {
  household.tick();
  if (state.link !== "open" || state.household?.rings.length || state.rang.length > 0) render(); // what counts down
}, 1000);
for (const sign of ["pointerdown", "keydown"]) addEventListener(sign, () => household.noticed());
animate(score, () => state.playing !== null || state.microphone.status === "on" || phase(state) === "thinking");

let asking = 0;

/** What runs here, for the first-run panel, and what a server that starts is doing; one that does not say is no worse. */
async function askMachine() {
  const answer = await fetch("/healthz").catch(() => null);
  const facts = answer?.ok ? await answer.json() : null;
  const started = state.machine?.status === "starting" && facts?.status !== "starting";
  if (facts || started) dispatch({ type: "page.machine", facts });
  clearTimeout(asking);
  if (facts?.status === "starting") asking = setTimeout(askMachine, STARTING_EVERY_MS);
  if (facts && started) talk.wire.hurry();
}

addEventListener("visibilitychange", render); // the screen may go dark, or not any more
pictures({ talk, view, state: () => state, dispatch });
drawVolume();
showSide(localStorage.getItem(KEPT_SIDE) === "open");
dispatch({ type: "page.unheard", words: JSON.parse(sessionStorage.getItem(KEPT_UNHEARD) ?? "{}") });
addEventListener("pagehide", () => sessionStorage.setItem(KEPT_UNHEARD, JSON.stringify(unheardOf(state))));
talk.wire.conversationId = sessionStorage.getItem(KEPT_CONVERSATION);
talk.wire.connect();
askMachine();
render();
performance.mark("interactive");
