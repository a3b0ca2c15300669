/** What the person shows: a file, the camera or a window, as a JPEG no larger than a model looks at. */

/** Pixels of the long side: what a model sees of a picture is less, and the link is short. */
const LONG_SIDE = 1280;
const QUALITY = 0.85;

/** @typedef {{url: string, width: number, height: number}} Shot */
/** @typedef {"camera"|"screen"} Source */

/** @type {Record<string, Record<string, string>>} */
const TROUBLE = {
  camera: {
    NotAllowedError: "The camera is blocked. Allow it at the left of the address bar, then press the button again.",
    NotFoundError: "No camera was found. Plug one in, then press the button again.",
    NotReadableError: "Another program is using the camera. Close it, then press the button again.",
    insecure: "The browser blocks the camera for this address. Open the page on the machine itself, or over https.",
  },
  screen: {
    NotFoundError: "The browser found no window or screen to share.",
    insecure: "The browser cannot share a window from this address.",
  },
};

/** Draw what can be drawn, the right way up, on white. @param {CanvasImageSource} source @param {number} width @param {number} height @returns {Shot} */
function shoot(source, width, height) {
  const scale = Math.min(1, LONG_SIDE / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.fillStyle = "white"; // what is transparent would become black
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(source, 0, 0, canvas.width, canvas.height);
  return { url: canvas.toDataURL("image/jpeg", QUALITY), width: canvas.width, height: canvas.height };
}

/** A picture file; null for one that this browser cannot read. @param {Blob} file @returns {Promise<Shot|null>} */
export async function shotOf(file) {
  const bitmap = await createImageBitmap(file).catch(() => null); // turns photographs the right way up
  if (bitmap === null || Math.max(bitmap.width, bitmap.height) > 200 * Math.min(bitmap.width, bitmap.height)) return null;
  const shot = shoot(bitmap, bitmap.width, bitmap.height);
  bitmap.close();
  return shot;
}

/** The camera or a window, while it is on. */
export class View {
  /** @param {HTMLVideoElement} video where the person sees what is shown @param {(source: Source|null) => void} onChange */
  constructor(video, onChange) {
    this._video = video;
    this._onChange = onChange;
    /** @type {MediaStream|null} */
    this._stream = null;
    this.source = /** @type {Source|null} */ (null);
  }

  /** @param {Source} source @returns {Promise<string|null>} what went wrong, in words; null if it is on, or the person thought better of it */
  async open(source) {
    const devices = navigator.mediaDevices;
    const ask = source === "camera" ? devices?.getUserMedia : devices?.getDisplayMedia;
    if (!globalThis.isSecureContext || !ask) return TROUBLE[source].insecure;
    try {
      const stream = await ask.call(devices, { video: { width: { ideal: LONG_SIDE } }, audio: false });
      this.close();
      this._stream = stream;
      this.source = source;
      this._video.srcObject = stream;
      stream.getVideoTracks()[0].addEventListener("ended", () => this._stream === stream && this.close());
      await this._video.play();
      this._onChange(source);
      return null;
    } catch (error) {
      const { name } = /** @type {DOMException} */ (error);
      if (source === "screen" && name === "NotAllowedError") return null;
      return TROUBLE[source][name] ?? `The ${source} could not be started (${name}).`;
    }
  }

  close() {
    for (const track of this._stream?.getTracks() ?? []) track.stop();
    if (this._stream === null) return;
    this._stream = this.source = this._video.srcObject = null;
    this._onChange(null);
  }

  /** What is to be seen now; null while nothing is. @returns {Shot|null} */
  shot() {
    const { videoWidth, videoHeight } = this._video;
    return this._stream === null || videoWidth === 0 ? null : shoot(this._video, videoWidth, videoHeight);
  }
}
