/** Earlier talks: asked for, read, named and deleted over HTTP. It draws nothing. */

const PATH = "/v1/talks";

/** @typedef {{id: string, name: string|null, begins: string, turns: number, used_at: number, bytes: number, open: boolean}} Talk */

export class Talks {
  /** Each method raises Error with what the server says. @param {import("./asker.js").Asker} asker */
  constructor(asker) {
    this._asker = asker;
  }

  /** `folder`: where they are kept, `kept_days`: how long without a name. @returns {Promise<{data: Talk[], folder: string|null, kept_days: number}>} */
  list() {
    return this._asker.json("GET", PATH);
  }

  /** @param {string} id @param {string} name empty: none */
  async rename(id, name) {
    await this._asker.json("POST", `${PATH}/${id}`, { name });
  }

  /** @param {string} id */
  async remove(id) {
    await this._asker.json("DELETE", `${PATH}/${id}`);
  }

  /** What was said, as a text file. @param {Talk} talk @returns {Promise<Blob>} */
  async text(talk) {
    const { lines } = await this._asker.json("GET", `${PATH}/${talk.id}`);
    const said = lines.map((/** @type {any} */ { role, text, cut }) => `${role === "user" ? "You" : "Assistant"}: ${text}${cut ? " —" : ""}`);
    return new Blob([[talk.name ?? talk.begins, new Date(talk.used_at * 1000).toLocaleString(), "", ...said, ""].join("\n")], { type: "text/plain" });
  }
}
