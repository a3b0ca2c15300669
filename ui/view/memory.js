/** The dialog of what is remembered: when and in which turn it was added, changed by hand, and forgotten for good. */

import { byId, make, setText, twice } from "./dom.js";
import { day } from "./talks.js";

/** What the assistant writes beside a sentence. */
const DAY = /^\d{4}-\d\d-\d\d \d\d:\d\d$/;

/**
 * @param {{
 *   memory: import("../memory.js").MemoryFile, current: () => string|null, small: () => boolean,
 *   onOpen: (talk: string) => void,
 * }} options `small`: the model reads them only when it is asked
 */
export function memoryDialog({ memory, current, small, onOpen }) {
  const [dialog, list, field] = [byId("memory"), byId("memory-list"), byId("memory-new")];

  const tell = (/** @type {string} */ text) => setText(byId("memory-told"), text);

  /** @param {Promise<import("../memory.js").Memory>} asked @param {string} [done] */
  async function attempt(asked, done = "") {
    try {
      const { data, file, complaint } = await asked;
      list.replaceChildren(...data.map(row));
      if (data.length === 0) list.append(make("li.empty", { text: "Nothing is remembered yet. Write a sentence here, or ask in a talk to have one noted." }));
      const known = small() ? "This small model reads them when you say “read my notes”, and any other begins every talk with them." : "Every talk begins with these sentences.";
      setText(byId("memory-file"), `${known} They are ${file} in the home folder of the machine that runs the assistant, and nowhere else; you can edit that file too.`);
      tell([done, complaint].filter((part) => part).join(" "));
      return true;
    } catch (error) {
      tell(/** @type {Error} */ (error).message);
      return false;
    }
  }

  /** @param {import("../memory.js").Sentence} sentence */
  function since({ comment, talk, turn }) {
    const at = DAY.test(comment) ? day(new Date(comment.replace(" ", "T")).getTime() / 1000) : comment;
    if (talk === null) return make("span", { text: at ? `${at}, written by hand` : "Written by hand" });
    const where = talk.id === current() ? "this talk" : `“${talk.name}”`;
    return make("span", { text: [at, `turn ${turn} of ${where}`].filter((part) => part).join(", ") });
  }

  /** @param {import("../memory.js").Sentence} sentence */
  function row(sentence) {
    const { text, talk } = sentence;
    const item = make("li", {},
      make("p", {}, make("b", { text }), since(sentence)),
      talk !== null && talk.id !== current()
        ? make("button", { type: "button", text: "Open", "aria-label": `Open the talk that added ${text}`, onclick: () => { dialog.close(); onOpen(talk.id); } }) : null,
      make("button", { type: "button", text: "Edit", "aria-label": `Edit ${text}`, onclick: () => item.replaceChildren(editing(text)) }),
      twice("Forget", `Forget ${text}`, "Forget for good?", async () => {
        if (!await attempt(memory.change({ forget: text }), "Forgotten, in every talk.")) return;
        byId("close-memory").focus();
      }));
    return item;
  }

  /** @param {string} text */
  function editing(text) {
    const edited = make("input", { type: "text", maxlength: 300, value: text, "aria-label": "The sentence" });
    setTimeout(() => edited.focus());
    return make("form.naming", { onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      if (edited.value.trim() !== "") attempt(memory.change({ reword: text, to: edited.value }), "Changed.").then(() => field.focus());
    } }, edited, make("button", { type: "submit", text: "Keep" }));
  }

  byId("memory-add").addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (field.value.trim() !== "" && await attempt(memory.change({ add: field.value }), small() ? "Kept." : "Kept. The next talk knows it.")) field.value = "";
  });
  return async function show() {
    field.value = "";
    dialog.showModal();
    await attempt(memory.list());
  };
}
