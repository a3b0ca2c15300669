/** The microphone: asks for it, names what went wrong in words a person can act on, and delivers 20 ms pieces. */

/** @typedef {{pcm: Int16Array, frame: number, power: number}} Piece */
/** @typedef {"insecure"|"refused"|"missing"|"busy"|"failed"} Trouble */

/** Longest wait for the browser's sound system; without any sound device some browsers never start it. */
const WAKING_MS = 3000;

/** Why a track ended by itself: the person took the permission back, or the device went. @returns {Promise<Trouble>} */
async function whyEnded() {
  const permission = await navigator.permissions?.query({ name: /** @type {PermissionName} */ ("microphone") }).catch(() => null);
  return permission?.state === "denied" ? "refused" : "missing";
}

export class MicrophoneTrouble extends Error {
  /** @param {Trouble} kind @param {string} detail */
  constructor(kind, detail) {
    super(detail);
    this.kind = kind;
  }
}

/** @type {Record<string, Trouble>} */
const KINDS = {
  NotAllowedError: "refused", SecurityError: "refused", NotFoundError: "missing", OverconstrainedError: "missing",
  NotReadableError: "busy", AbortError: "busy",
};

export class Microphone {
  /** @param {AudioContext} context @param {MediaStreamTrack} track @param {AudioNode} source */
  constructor(context, track, source) {
    this._context = context;
    this.track = track;
    this._source = source;
  }

  /**
   * @param {{
   *   deviceId?: string, raw?: boolean, onPiece: (piece: Piece, track: MediaStreamTrack) => void, onEnded: (why: Trouble) => void,
   *   onPaused?: (paused: boolean, track: MediaStreamTrack) => void,
   * }} options `raw`: as the room sounds, for a voice that is kept; a talk hears better without echo and noise.
   *   `onPaused`: the system took the sound away for a while, or gave it back
   * @returns {Promise<Microphone>}
   * Raises MicrophoneTrouble.
   */
  static async open({ deviceId, raw = false, onPiece, onEnded, onPaused = () => {} }) {
    if (!globalThis.isSecureContext || !navigator.mediaDevices?.getUserMedia) {
      throw new MicrophoneTrouble("insecure", "This page is not in a secure context.");
    }
    const stream = await ask(deviceId, raw);
    const [track] = stream.getAudioTracks();
    const context = new AudioContext({ latencyHint: "interactive" });
    try {
      await context.audioWorklet.addModule(new URL("./capture.worklet.js", import.meta.url));
      const source = context.createMediaStreamSource(stream);
      const node = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
      node.port.onmessage = (message) => onPiece(message.data, track);
      source.connect(node);
      await Promise.race([context.resume(), new Promise((resolve) => setTimeout(resolve, WAKING_MS))]);
      if (context.state !== "running") throw new Error("The browser's sound system did not start.");
      const look = () => onPaused(track.muted || context.state !== "running", track);
      for (const change of ["mute", "unmute"]) track.addEventListener(change, look);
      context.onstatechange = () => context.state !== "closed" && look();
      track.addEventListener("ended", async () => onEnded(await whyEnded()));
      return new Microphone(context, track, source);
    } catch (error) {
      track.stop();
      await context.close();
      throw new MicrophoneTrouble("failed", String(error));
    }
  }

  /** A muted track still delivers silence, so that the server's clock and its turn detection go on. */
  set muted(muted) {
    this.track.enabled = !muted;
  }

  /** Go on after the system suspended it; browsers want a gesture for that. */
  async resume() {
    await Promise.race([this._context.resume(), new Promise((resolve) => setTimeout(resolve, WAKING_MS))]);
  }

  get label() {
    return this.track.label;
  }

  get deviceId() {
    return this.track.getSettings().deviceId ?? "";
  }

  async close() {
    this._source.disconnect();
    this.track.stop();
    await this._context.close();
  }
}

/** @param {string|undefined} deviceId @param {boolean} raw @returns {Promise<MediaStream>} */
async function ask(deviceId, raw) {
  const audio = {
    echoCancellation: !raw, noiseSuppression: !raw, autoGainControl: false, channelCount: 1,
    ...(deviceId ? { deviceId: { exact: deviceId } } : {}),
  };
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    throw new MicrophoneTrouble(KINDS[name] ?? "failed", String(error));
  }
}

/** Sound devices; without permission their names are empty. @param {"audioinput"|"audiooutput"} kind @returns {Promise<{id: string, label: string}[]>} */
export async function soundDevices(kind) {
  if (!navigator.mediaDevices?.enumerateDevices) return [];
  const devices = await navigator.mediaDevices.enumerateDevices();
  return devices.filter((one) => one.kind === kind).map((one) => ({ id: one.deviceId, label: one.label }));
}
