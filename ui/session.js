/**
 * One talk as the page sees it: a pure reducer from events to view state.
 *
 * Events are the server's, as they come off the wire, and the page's own, whose types begin with `page.`
 * (see `PageEvent`). The state is never changed in place: what did not change keeps its identity, so a view
 * can skip what it has drawn. Audio deltas do not come here; the page tells of them as `page.audio`.
 */

import { rangBetween, rungSoFar } from "./running.js";

/**
 * @typedef {{at: number, ms: number}} Mark from this character on, the sound begins at ms
 * @typedef {{
 *   id: string, kind: "message"|"call"|"kept"|"asked", role: "user"|"assistant"|"system", status: string, text: string,
 *   partial: boolean, stable: number, committed: boolean, spoken: boolean, marks: Mark[], audioMs: number, audioDone: boolean,
 *   heardMs: number|null, cut: {ms: number, transcript: string|null}|null, responseId: string|null,
 *   tool: {name: string, callId: string, args: string, output: string|null}|null, persona: string|null, nod: boolean, at: number,
 *   pictures: Picture[], shown: boolean,
 * }} Item `kept`: a sentence that was added to the memory, or taken out (status `gone`). `asked`: a call that the person is asked
 *   about, whose status is `waiting`, `allowed` or `refused`; its `text` is the server, its `callId` the approval's id
 * @typedef {{url: string|null, width: number, height: number, frame: boolean}} Picture as it was sent; null: not known here
 * @typedef {{
 *   id: string, n: number, status: string, reason: string|null, userItemId: string|null, typed: boolean,
 *   askedAt: number|null, receivedAt: number|null, renderedAt: number|null,
 *   silentAt: number|null, timeline: any, yieldMs: number|null, memory: Memory[], undone: boolean,
 * }} Turn
 * @typedef {{what: string, engine: string, position: number, ms: number}} Memory
 * @typedef {{id: number, text: string, code: string|null, offer: Offer|null}} Notice
 * @typedef {{label: string, what: "reopen"|"put back", id?: string, removed?: any}} Offer what a press does about it: open a talk
 *   again, or put back what was removed
 * @typedef {{
 *   status: string, muted: boolean, paused: boolean, mode: "open"|"push", held: boolean, hint: "short"|"silent"|null,
 *   label: string, deviceId: string, help: string|null,
 * }} Ear `paused`: the system took the microphone away; `hint`: why a push said nothing
 * @typedef {typeof EMPTY} State
 */

const QUIET_CODES = new Set(["response_cancel_not_active", "input_audio_buffer_commit_empty", "conversation_moved", "session_limit_reached", "server_starting"]);

export const EMPTY = Object.freeze({
  link: /** @type {"connecting"|"open"|"lost"|"full"|"moved"} */ ("connecting"),
  retryAt: /** @type {number|null} */ (null),
  everOpen: false,
  session: /** @type {any} */ (null),
  conversationId: /** @type {string|null} */ (null),
  serverState: "idle",
  gate: /** @type {"waiting"|"called"|"open"} where the assistant listens by name */ ("open"),
  hearing: false,
  playing: /** @type {string|null} */ (null),
  speaker: false,
  soundHeld: false,
  microphone: /** @type {Ear} */ (
    { status: "off", muted: false, paused: false, mode: "open", held: false, hint: null, label: "", deviceId: "", help: null }
  ),
  responseId: /** @type {string|null} */ (null),
  items: /** @type {Item[]} */ ([]),
  turns: /** @type {Turn[]} */ ([]),
  askedAt: /** @type {number|null} */ (null),
  typedAsk: false,
  lastUserId: /** @type {string|null} */ (null),
  memory: /** @type {Memory[]} */ ([]),
  personas: /** @type {{current: string, personas: any[], voices: string[]}|null} */ (null),
  language: /** @type {string|null} the code of the language that was chosen for the talk */ (null),
  switchMs: /** @type {{name: string, ms: number}|null} */ (null),
  capsules: /** @type {{capsules: any[], tiers: Record<string, any>, at: number}|null} */ (null),
  machine: /** @type {Record<string, any>|null} what /healthz says */ (null),
  household: /** @type {import("./running.js").Household|null} */ (null),
  rang: /** @type {import("./running.js").Ring[]} what nobody has seen to yet */ ([]),
  clock: /** @type {{offset: number, uncertainty: number}|null} */ (null),
  player: { underruns: 0, cushionMs: 0 },
  notices: /** @type {Notice[]} */ ([]),
  noticeCount: 0,
  unheard: /** @type {Record<string, string>} whole texts of interrupted replies, from before a reload */ ({}),
});

/** Tools that the server ran by itself are no items of the conversation; the page keeps them under names of its own. */
const OWN_TOOL = "tool:";

/** A question about a call holds until the next reply begins. @param {State} state @param {(item: Item) => boolean} which @param {"allowed"|"refused"} status @returns {State} */
function settle(state, which, status) {
  const found = state.items.findLast((item) => item.kind === "asked" && item.status !== "allowed" && which(item));
  return found ? editItem(state, found.id, (item) => ({ ...item, status })) : state;
}

/** Sentences are no longer remembered. @param {State} state @param {string[]} texts @param {string} responseId @param {number} at @returns {State} */
function takenOut(state, texts, responseId, at) {
  return texts.reduce((next, text) => {
    const line = next.items.findLast((item) => item.kind === "kept" && item.text === text);
    if (line) return editItem(next, line.id, (item) => ({ ...item, status: "gone" }));
    return insert(next, blank(`${OWN_TOOL}gone-${responseId}-${next.items.length}`, { kind: "kept", status: "gone", text, responseId, at }), null);
  }, state);
}

/** @type {Picture[]} */
const NONE = [];

/** @param {string} id @param {Partial<Item>} fields @returns {Item} */
function blank(id, fields) {
  return {
    id, kind: "message", role: "assistant", status: "in_progress", text: "", partial: false, stable: 0, committed: true,
    spoken: false, marks: [], audioMs: 0, audioDone: false, heardMs: null, cut: null, responseId: null,
    tool: null, persona: null, nod: false, at: 0, pictures: NONE, shown: true, ...fields,
  };
}

/** @param {State} state @param {string} id @param {(item: Item) => Item} change @returns {State} */
function editItem(state, id, change) {
  const index = state.items.findIndex((item) => item.id === id);
  if (index < 0) return state;
  const item = change(state.items[index]);
  return item === state.items[index] ? state : { ...state, items: state.items.with(index, item) };
}

/** @param {State} state @param {string|null} id @param {Partial<Turn>} fields @returns {State} */
function editTurn(state, id, fields) {
  const index = state.turns.findIndex((turn) => turn.id === id);
  if (index < 0) return state;
  return { ...state, turns: state.turns.with(index, { ...state.turns[index], ...fields }) };
}

/** @param {State} state @param {Item} item @param {string|null|undefined} after @returns {State} */
function insert(state, item, after) {
  const items = [...state.items];
  let index = after === "root" ? -1 : items.findIndex((other) => other.id === after);
  const behind = after && (index >= 0 || after === "root");
  while (behind && items[index + 1]?.id.startsWith(OWN_TOOL)) index += 1; // the server's order knows no such lines
  if (behind) items.splice(index + 1, 0, item);
  else items.push(item);
  return { ...state, items };
}

/** The words of a wire item. @param {any} wire @returns {{text: string|null, spoken: boolean}} */
function words(wire) {
  let text = null;
  let spoken = false;
  for (const part of wire.content ?? []) {
    const piece = part.text ?? part.transcript;
    if (typeof piece === "string") text = (text ?? "") + piece;
    if (part.type === "output_audio" || part.type === "input_audio") spoken = true;
  }
  return { text, spoken };
}

/** @param {any} wire @returns {Picture[]} */
function picturesOf(wire) {
  if (!Array.isArray(wire.pictures) || wire.pictures.length === 0) return NONE;
  return wire.pictures.map((/** @type {any} */ one) => ({ url: one.image_url ?? null, width: one.width, height: one.height, frame: one.frame === true }));
}

/** A reply that was cut before the page was loaded anew: what was not heard of it is struck out again. @param {State} state @param {Item} item @returns {Item} */
function withUnheard(state, item) {
  const whole = state.unheard[item.id];
  if (!whole || item.status !== "incomplete" || whole.length <= item.text.length || !whole.startsWith(item.text)) return item;
  return { ...item, text: whole, spoken: true, cut: { ms: 0, transcript: item.text } };
}

/** The whole texts of replies of which not all was heard, for the page that comes after a reload. @param {State} state @returns {Record<string, string>} */
export function unheardOf(state) {
  const cut = state.items.filter((item) => item.role === "assistant" && item.kind === "message" && (item.cut !== null || item.id === state.playing || item.status === "in_progress"));
  return Object.fromEntries(cut.map((item) => [item.id, item.text]));
}

/** @param {State} state @param {any} wire @param {string|null|undefined} after @param {boolean} done @param {number} at */
function upsert(state, wire, after, done, at) {
  if (!wire || typeof wire.id !== "string") return state;
  if (wire.type === "function_call_output") return answerCall(state, wire);
  const call = wire.type === "function_call";
  const { text, spoken } = words(wire);
  const known = state.items.find((item) => item.id === wire.id);
  const pictures = picturesOf(wire);
  const status = wire.status ?? (done ? "completed" : known?.status ?? "in_progress");
  const tool = call
    ? { name: wire.name ?? "", callId: wire.call_id ?? "", args: wire.arguments ?? known?.tool?.args ?? "", output: known?.tool?.output ?? null }
    : null;
  if (!known) {
    const role = call ? "assistant" : wire.role ?? "assistant";
    const item = blank(wire.id, {
      kind: call ? "call" : "message", role, status, text: text ?? "", spoken, tool, at,
      responseId: role === "assistant" && status === "in_progress" ? state.responseId : null,
      pictures, shown: role !== "user" || spoken || text !== null || pictures.length > 0,
      persona: state.session?.assistant?.persona ?? null,
    });
    const next = insert(state, withUnheard(state, item), after);
    return role === "user" ? { ...next, lastUserId: wire.id } : next;
  }
  return editItem(state, wire.id, (item) => {
    const replaced = text !== null && !item.text.startsWith(text) && !text.startsWith(item.text); // forgotten while the link was lost
    const fuller = text !== null && (replaced || item.text === "" || (item.role === "user" && text !== "")) ? text : item.text;
    const seen = item.pictures.length === pictures.length && item.pictures.every((one) => one.url !== null) ? item.pictures : pictures;
    const cut = replaced ? { marks: [], cut: null } : {};
    return { ...item, ...cut, status, text: fuller, spoken: item.spoken || spoken, committed: true, tool: tool ?? item.tool, pictures: pictures.length > 0 ? seen : item.pictures };
  });
}

/** @param {State} state @param {any} wire */
function answerCall(state, wire) {
  const call = state.items.find((item) => item.tool?.callId === wire.call_id);
  if (!call || !call.tool) return state;
  const tool = { ...call.tool, output: wire.output ?? "" };
  return editItem(state, call.id, (item) => ({ ...item, tool, status: "completed" }));
}

/** @param {State} state @param {string} text @param {string|null} [code] @param {Offer|null} [offer] @returns {State} */
function notice(state, text, code = null, offer = null) {
  const others = code === null ? state.notices : state.notices.filter((one) => one.code !== code); // said anew, not again
  const notices = [...others, { id: state.noticeCount, text, code, offer }].slice(-3);
  return { ...state, notices, noticeCount: state.noticeCount + 1 };
}

/** A user item that was announced but never committed: a cough, or an echo. @param {State} state @returns {State} */
function dropUncommitted(state) {
  const items = state.items.filter((item) => item.committed);
  return items.length === state.items.length ? state : { ...state, items };
}

/** @param {any} session @param {string|null|undefined} voice of the new persona; without one the voice stays */
function withVoice(session, voice) {
  if (!voice) return session;
  return { ...session, audio: { ...session?.audio, output: { ...session?.audio?.output, voice } } };
}

/** Whether nothing is listened to until somebody calls. @param {{session: any}} state @returns {boolean} */
export const byName = ({ session }) => session?.assistant?.wake ?? false;

/** @type {Record<string, (state: State, event: any) => State>} */
const ON = {
  "session.created": (state, { session }) => ({ ...state, session, link: "open", everOpen: true, retryAt: null }),
  "session.updated": (state, { session }) => ({ ...state, session, gate: byName(state) === byName({ session }) ? state.gate : byName({ session }) ? "waiting" : "open" }),
  "assistant.wake": (state, event) => ({ ...state, gate: event.state }),
  "assistant.sight": (state, { sees }) => ({ ...state, session: { ...state.session, assistant: { ...state.session?.assistant, sees } } }),
  "conversation.created": (state, { conversation }) => {
    if (!conversation?.id || conversation.id === state.conversationId) return state;
    const fresh = state.conversationId === null ? state : { ...state, items: [], responseId: null, hearing: false };
    return { ...fresh, conversationId: conversation.id };
  },
  "conversation.item.added": (state, event) => upsert(state, event.item, event.previous_item_id, false, event.at ?? 0),
  "conversation.item.created": (state, event) => upsert(state, event.item, event.previous_item_id, false, event.at ?? 0),
  "conversation.item.done": (state, event) => upsert(state, event.item, event.previous_item_id, true, event.at ?? 0),
  "conversation.item.retrieved": (state, event) => upsert(state, event.item, null, true, event.at ?? 0),
  "conversation.item.deleted": (state, { item_id }) => {
    const gone = state.items.find((item) => item.id === item_id);
    if (!gone) return state;
    const ownTools = (/** @type {Item} */ item) => item.id.startsWith(OWN_TOOL) && item.responseId === gone.responseId;
    const items = state.items.filter((item) => item.id !== item_id && !ownTools(item));
    const turns = state.turns.map((turn) => (turn.id === gone.responseId ? { ...turn, undone: true } : turn));
    return { ...state, items, turns };
  },
  "conversation.item.truncated": (state, event) =>
    editItem(state, event.item_id, (item) => ({
      ...item, status: "incomplete", cut: { ms: event.audio_end_ms, transcript: event.transcript ?? null },
    })),
  "conversation.item.input_audio_transcription.delta": (state, event) =>
    editItem(state, event.item_id, (item) => ({
      ...item, text: (item.partial ? "" : item.text) + (event.delta ?? ""), partial: false,
    })),
  "conversation.item.input_audio_transcription.completed": (state, event) =>
    editItem(state, event.item_id, (item) => ({ ...item, text: event.transcript, partial: false, status: "completed" })),
  "conversation.item.input_audio_transcription.failed": (state, event) =>
    editItem(state, event.item_id, (item) => ({ ...item, text: "", partial: false, status: "incomplete" })),
  "input_audio_buffer.speech_started": (state, { item_id, at = 0 }) => {
    const base = { ...dropUncommitted(state), hearing: true };
    if (base.items.some((item) => item.id === item_id)) return base;
    return insert(base, blank(item_id, { role: "user", committed: false, partial: true, spoken: true, at }), null);
  },
  "input_audio_buffer.speech_stopped": (state) => ({ ...state, hearing: false }),
  "input_audio_buffer.committed": (state, { item_id, at = null }) => {
    const next = { ...state, hearing: false, askedAt: at, typedAsk: false, lastUserId: item_id };
    return editItem(next, item_id, (item) => ({ ...item, committed: true }));
  },
  "input_audio_buffer.cleared": (state) => ({ ...dropUncommitted(state), hearing: false }),
  "response.created": (state, { response, at = null }) => {
    if (response.conversation_id === null) return state; // a side branch, not part of this talk
    const asked = settle(state, (item) => item.status === "waiting", "refused"); // a spoken yes comes as the call itself
    const turn = {
      id: response.id, n: state.turns.length + 1, status: "in_progress", reason: null, userItemId: state.lastUserId,
      typed: state.typedAsk, askedAt: state.askedAt ?? at, receivedAt: null, renderedAt: null, silentAt: null,
      timeline: null, yieldMs: null, memory: state.memory, undone: false,
    };
    return { ...asked, responseId: response.id, turns: [...state.turns, turn], memory: [], askedAt: null };
  },
  "response.output_item.added": (state, event) => {
    const next = upsert(state, event.item, null, false, event.at ?? 0);
    return editItem(next, event.item?.id, (item) => ({ ...item, responseId: event.response_id }));
  },
  "response.output_item.done": (state, event) => upsert(state, event.item, null, true, event.at ?? 0),
  "response.output_audio_transcript.delta": (state, event) =>
    editItem(state, event.item_id, (item) => {
      const ms = Number.isFinite(event.start_time) ? event.start_time * 1000 : item.audioMs;
      const marks = [...item.marks, { at: item.text.length, ms }];
      return { ...item, spoken: true, marks, text: item.text + event.delta };
    }),
  "response.output_audio_transcript.done": (state, event) =>
    editItem(state, event.item_id, (item) => (item.text === "" ? { ...item, text: event.transcript ?? "" } : item)),
  "response.output_text.delta": (state, event) =>
    editItem(state, event.item_id, (item) => ({ ...item, text: item.text + event.delta })),
  "response.output_audio.done": (state, event) =>
    editItem(state, event.item_id, (item) => ({ ...item, audioDone: true })),
  "response.function_call_arguments.delta": (state, event) =>
    editItem(state, event.item_id, (item) =>
      item.tool ? { ...item, tool: { ...item.tool, args: item.tool.args + event.delta } } : item),
  "response.function_call_arguments.done": (state, event) =>
    editItem(state, event.item_id, (item) =>
      item.tool ? { ...item, tool: { ...item.tool, args: event.arguments, name: event.name ?? item.tool.name } } : item),
  "response.done": (state, { response }) => {
    const reason = response.status_details?.reason ?? null;
    const next = editTurn(state, response.id, { status: response.status, reason });
    const failed = response.status === "failed"
      ? notice(next, `The reply failed: ${response.status_details?.error?.message ?? response.status_details?.error?.code ?? "no reason given"}.`)
      : next;
    return failed.responseId === response.id ? { ...failed, responseId: null } : failed;
  },
  error: (state, { error }) =>
    QUIET_CODES.has(error?.code) ? state : notice(state, error?.message ?? "The server reported an error.", error?.code ?? null),
  "assistant.state": (state, event) => ({ ...state, serverState: event.state }),
  "assistant.transcript": (state, event) =>
    editItem(state, event.item_id, (item) => (item.status === "completed" ? item : { ...item, text: event.text, partial: true, stable: event.stable ?? event.text.length })),
  "assistant.tool": (state, event) => {
    const tool = { name: event.name, callId: "", args: event.arguments ?? "", output: event.output ?? "" };
    const id = `${OWN_TOOL}${event.response_id}-${state.items.length}`;
    return insert(state, blank(id, { kind: "call", status: "completed", tool, responseId: event.response_id, at: event.at ?? 0 }), null);
  },
  "assistant.tool_asked": (state, event) => {
    const tool = { name: event.name, callId: event.approval_request_id, args: event.arguments ?? "", output: null };
    return insert(state, blank(`${OWN_TOOL}${event.approval_request_id}`, { kind: "asked", status: "waiting", text: event.server, tool, responseId: event.response_id, at: event.at ?? 0 }), null);
  },
  "assistant.tool_begun": (state, event) => settle(state, ({ tool }) => tool?.name === event.name && tool.args === event.arguments, "allowed"),
  "assistant.remembered": (state, { response_id: responseId, added = [], removed = [], at = 0 }) => {
    const known = (/** @type {string} */ text) => state.items.some((item) => item.kind === "kept" && item.text === text && item.responseId === responseId);
    const fresh = added.filter((/** @type {string} */ text) => !known(text)); // of a talk that goes on, all of it is told again
    const kept = fresh.reduce((/** @type {State} */ next, /** @type {string} */ text) =>
      insert(next, blank(`${OWN_TOOL}kept-${responseId}-${next.items.length}`, { kind: "kept", status: "completed", text, responseId, at }), null), state);
    return takenOut(kept, removed, responseId, at);
  },
  "assistant.servers_starting": (state, { servers }) => (servers.length > 0
    ? notice(state, `Still starting: ${servers.join(", ")}. Their tools join our talk when they are ready.`, "servers")
    : { ...state, notices: state.notices.filter((one) => one.code !== "servers") }),
  "assistant.forgotten": (state, { item_ids, response_ids, text }) => {
    const shows = (/** @type {Item} */ item) => !item.id.startsWith(OWN_TOOL) || !response_ids.includes(item.responseId);
    const items = state.items.filter(shows).map((item) => (item_ids.includes(item.id)
      ? { ...item, text, marks: [], cut: null, partial: false, tool: item.tool && { ...item.tool, args: "{}", output: item.tool.output && text } } : item));
    const unheard = Object.fromEntries(Object.entries(state.unheard).filter(([id]) => !item_ids.includes(id)));
    return { ...state, items, unheard };
  },
  "assistant.nod": (state, { item_id, text }) => insert(state, blank(item_id, { role: "user", text, nod: true, spoken: true }), null),
  "assistant.resume": (state) => ({ ...dropUncommitted(state), hearing: false }),
  "assistant.frame": (state, { item_id, shown }) => {
    const found = state.items.find((item) => item.id === item_id);
    if (!found) return state;
    // It stands where it was shown: before the words that it goes with, so behind all that was there.
    const rest = state.items.filter((item) => item !== found);
    const begun = rest.at(-1)?.role === "user" && (rest.at(-1)?.committed === false || state.responseId === null) ? rest.length - 1 : rest.length;
    return { ...state, items: shown ? rest.toSpliced(begun, 0, { ...found, shown }) : state.items.map((item) => (item === found ? { ...found, shown } : item)) };
  },
  "assistant.timeline": (state, event) => editTurn(state, event.response_id, { timeline: event }),
  "assistant.memory": (state, event) => {
    const memory = { what: event.what, engine: event.engine, position: event.position, ms: event.ms };
    const running = state.turns.find((turn) => turn.id === state.responseId);
    if (running) return editTurn(state, running.id, { memory: [...running.memory, memory] });
    return { ...state, memory: [...state.memory, memory].slice(-16) };
  },
  "assistant.persona": (state, event) => ({
    ...state,
    switchMs: { name: event.name, ms: event.ms },
    session: { ...withVoice(state.session, event.voice), assistant: { ...state.session?.assistant, persona: event.name } },
    personas: state.personas && { ...state.personas, current: event.name },
  }),
  "assistant.language": (state, { language, limits }) => {
    const told = { ...state, language };
    return limits.length > 0 ? notice(told, limits.join(" "), "language") : { ...told, notices: told.notices.filter((one) => one.code !== "language") };
  },
  "assistant.personas": (state, event) => ({
    ...state, personas: { current: event.current, personas: event.personas, voices: event.voices },
  }),
  "assistant.capsules": (state, event) => ({
    ...state, capsules: { capsules: event.capsules, tiers: event.tiers ?? {}, at: event.at ?? 0 },
  }),

  "page.link": (state, { link, retryAt = null }) => ({
    ...(link === "open" ? state : { ...dropUncommitted(state), hearing: false, responseId: null, serverState: "idle" }),
    link, retryAt,
  }),
  "page.fresh": (state) => ({
    ...EMPTY, link: state.link, everOpen: state.everOpen, microphone: state.microphone, speaker: state.speaker,
    soundHeld: state.soundHeld, unheard: { ...state.unheard, ...unheardOf(state) }, household: state.household, rang: state.rang, noticeCount: state.noticeCount, personas: state.personas, capsules: state.capsules, clock: state.clock, session: state.session, machine: state.machine,
  }),
  "page.shown": (state, { itemId, picture, at }) => {
    const item = blank(itemId, { role: "user", status: "completed", pictures: [picture], shown: !picture.frame, at });
    // A frame is drawn when the model has it; of those that never came that far only the newest still may.
    const items = state.items.filter((one) => one.shown || !one.pictures.some((picture) => picture.frame));
    return insert({ ...state, items }, item, null);
  },
  "page.answered": (state, { id, allowed }) => settle(state, ({ tool }) => tool?.callId === id, allowed ? "allowed" : "refused"),
  "page.takenOut": (state, { text }) => takenOut(state, [text], "", 0),
  "page.notice": (state, { text, offer = null }) => notice(state, text, null, offer),
  "page.asked": (state, { at }) => ({ ...state, askedAt: at, typedAsk: true }),
  "page.microphone": (state, { type: _, ...fields }) => ({ ...state, microphone: { ...state.microphone, ...fields } }),
  "page.speaker": (state, { on, held }) => ({ ...state, speaker: on, soundHeld: held, notices: on ? state.notices.filter((one) => one.code !== "silent") : state.notices }),
  "page.silent": (state) => notice(state, "The browser cannot play sound, so replies can only be read. Check the speaker, then reload the page.", "silent"),
  "page.playing": (state, { itemId }) => (state.playing === itemId ? state : { ...state, playing: itemId }),
  "page.player": (state, { underruns, cushionMs }) => ({ ...state, player: { underruns, cushionMs } }),
  "page.audio": (state, { itemId, responseId, ms, at }) => {
    const known = editItem(state, itemId, (item) => ({ ...item, spoken: true, audioMs: item.audioMs + ms, heardMs: item.heardMs ?? 0 }));
    const next = state.soundHeld ? { ...known, playing: state.playing ?? itemId } : known; // held sound is about to be heard
    const turn = next.turns.find((one) => one.id === responseId);
    return turn && turn.receivedAt === null ? editTurn(next, responseId, { receivedAt: at }) : next;
  },
  "page.rendered": (state, { responseId, itemId, at }) => editTurn({ ...state, playing: itemId ?? state.playing }, responseId, { renderedAt: at }),
  "page.heard": (state, { itemId, ms }) =>
    editItem(state, itemId, (item) => (ms > (item.heardMs ?? -1) ? { ...item, heardMs: ms } : item)),
  "page.cut": (state, { itemId, ms, at = null, yieldMs = null }) => {
    const next = editItem(state, itemId, (item) => ({ ...item, cut: item.cut ?? { ms, transcript: null }, heardMs: ms }));
    const turn = next.items.find((item) => item.id === itemId)?.responseId ?? null;
    return editTurn(next, turn, { silentAt: at, yieldMs });
  },
  "page.clock": (state, { offset, uncertainty }) => ({ ...state, clock: { offset, uncertainty } }),
  "page.machine": (state, { facts }) => ({ ...state, machine: facts }),
  "page.unheard": (state, { words }) => ({ ...state, unheard: words }),
  "page.household": (state, { household }) => ({ ...state, household, rang: rungSoFar(state.rang, rangBetween(state.household, household)) }),
  "page.rang": (state, { rings }) => {
    const gone = new Set(rings.map((/** @type {any} */ ring) => ring.id));
    const household = state.household && { ...state.household, rings: state.household.rings.filter((ring) => !gone.has(ring.id)) };
    return { ...state, household, rang: rungSoFar(state.rang, rings) };
  },
  "page.noticed": (state) => ({ ...state, rang: [] }),
  "page.dismiss": (state, { id }) => ({ ...state, notices: state.notices.filter((one) => one.id !== id) }),
};

/** Event types of the wire that change nothing here on purpose. */
export const IGNORED = new Set([
  "response.content_part.added", "response.content_part.done", "response.output_text.done", "rate_limits.updated",
  "input_audio_buffer.timeout_triggered", "assistant.duck", "assistant.stop", "assistant.pong",
  "response.output_audio.delta",
]);

/** @param {State} state @param {{type: string} & Record<string, any>} event @returns {State} */
export function reduce(state, event) {
  return Object.hasOwn(ON, event.type) ? ON[event.type](state, event) : state;
}

/** Whether there is a reply that can be stopped. @param {State} state */
export const answering = (state) => state.link === "open" && (state.playing !== null || state.responseId !== null);

/** @param {State} state @returns {"offline"|"hearing"|"thinking"|"speaking"|"waiting"|"called"|"listening"|"idle"} */
export function phase(state) {
  if (state.link !== "open") return "offline";
  if (state.hearing) return "hearing";
  if (state.playing !== null) return "speaking";
  if (state.responseId !== null || state.serverState === "thinking") return "thinking";
  const { status, muted, mode, held } = state.microphone;
  if (status !== "on" || muted || (mode === "push" && !held)) return "idle";
  return mode === "open" && byName(state) && state.gate !== "open" ? state.gate : "listening";
}
