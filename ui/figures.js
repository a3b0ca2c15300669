/** What a turn's raw times mean: its figures, its waterfall, and the session as exported. Pure. */

import { showMs, summary, waterfall } from "./timeline.js";

/** @typedef {import("./session.js").Turn} Turn */
/** @typedef {Turn & {ttfaMs: number|null, serverTtfaMs: number|null, voiceMs: number|null, restoreMs: number|null,
 *   rollbackMs: number|null, fall: import("./timeline.js").Waterfall|null}} Measured */

/** @param {Turn} turn @param {string} what @returns {number|null} */
function memoryMs(turn, what) {
  const all = turn.memory.filter((one) => one.what === what);
  return all.length === 0 ? null : all.reduce((sum, one) => sum + one.ms, 0);
}

/**
 * `ttfaMs` is the page's own: from the news that the turn is committed (or from sending what was typed) to the
 * arrival of the first sound. Both ends take the same road, so it needs no second clock. `voiceMs` runs from the
 * user's last speech sample to the first reply sample leaving the speaker; a typed turn has none.
 *
 * @param {Turn} turn @param {{toPage: (ms: number) => number|null, uncertainty: number|null}} clock
 * @returns {Measured}
 */
export function measure(turn, clock) {
  const fall = turn.timeline === null ? null : waterfall(turn.timeline, clock, turn.receivedAt, turn.renderedAt);
  const server = turn.timeline?.figures ?? {};
  return {
    ...turn,
    ttfaMs: turn.receivedAt === null || turn.askedAt === null ? null : Math.max(0, turn.receivedAt - turn.askedAt),
    serverTtfaMs: server.ttfa_ms ?? null,
    voiceMs: turn.typed || fall === null || turn.renderedAt === null ? null : fall.totalMs,
    restoreMs: server.restore_ms ?? memoryMs(turn, "restore"),
    rollbackMs: server.rollback_ms ?? memoryMs(turn, "rollback"),
    fall,
  };
}

/**
 * What was made of a turn before it was sure that it was over, in words; empty if nothing was.
 * @param {Record<string, number>|undefined} figures the server's
 */
export function preparedNote(figures) {
  const notes = [];
  const { candidate_ready_ms: ready, candidate_begun_ms: begun, candidates_dropped: dropped, wasted_ms: wasted } = figures ?? {};
  if (ready > 0) notes.push(`The answer was ready ${showMs(ready)} before your turn was certain to be over.`);
  else if (begun > 0) notes.push(`The answer was begun ${showMs(begun)} before your turn was certain to be over.`);
  if (dropped > 0) notes.push(`${dropped === 1 ? "An answer was" : `${dropped} answers were`} begun in vain: ${showMs(wasted)} of work.`);
  return notes.join(" ");
}

/** Remembers what was measured of a turn while the turn itself does not change. */
export class Measures {
  /** @param {{toPage: (ms: number) => number|null, uncertainty: number|null}} clock */
  constructor(clock) {
    this._clock = clock;
    /** @type {WeakMap<Turn, Measured>} */
    this._known = new WeakMap();
    /** @type {Turn[]|null} */
    this._turns = null;
    /** @type {Measured[]} */
    this._result = [];
  }

  /** @param {Turn[]} turns @returns {Measured[]} the same array while nothing changed */
  of(turns) {
    if (turns === this._turns) return this._result;
    this._turns = turns;
    this._result = turns.map((turn) => {
      const known = this._known.get(turn) ?? measure(turn, this._clock);
      this._known.set(turn, known);
      return known;
    });
    return this._result;
  }
}

/**
 * The session as a file.
 * @param {import("./session.js").State} state @param {Measured[]} turns @param {string} when ISO time of the export
 */
export function exported(state, turns, when) {
  const counted = turns.filter((turn) => !turn.undone);
  const sum = (turn, /** @type {"audioMs"|"heardMs"} */ what) =>
    state.items.reduce((ms, item) => ms + (item.responseId === turn.id ? item[what] ?? 0 : 0), 0);
  return {
    kind: "assistant.session", version: 1, exported_at: when, conversation_id: state.conversationId,
    model: state.session?.model ?? null, persona: state.session?.assistant?.persona ?? null,
    clock: state.clock && { uncertainty_ms: state.clock.uncertainty },
    summary: {
      ttfa_ms: summary(counted.map((turn) => turn.ttfaMs)),
      voice_to_voice_ms: summary(counted.map((turn) => turn.voiceMs)),
      yield_ms: summary(counted.map((turn) => turn.yieldMs)),
      restore_ms: summary(counted.map((turn) => turn.restoreMs)),
      rollback_ms: summary(counted.map((turn) => turn.rollbackMs)),
    },
    turns: turns.map((turn) => ({
      n: turn.n, response_id: turn.id, status: turn.status, undone: turn.undone, typed: turn.typed,
      ttfa_ms: turn.ttfaMs, server_ttfa_ms: turn.serverTtfaMs, voice_to_voice_ms: turn.voiceMs, yield_ms: turn.yieldMs,
      parts: turn.fall?.parts.map(({ name, startMs, ms, where }) => ({ name, start_ms: startMs, ms, where })) ?? null,
      asked_at_ms: turn.askedAt, received_at_ms: turn.receivedAt, rendered_at_ms: turn.renderedAt, silent_at_ms: turn.silentAt,
      audio_ms: sum(turn, "audioMs"), heard_ms: sum(turn, "heardMs"),
      total_ms: turn.fall?.totalMs ?? null, clock_uncertainty_ms: turn.fall?.uncertaintyMs ?? null,
      memory: turn.memory, figures: turn.timeline?.figures ?? null,
    })),
  };
}
