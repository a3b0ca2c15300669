/** The dialog of voices: those that are here, to hear, use or remove, and a recorder for one's own. */

import { MicrophoneTrouble } from "../audio/capture.js";
import { meterLevel } from "../audio/pcm.js";
import { Recording, WANTED_S } from "../recording.js";
import { byId, make, setText } from "./dom.js";

const ORIGINS = { own: "the model's own", designed: "designed for a persona", given: "a recording" };
const NO_MICROPHONE = {
  insecure: "The browser allows the microphone only over https, or on the machine itself.",
  refused: "The microphone is blocked: allow it at the left of the address bar.",
  missing: "No microphone was found.", busy: "Another program is using the microphone.", failed: "The microphone could not be started.",
};

/**
 * @param {{
 *   voices: import("../voices.js").Voices,
 *   open: (onPiece: (piece: import("../audio/capture.js").Piece) => void) => Promise<{close: () => Promise<void>}>,
 *   onUse: (name: string) => void, onChanged: () => void,
 * }} options `open`: the microphone, for as long as a recording is made
 */
export function voiceDialog({ voices, open, onUse, onChanged }) {
  let recording = /** @type {Recording|null} */ (null);
  let microphone = /** @type {{close: () => Promise<void>}|null} */ (null);
  let taken = /** @type {string|null} */ (null); // the name that is to be replaced, once that was asked for
  let used = /** @type {string|null} */ (null);

  const tell = (/** @type {string} */ text) => {
    setText(byId("voice-told"), text);
    byId("voice-told").scrollIntoView({ block: "nearest" });
  };
  const ready = () => {
    byId("keep-voice").disabled = !recording || microphone !== null || recording.trouble !== null || !byId("consent").checked || byId("voice-name").value.trim() === "";
  };
  const showLevel = (/** @type {number} */ power) => {
    byId("voice-level").style.setProperty("--level", String(meterLevel(power)));
    if (!recording) return;
    const left = Math.max(0, Math.ceil(WANTED_S - recording.seconds));
    setText(byId("record-told"), `${left} s left${recording.level ? `, ${recording.level}` : ""}`);
  };

  async function record() {
    if (microphone) return stop();
    const made = new Recording();
    byId("recorded").hidden = true;
    tell("");
    byId("record").disabled = true;
    try {
      microphone = await open(({ pcm, power }) => {
        if (recording !== made || made.seconds >= WANTED_S) return; // pieces are still under way when it stops
        made.add(pcm, power);
        showLevel(power);
        if (made.seconds >= WANTED_S) stop();
      });
      recording = made;
      setText(byId("record"), "Stop");
    } catch (error) {
      tell(error instanceof MicrophoneTrouble ? NO_MICROPHONE[error.kind] : String(error));
    }
    byId("record").disabled = false;
    ready();
  }

  async function stop() {
    const before = microphone;
    if (!before || !recording) return;
    const made = recording;
    recording = null; // what still comes is no part of it
    await before.close();
    [microphone, recording] = [null, made];
    showLevel(0);
    setText(byId("record"), "Record again");
    setText(byId("record-told"), made.trouble ? "" : `${made.seconds.toFixed(0)} s. Listen to it before you keep it.`);
    tell(made.trouble ?? "");
    const player = byId("recorded");
    player.src = URL.createObjectURL(made.wav());
    player.hidden = false;
    ready();
  }

  async function keep() {
    if (!recording) return;
    const name = byId("voice-name").value.trim();
    byId("keep-voice").disabled = true;
    tell("Transcribing the recording and reading the voice…");
    try {
      const made = await voices.add(name, recording.wav(), taken === name);
      tell(`Kept as ${made.name}. Its words: “${made.transcript}”`);
      taken = null;
      await fill();
      byId(`hear-${made.name}`).focus();
      onChanged();
    } catch (error) {
      tell(/** @type {Error} */ (error).message);
      if (/** @type {any} */ (error).code === "voice_exists") {
        taken = name;
        tell(`There is a voice ${name} already. Press “Keep” again to replace it, or choose another name.`);
      }
      ready();
    }
  }

  /** @param {string} name */
  async function hear(name) {
    tell(`${name} is being made…`);
    try {
      const sound = await voices.hear(name);
      const player = byId("sample");
      player.src = URL.createObjectURL(sound);
      player.hidden = false;
      await player.play();
      tell("");
    } catch (error) {
      tell(/** @type {Error} */ (error).message);
    }
  }

  /** @param {string} name */
  async function remove(name) {
    try {
      await voices.remove(name, used === name);
      used = null;
      tell(`${name} was removed.`);
      await fill();
      byId("close-voices").focus();
      onChanged();
    } catch (error) {
      const inUse = /** @type {any} */ (error).code === "voice_in_use";
      used = inUse ? name : null;
      tell(`${/** @type {Error} */ (error).message}${inUse ? " Press “Remove” again to do so." : ""}`);
    }
  }

  async function fill() {
    const { data, refusal } = await voices.list();
    byId("recorder").hidden = refusal !== null;
    setText(byId("voice-refusal"), refusal ? `${refusal[0].toUpperCase()}${refusal.slice(1)}.` : "");
    byId("voice-list").replaceChildren(...data.map(({ name, origin }) => make("li", {},
      make("p", {}, make("b", { text: name }), make("span", { text: ORIGINS[origin] })),
      make("button", { type: "button", id: `hear-${name}`, text: "Hear", "aria-label": `Hear ${name}`, onclick: () => hear(name) }),
      make("button", { type: "button", text: "Use", "aria-label": `Use ${name} in this talk`, onclick: () => {
        onUse(name);
        tell(`${name} speaks in this talk from now on.`);
      } }),
      origin === "own" ? null : make("button", { type: "button", text: "Remove", "aria-label": `Remove ${name}`, onclick: () => remove(name) }))));
  }

  byId("record").addEventListener("click", record);
  byId("keep-voice").addEventListener("click", keep);
  for (const field of ["consent", "voice-name"]) byId(field).addEventListener("input", ready);
  byId("voices").addEventListener("close", async () => {
    await stop();
    byId("sample").pause();
    byId("recorded").pause();
  });

  return async function show() {
    tell("");
    ready();
    byId("voices").showModal();
    await fill().catch((error) => tell(error.message));
  };
}
