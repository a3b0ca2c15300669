/** What runs in the home, as the page shows it: how long each has left, and what rang. Pure. */

/** @typedef {{id: number, kind: "timer"|"alarm"|"reminder", told: string, at: string, left_s: number, paused: boolean}} Ring */
/** @typedef {{key: string, name: string, things: {id: number, text: string}[]}} List */
/** @typedef {{rings: Ring[], lists: List[], at: number}} Household `at`: page time, ms, for which the server's `left_s` holds */

/** Seconds that it has left. @param {Ring} ring @param {Household} household @param {number} now page time, ms */
export function leftS(ring, household, now) {
  return ring.paused ? ring.left_s : ring.left_s - (now - household.at) / 1000;
}

/** `4:32`, `1:04:32`; rounded up, as a clock that counts down. @param {number} seconds */
export function showLeft(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** What is over by now. @param {Household|null} household @param {number} now */
export function over(household, now) {
  return household === null ? [] : household.rings.filter((ring) => !ring.paused && leftS(ring, household, now) <= 0);
}

/** The ring of a timer and the answer without it may come before the page's own clock has seen the end. */
const SLACK_MS = 1500;

/** What rang between two answers of the server. @param {Household|null} before @param {Household} after */
export function rangBetween(before, after) {
  const here = new Set(after.rings.map((ring) => ring.id));
  return over(before, after.at + SLACK_MS).filter((ring) => !here.has(ring.id));
}

/** What nobody has seen to yet, each once: an answer of the server may still list what has rung. @param {Ring[]} rang @param {Ring[]} rings */
export const rungSoFar = (rang, rings) => [...rang, ...rings.filter((ring) => !rang.some((one) => one.id === ring.id))];

/** The tab's title. @param {Household|null} household @param {Ring[]} rang that nobody has seen to yet @param {string} name who answers @param {number} now */
export function title(household, rang, name, now) {
  if (rang.length > 0) return `⏰ ${rang.map((ring) => ring.told).join(" · ")}`;
  const timers = household === null ? [] : household.rings.filter((ring) => ring.kind === "timer" && !ring.paused);
  const soonest = Math.min(...timers.map((ring) => leftS(ring, /** @type {Household} */ (household), now)));
  return timers.length > 0 && soonest > 0 ? `${showLeft(soonest)} · ${name}` : name;
}
