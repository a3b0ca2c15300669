/** Draws one turn's waterfall and the session's usual times as a picture to keep. */

import { partLabel, rowsOf, showMs, summary } from "../timeline.js";
import { MEASURES } from "./time.js";

const WIDTH = 960;
const PAD = 48;
const ROW = 30;

/** @param {import("../figures.js").Measured} turn @param {import("../figures.js").Measured[]} turns @param {string} title @returns {Promise<Blob>} PNG */
export async function picture(turn, turns, title) {
  await document.fonts.ready;
  const style = getComputedStyle(document.body);
  const css = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const parts = turn.fall ? rowsOf(turn.fall.parts, turn.fall.totalMs) : [];
  const usual = MEASURES.map(({ name, of }) => ({ name, ...summary(turns.filter((one) => !one.undone).map(of)) })).filter((row) => row.n > 0);
  const height = PAD * 2 + 132 + (parts.length + 1) * ROW + 40 + (usual.length + 1) * ROW;
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH * 2;
  canvas.height = height * 2;
  const paint = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  paint.scale(2, 2);
  paint.fillStyle = css("--paper");
  paint.fillRect(0, 0, WIDTH, height);

  const text = (/** @type {string} */ words, x, y, font, colour, align = "left") => {
    paint.font = font;
    paint.fillStyle = css(colour);
    paint.textAlign = /** @type {CanvasTextAlign} */ (align);
    paint.fillText(words, x, y);
  };
  const sans = "15px Inter, system-ui, sans-serif";
  const large = "54px Newsreader, Georgia, serif";
  let y = PAD + 12;
  text(`${title}, turn ${turn.n}`, PAD, y, sans, "--soft");
  y += 66;
  text(showMs(turn.ttfaMs), PAD, y, large, "--ink");
  text(showMs(turn.voiceMs), WIDTH / 2, y, large, "--ink");
  text("to first audio", PAD, y + 26, sans, "--soft");
  text("voice to voice", WIDTH / 2, y + 26, sans, "--soft");
  y += 74;
  const left = PAD + 150;
  const span = WIDTH - PAD - 100 - left;
  const longest = Math.max(0, ...parts.map((part) => part.ms));
  for (const part of parts) {
    text(partLabel(part.name), PAD, y, sans, "--ink");
    paint.fillStyle = css(part.ms === longest ? "--accent" : "--bar");
    const from = left + (part.startMs / (turn.fall?.totalMs || 1)) * span;
    if (part.name !== "small") paint.fillRect(from, y - 11, Math.max(1.5, (part.ms / (turn.fall?.totalMs || 1)) * span), 12);
    text(showMs(part.ms), WIDTH - PAD, y, sans, "--ink", "right");
    y += ROW;
  }
  if (turn.fall) {
    const doubt = turn.fall.uncertaintyMs === null ? "" : ` (clocks agree to ± ${showMs(turn.fall.uncertaintyMs)})`;
    text(`Sum${doubt}`, PAD, y, sans, "--soft");
    text(showMs(turn.fall.totalMs), WIDTH - PAD, y, `600 ${sans}`, "--ink", "right");
  }
  y += ROW + 40;
  const columns = [430, 590, 750, WIDTH - PAD];
  for (const [i, head] of ["median", "p90", "p99", "n"].entries()) text(head, columns[i], y, sans, "--soft", "right");
  for (const row of usual) {
    y += ROW;
    text(row.name, PAD, y, sans, "--ink");
    for (const [i, ms] of [row.median, row.p90, row.p99].entries()) text(showMs(ms), columns[i], y, sans, "--ink", "right");
    text(String(row.n), columns[3], y, sans, "--soft", "right");
  }
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser gave no picture."))), "image/png"));
}

/** Hand a file to the person. @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
