/**
 * Where a turn's time went: the server's parts, then the link, then the player, without a gap; and what is
 * usual over a session. Pure arithmetic on page milliseconds.
 */

/** @typedef {{name: string, startMs: number, ms: number, where: "server"|"link"|"page"}} Part */
/** @typedef {{parts: Part[], totalMs: number, uncertaintyMs: number|null, startedAt: number}} Waterfall */

/** What each part is called, and what happens in it. @type {Record<string, [string, string]>} */
const PARTS = {
  hearing: ["Hearing", "what you say is turned into words"],
  turn_wait: ["Turn wait", "silence, until your turn is certain to be over"],
  transcribe: ["Last words heard", "the end of your sentence is turned into words"],
  wake: ["Wake", "sleeping models are brought back into memory"],
  restore: ["Restore", "the model returns to the state of this talk"],
  plan: ["Plan", "the server checks how much of this talk the model still knows"],
  picture: ["Picture", "the model looks at your picture, unless it did while you spoke"],
  prefill: ["Read the words", "the model reads your words"],
  llm_wait: ["Wait for the model", "the processor is still busy with something else"],
  tool: ["Tool", "a tool that the model used: the clock, a timer, a sum …"],
  llm: ["First words", "the model writes enough words to begin speaking"],
  tts_restore: ["Restore the voice", "the voice returns to the state of this talk"],
  tts_prefill: ["Voice reads", "the voice reads these words"],
  tts_wait: ["Wait for the voice", "the processor is still busy, mostly with the next words"],
  tts_rows: ["Voice speaks", "the voice decides how the first moment sounds"],
  codec: ["Sound", "it becomes sound that can be played"],
  transport: ["Link", "from the server to this page"],
  player: ["Player", "from this page to the loudspeaker"],
  small: ["Smaller steps", "everything too short to draw"],
};

/** What the server can only guess of the road to the speaker; the page was there. */
const ROAD = new Set(["transport", "player"]);

/** @param {string} name as the server says it @returns {string} as the page says it */
export function partLabel(name) {
  if (Object.hasOwn(PARTS, name)) return PARTS[name][0];
  const words = name.replace(/_ms$/, "").replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What happens in a part, for somebody who sees it for the first time; empty for one that is not known here. @param {string} name */
export const partMeaning = (name) => (Object.hasOwn(PARTS, name) ? PARTS[name][1] : "");

/**
 * Join the server's timeline with what the page saw of the same turn.
 *
 * The link's share is what remains between the server's last part and the arrival of the first sound. It can
 * come out a hair below zero, because the clocks are only known to ± `uncertaintyMs`; sound cannot arrive before
 * it was sent, so the server's parts are then moved back until it is zero. The parts still sum to the total.
 *
 * @param {{started_ms: number, parts: {name: string, ms: number}[]}} timeline the server's
 * @param {{toPage: (ms: number) => number|null, uncertainty: number|null}} clock
 * @param {number|null} receivedAt page time of the first sound's arrival
 * @param {number|null} renderedAt page time at which it left the speaker
 * @returns {Waterfall}
 */
export function waterfall(timeline, clock, receivedAt, renderedAt) {
  /** @type {Part[]} */
  const parts = [];
  let at = 0;
  for (const part of timeline.parts) {
    if (ROAD.has(part.name)) continue;
    parts.push({ name: part.name, startMs: at, ms: part.ms, where: "server" });
    at += part.ms;
  }
  let startedAt = clock.toPage(timeline.started_ms);
  if (receivedAt !== null) {
    if (startedAt === null || startedAt + at > receivedAt) startedAt = receivedAt - at;
    parts.push({ name: "transport", startMs: at, ms: Math.max(0, receivedAt - startedAt - at), where: "link" });
    at = receivedAt - startedAt;
    if (renderedAt !== null) {
      const ms = Math.max(0, renderedAt - receivedAt);
      parts.push({ name: "player", startMs: at, ms, where: "page" });
      at += ms;
    }
  }
  return { parts, totalMs: at, uncertaintyMs: clock.uncertainty, startedAt: startedAt ?? 0 };
}

/**
 * Rows for the eye: neighbours of one name become one, and what is too short to see becomes a last row, so that
 * they still sum to the total.
 * @param {Part[]} parts @param {number} totalMs @returns {Part[]}
 */
export function rowsOf(parts, totalMs) {
  const least = Math.max(1, totalMs / 200);
  /** @type {Part[]} */
  const rows = [];
  let small = 0;
  for (const part of parts) {
    if (part.where === "server" && part.ms < least) small += part.ms;
    else if (rows.at(-1)?.name === part.name) rows[rows.length - 1] = { ...rows[rows.length - 1], ms: rows[rows.length - 1].ms + part.ms };
    else rows.push(part);
  }
  return small > 0 ? [...rows, { name: "small", startMs: totalMs, ms: small, where: "server" }] : rows;
}

/**
 * Linear interpolation between order statistics.
 * @param {number[]} values @param {number} share 0..1 @returns {number|null} null of nothing
 */
export function quantile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/** @param {(number|null|undefined)[]} values @returns {{n: number, median: number|null, p90: number|null, p99: number|null}} */
export function summary(values) {
  const known = /** @type {number[]} */ (values.filter((value) => Number.isFinite(value)));
  return { n: known.length, median: quantile(known, 0.5), p90: quantile(known, 0.9), p99: quantile(known, 0.99) };
}

/** Milliseconds as the page writes them: three figures are enough. @param {number|null|undefined} ms */
export function showMs(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (Math.abs(ms) >= 9999.5) return `${(ms / 1000).toFixed(1)} s`;
  if (Math.abs(ms) >= 99.5) return `${Math.round(ms)} ms`;
  if (ms > 0 && ms < 0.05) return "< 0.1 ms";
  return `${ms.toFixed(Math.abs(ms) < 9.95 ? 1 : 0)} ms`;
}
