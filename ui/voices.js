/** The voices that are kept on the machine: asked for, added, heard and removed over HTTP. It draws nothing. */

const PATH = "/v1/audio/voices";
const GREETING = "Hello. This is how I sound when I answer you, and I hope that you like it.";

/** @typedef {{name: string, origin: "own"|"designed"|"given", seconds: number, transcript: string|null}} Voice */

export class Voices {
  /** @param {string|null} token */
  constructor(token) {
    this._headers = token ? { Authorization: `Bearer ${token}` } : {};
  }

  /** `refusal`: why no recording can become a voice here, or null. @returns {Promise<{data: Voice[], refusal: string|null}>} */
  async list() {
    return (await this._ask("GET", PATH)).json();
  }

  /** @param {string} name @param {Blob} sound @param {boolean} replace @returns {Promise<Voice>} */
  async add(name, sound, replace) {
    const form = new FormData();
    form.set("audio_sample", sound, "voice.wav");
    for (const [field, value] of Object.entries({ name, consent: "true", replace: String(replace) })) form.set(field, value);
    return (await this._ask("POST", PATH, form)).json();
  }

  /** @param {string} name @param {boolean} anyway although somebody speaks with it */
  async remove(name, anyway) {
    await this._ask("DELETE", `${PATH}/${encodeURIComponent(name)}?anyway=${anyway}`);
  }

  /** A sentence in it. @param {string} voice @returns {Promise<Blob>} */
  async hear(voice) {
    const body = JSON.stringify({ model: "local", voice, input: GREETING, response_format: "flac" });
    return (await this._ask("POST", "/v1/audio/speech", body, { "Content-Type": "application/json" })).blob();
  }

  /**
   * Raises Error with what the server says; `code` is its error's.
   * @param {string} method @param {string} path @param {BodyInit} [body] @param {Record<string, string>} [headers]
   */
  async _ask(method, path, body, headers = {}) {
    const answer = await fetch(path, { method, body, headers: { ...this._headers, ...headers } }).catch(() => null);
    if (answer === null) throw new Error("The assistant is not reachable.");
    if (answer.ok) return answer;
    const { message, code } = (await answer.json().catch(() => ({}))).error ?? {};
    throw Object.assign(new Error(message ? `${message[0].toUpperCase()}${message.slice(1)}.` : `The server answered ${answer.status}.`), { code });
  }
}
