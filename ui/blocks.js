/** The code in a reply's text, which is shown and not spoken. Pure. */

const FENCE = /^[\s>]*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(`{3,}|~{3,})(.*)$/;

/**
 * The text in order, code and words apart, without the fences between them; a fence that is not closed goes to the end.
 * @param {string} text @returns {{code: boolean, text: string}[]}
 */
export function blocks(text) {
  /** @type {{code: boolean, text: string}[]} */
  const found = [];
  let fence = "";
  /** @type {string[]} */
  let lines = [];
  const close = () => {
    if (lines.join("").trim() !== "") found.push({ code: fence !== "", text: lines.join("\n") });
    lines = [];
  };
  for (const line of text.split("\n")) {
    const [, mark = "", behind = ""] = FENCE.exec(line) ?? [];
    const opens = fence === "" && mark !== "" && !(mark[0] === "`" && behind.includes("`"));
    const closes = fence !== "" && mark.startsWith(fence) && behind.trim() === "";
    if (!opens && !closes) { lines.push(line); continue; }
    close();
    fence = opens ? mark : "";
  }
  close();
  return found;
}
