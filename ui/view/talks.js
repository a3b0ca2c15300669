/** The dialog of earlier talks: found by their first words, opened, named, saved, and forgotten for good. */

import { byId, make, setText, showBytes, twice } from "./dom.js";
import { save } from "./picture.js";

/** Today and yesterday by name, other days by date. @param {number} seconds since 1970 */
export function day(seconds) {
  const then = new Date(seconds * 1000);
  const midnight = new Date().setHours(0, 0, 0, 0);
  const time = then.toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });
  const days = Math.ceil((midnight - then.getTime()) / 86_400_000);
  if (days <= 1) return `${days <= 0 ? "Today" : "Yesterday"}, ${time}`;
  return then.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
}

/**
 * @param {{
 *   talks: import("../talks.js").Talks, current: () => string|null,
 *   onOpen: (id: string) => void, onLeave: () => void,
 * }} options `onLeave`: the talk that is open is about to be deleted
 */
export function talkDialog({ talks, current, onOpen, onLeave }) {
  const [dialog, list, find] = [byId("talks"), byId("talk-list"), byId("find-talk")];
  let known = /** @type {import("../talks.js").Talk[]} */ ([]);

  const tell = (/** @type {string} */ text) => setText(byId("talks-told"), text);
  /** @param {() => Promise<void>} work */
  const attempt = (work) => work().catch((error) => tell(error.message));

  /** @param {import("../talks.js").Talk} talk */
  function row(talk) {
    const title = talk.name ?? talk.begins;
    const mine = talk.id === current();
    const facts = `${mine ? "This talk" : day(talk.used_at)} · ${talk.turns} ${talk.turns === 1 ? "turn" : "turns"}`;
    const item = make("li", {},
      make("button.open", { type: "button", disabled: mine, onclick: () => { dialog.close(); onOpen(talk.id); } }, make("b", { text: title }), make("span", { text: facts })),
      make("button", { type: "button", text: "Name", "aria-label": `Name ${title}`, onclick: () => item.replaceChildren(...naming(talk)) }),
      make("button", { type: "button", text: "Save", "aria-label": `Save ${title} as text`, onclick: () => attempt(async () => save(await talks.text(talk), `${day(talk.used_at)}.txt`)) }),
      twice("Delete", `Delete ${title}`, "Delete for good?", () => attempt(async () => {
        if (mine) onLeave();
        await talks.remove(talk.id);
        tell(`Deleted for good: ${title}`);
        await fill();
        byId("close-talks").focus();
      })));
    return item;
  }

  /** @param {import("../talks.js").Talk} talk @returns {Node[]} */
  function naming(talk) {
    const field = make("input", { type: "text", maxlength: 120, value: talk.name ?? "", "aria-label": "Name of this talk", placeholder: talk.begins });
    const form = make("form.naming", { onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      attempt(async () => {
        await talks.rename(talk.id, field.value.trim());
        await fill();
        find.focus();
      });
    } }, field, make("button", { type: "submit", text: "Keep" }));
    setTimeout(() => field.focus());
    return [form];
  }

  function draw() {
    const wanted = find.value.trim().toLowerCase();
    const shown = known.filter((talk) => `${talk.name ?? ""} ${talk.begins}`.toLowerCase().includes(wanted));
    list.replaceChildren(...shown.map(row));
    if (shown.length === 0) list.append(make("li.empty", { text: known.length === 0 ? "No talk is kept yet." : "No talk begins like that." }));
  }

  async function fill() {
    const { data, folder, kept_days: days } = await talks.list();
    known = data;
    draw();
    const size = showBytes(data.reduce((sum, talk) => sum + talk.bytes, 0));
    setText(byId("talks-kept"), folder === null ? "Talks are not kept here."
      : `Kept on the machine that runs the assistant, and nowhere else: ${size} in ${folder}. A talk without a name goes ${days} days after it was last open. Timers, lists and notes are above the place to write, while there are any; each can be removed there.`);
    byId("forget-talks").replaceChildren(...(data.length > 1 ? [twice("Delete all talks", "Delete all talks", `Delete all ${data.length} for good?`, () => attempt(async () => {
      onLeave();
      for (const talk of data) await talks.remove(talk.id);
      tell("All talks are deleted.");
      await fill();
      byId("close-talks").focus();
    }))] : []));
  }

  find.addEventListener("input", draw);
  return async function show() {
    tell("");
    find.value = "";
    dialog.showModal();
    await attempt(fill);
  };
}
