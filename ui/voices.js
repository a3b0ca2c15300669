/** The voices that are kept on the machine: asked for, added, heard and removed over HTTP. It draws nothing. */

const PATH = "/v1/audio/voices";
const GREETING = "Hello. This is how I sound when I answer you, and I hope that you like it.";

/** @typedef {{name: string, origin: "own"|"designed"|"given", seconds: number, transcript: string|null}} Voice */

export class Voices {
  /** Each method raises Error with what the server says. @param {import("./asker.js").Asker} asker */
  constructor(asker) {
    this._asker = asker;
  }

  /** `refusal`: why no recording can become a voice here, or null. @returns {Promise<{data: Voice[], refusal: string|null}>} */
  async list() {
    return this._asker.json("GET", PATH);
  }

  /** @param {string} name @param {Blob} sound @param {boolean} replace @returns {Promise<Voice>} */
  async add(name, sound, replace) {
    const form = new FormData();
    form.set("audio_sample", sound, "voice.wav");
    for (const [field, value] of Object.entries({ name, consent: "true", replace: String(replace) })) form.set(field, value);
    return (await this._asker.ask("POST", PATH, form)).json();
  }

  /** @param {string} name @param {boolean} anyway although somebody speaks with it */
  async remove(name, anyway) {
    await this._asker.ask("DELETE", `${PATH}/${encodeURIComponent(name)}?anyway=${anyway}`);
  }

  /** A sentence in it. @param {string} voice @returns {Promise<Blob>} */
  async hear(voice) {
    const body = JSON.stringify({ model: "local", voice, input: GREETING, response_format: "flac" });
    return (await this._asker.ask("POST", "/v1/audio/speech", body, { "Content-Type": "application/json" })).blob();
  }
}
