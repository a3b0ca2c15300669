/** The wire: one websocket that comes back by itself, resumes its conversation and keeps the clocks aligned. */

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8000;
/** Close code: another tab goes on with the talk. This one stays closed, or both would take it from each other for ever. */
const MOVED = 4001;
const PING_EVERY_MS = 5000;
const FIRST_PINGS_MS = [0, 60, 120, 250, 500, 1000];
/** Sound waiting in the socket beyond this is dropped: it would arrive too late to mean anything. */
const CLOGGED_BYTES = 1 << 20;

export class Wire {
  /**
   * @param {{
   *   url: (conversationId: string|null) => string, protocols: string[],
   *   onEvent: (event: any) => void,
   *   onLink: (link: "connecting"|"open"|"lost"|"full"|"moved", retryAt: number|null) => void,
   * }} options
   */
  constructor({ url, protocols, onEvent, onLink }) {
    this._url = url;
    this._protocols = protocols;
    this._onEvent = onEvent;
    this._onLink = onLink;
    /** @type {WebSocket|null} */
    this._socket = null;
    /** @type {string|null} */
    this.conversationId = null;
    this._wait = FIRST_WAIT_MS;
    this._moved = false;
    /** @type {number[]} */
    this._timers = [];
    addEventListener("online", () => this.hurry());
    addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.hurry());
  }

  get open() {
    return this._socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    this._clearTimers();
    this._moved = false;
    const socket = new WebSocket(this._url(this.conversationId), this._protocols);
    this._socket = socket;
    this._onLink("connecting", null);
    socket.onmessage = (message) => socket === this._socket && this._receive(message.data);
    socket.onclose = (event) => socket === this._socket && this._lost(event.code);
  }

  /** Leave this conversation and go on with another, or begin one. @param {string|null} conversationId */
  restart(conversationId) {
    const old = this._socket;
    this._socket = null;
    this.conversationId = conversationId;
    old?.close(1000);
    this.connect();
  }

  /** @param {Record<string, any>} event @returns {boolean} whether it was sent */
  send(event) {
    if (!this.open) return false;
    /** @type {WebSocket} */ (this._socket).send(JSON.stringify(event));
    return true;
  }

  /** Like `send`, for microphone sound: nothing is sent into a clogged socket. @param {string} base64 */
  sendAudio(base64) {
    if (!this.open || /** @type {WebSocket} */ (this._socket).bufferedAmount > CLOGGED_BYTES) return false;
    return this.send({ type: "input_audio_buffer.append", audio: base64 });
  }

  /** @param {string} text */
  _receive(text) {
    const event = JSON.parse(text);
    event.at = performance.now();
    if (event.type === "session.created") {
      this._wait = FIRST_WAIT_MS;
      this._onLink("open", null);
      if (event.session?.assistant?.extensions?.includes("clock")) this._startPings();
    }
    if (event.type === "conversation.created") this.conversationId = event.conversation.id;
    this._onEvent(event);
  }

  _startPings() {
    const ping = () => this.send({ type: "assistant.ping", client_ms: performance.now() });
    for (const delay of FIRST_PINGS_MS) this._timers.push(setTimeout(ping, delay));
    this._timers.push(setInterval(ping, PING_EVERY_MS));
  }

  /** @param {number} code */
  _lost(code) {
    this._clearTimers();
    this._socket = null;
    this._moved = code === MOVED;
    if (this._moved) return this._onLink("moved", null);
    const wait = code === 1013 ? LONGEST_WAIT_MS : this._wait;
    this._wait = Math.min(LONGEST_WAIT_MS, this._wait * 2);
    this._onLink(code === 1013 ? "full" : "lost", performance.now() + wait);
    this._timers.push(setTimeout(() => this.connect(), wait));
    return undefined;
  }

  /** The server is there: do not wait. */
  hurry() {
    if (this._socket === null && !this._moved) this.connect();
  }

  _clearTimers() {
    for (const timer of this._timers) clearTimeout(timer); // also ends intervals: they share one list of ids
    this._timers = [];
  }
}
