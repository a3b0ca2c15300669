/** What is remembered in every talk: asked for and changed over HTTP. It draws nothing. */

const PATH = "/v1/memory";

/** @typedef {{text: string, comment: string, talk: {id: string, name: string}|null, turn: number|null}} Sentence `comment`: what stands beside it in the file */
/** @typedef {{data: Sentence[], file: string, complaint: string}} Memory `complaint`: what is wrong with the file, in words */

export class MemoryFile {
  /** Each method raises Error with what the server says. @param {import("./asker.js").Asker} asker */
  constructor(asker) {
    this._asker = asker;
  }

  /** @returns {Promise<Memory>} */
  list() {
    return this._asker.json("GET", PATH);
  }

  /** @param {{add: string}|{reword: string, to: string}|{take_out: string}|{forget: string}} change @returns {Promise<Memory>} */
  change(change) {
    return this._asker.json("POST", PATH, change);
  }
}
