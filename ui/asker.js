/** Requests to the server beside the talk, with its own words when it refuses. It draws nothing. */

export class Asker {
  /** @param {string|null} token */
  constructor(token) {
    this._headers = token ? { Authorization: `Bearer ${token}` } : {};
  }

  /**
   * Raises Error with what the server says; `code` is its error's, `status` that of the answer.
   * @param {string} method @param {string} path @param {BodyInit} [body] @param {Record<string, string>} [headers]
   */
  async ask(method, path, body, headers = {}) {
    const answer = await fetch(path, { method, body, headers: { ...this._headers, ...headers } }).catch(() => null);
    if (answer === null) throw new Error("The assistant is not reachable.");
    if (answer.ok) return answer;
    const { message, code } = (await answer.json().catch(() => ({}))).error ?? {};
    const words = message ? `${message[0].toUpperCase()}${message.slice(1)}.` : `The server answered ${answer.status}.`;
    throw Object.assign(new Error(words), { code, status: answer.status });
  }

  /** The same with JSON both ways. @param {string} method @param {string} path @param {any} [body] */
  async json(method, path, body) {
    const sent = body === undefined ? [] : [JSON.stringify(body), { "Content-Type": "application/json" }];
    return (await this.ask(method, path, .../** @type {[string?, Record<string, string>?]} */ (sent))).json();
  }
}
