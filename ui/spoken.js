/** How much of a reply has been spoken, as a place in its text. Pure. */

/** @typedef {import("./session.js").Item} Item */

/**
 * How many characters of a reply have been spoken. Whole words: a word shows when its sound begins.
 * @param {Item} item @param {boolean} speaker whether this page plays sound at all
 * @returns {number}
 */
export function spokenLength(item, speaker) {
  if (item.cut) return keptLength(item);
  if (!item.spoken || item.heardMs === null || !speaker || item.marks.length === 0) return item.text.length;
  if (item.audioDone && item.heardMs >= item.audioMs - 1) return item.text.length;
  return lengthAt(item, item.heardMs);
}

/** @param {Item} item @param {number} heardMs */
function lengthAt(item, heardMs) {
  if (heardMs <= 0) return 0;
  const next = item.marks.findIndex((mark) => mark.ms > heardMs);
  const mark = item.marks[next < 0 ? item.marks.length - 1 : Math.max(0, next - 1)];
  if (next === 0) return 0;
  const end = next < 0 ? { at: item.text.length, ms: Math.max(item.audioMs, mark.ms + 1) } : item.marks[next];
  const share = Math.min(1, (heardMs - mark.ms) / Math.max(1, end.ms - mark.ms));
  const reached = mark.at + share * (end.at - mark.at);
  const space = item.text.slice(Math.ceil(reached), end.at).search(/\s/);
  return space < 0 ? end.at : Math.ceil(reached) + space;
}

/** @param {Item} item */
function keptLength(item) {
  const { ms, transcript } = item.cut ?? { ms: 0, transcript: null };
  if (transcript === null) return item.marks.length > 0 ? lengthAt(item, ms) : item.text.length;
  if (item.text.startsWith(transcript)) return transcript.length;
  const heard = transcript.split(/\s+/).filter(Boolean).length;
  let count = 0;
  for (const match of item.text.matchAll(/\S+/g)) {
    if (count === heard) return match.index;
    count += 1;
  }
  return item.text.length;
}
