"""Real Chromium for the page's tests: where it is, how it is started, what its microphone hears."""

from __future__ import annotations

import base64
import shutil
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

RATE = 48_000
EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def chromium(
    playwright: Playwright, microphone: Path | None = None, devices: int = 1, camera: Path | None = None
) -> Browser:
    """A headless browser; `microphone` is played once, each time that the page opens one of the microphones. `camera`
    is shown over and over.

    Without either there are microphones, and every request for one is refused.
    """
    fake = [f"--use-fake-device-for-media-stream=device-count={devices}"]
    if microphone is not None or camera is not None:
        fake += ["--use-fake-ui-for-media-stream", "--auto-select-desktop-capture-source=Entire screen"]
    if microphone is not None:
        fake += [f"--use-file-for-fake-audio-capture={microphone}%noloop"]
    if camera is not None:
        fake += [f"--use-file-for-fake-video-capture={camera}"]
    return playwright.chromium.launch(
        executable_path=EXECUTABLE,
        args=[
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--host-resolver-rules=MAP assistant.test 127.0.0.1",
            *fake,
        ],
    )


def speech_file(path: Path, spans: list[tuple[float, float]], seconds: float) -> Path:
    """Voice-like sound during each (start, duration), silence elsewhere."""
    t = np.arange(int(seconds * RATE)) / RATE
    sound = np.zeros_like(t)
    for start, length in spans:
        at = (t >= start) & (t < start + length)
        u = t[at] - start
        syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 4.5 * u)
        pitch = 130 + 25 * np.sin(2 * np.pi * 0.8 * u)
        phase = 2 * np.pi * np.cumsum(pitch) / RATE
        sound[at] = 0.2 * syllables * sum(np.sin(h * phase) / h for h in range(1, 8))
    return write_wav(path, sound.astype(np.float32), RATE)


def camera_file(path: Path, grey: int, width: int = 640, height: int = 480) -> Path:
    """A picture that stands still, as YUV4MPEG: a bright square on a ground of this grey."""
    light = np.full((height, width), grey, np.uint8)
    light[height // 4 : height // 2, width // 4 : width // 2] = 235
    colour = np.full((height // 2, width // 2), 128, np.uint8).tobytes() * 2
    head = f"YUV4MPEG2 W{width} H{height} F10:1 Ip A1:1 C420jpeg\n".encode()
    path.write_bytes(head + (b"FRAME\n" + light.tobytes() + colour) * 10)
    return path


def write_wav(path: Path, sound: np.ndarray, rate: int) -> Path:
    """Mono PCM16."""
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())
    return path


TAP = """
(() => {
  // A message for each block of 5 ms would itself delay what is measured; so they come in large pieces.
  const recorder = `registerProcessor("test-recorder", class extends AudioWorkletProcessor {
    constructor() {
      super();
      this.piece = new Float32Array(4096);
      this.fill = 0;
    }
    process(inputs) {
      const block = inputs[0][0];
      if (!block) return true;
      this.piece.set(block, this.fill);
      this.fill += block.length;
      if (this.fill === this.piece.length) {
        this.port.postMessage({ frame: currentFrame + block.length - this.fill, block: this.piece });
        this.fill = 0;
      }
      return true;
    }
  });`;
  window.rendered = { rate: 0, blocks: [], stamps: [] };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      const context = this.context;
      rendered.rate = context.sampleRate;
      const module = URL.createObjectURL(new Blob([recorder], { type: "text/javascript" }));
      this.context.audioWorklet.addModule(module).then(() => {
        const tap = new AudioWorkletNode(this.context, "test-recorder", { numberOfOutputs: 0 });
        tap.port.onmessage = (message) => {
          rendered.blocks.push(message.data);
          const { contextTime, performanceTime } = context.getOutputTimestamp();
          rendered.stamps.push([contextTime * context.sampleRate, performanceTime]);
        };
        connect.call(this, tap);
      });
    }
    return connect.call(this, target, ...rest);
  };
  window.renderedSound = () => {
    const { blocks, rate, stamps } = rendered;
    const from = blocks.length ? blocks[0].frame : 0;
    const length = blocks.length ? blocks[blocks.length - 1].frame + 4096 - from : 0;
    const pcm = new Int16Array(length);
    for (const { frame, block } of blocks) block.forEach((x, i) => { pcm[frame - from + i] = Math.round(x * 32767); });
    const bytes = new Uint8Array(pcm.buffer);
    let binary = "";
    for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode.apply(null, bytes.subarray(i, i + 8192));
    return { rate, stamps: stamps.map(([frame, ms]) => [frame - from, ms]), pcm: btoa(binary) };
  };
})();
"""


@dataclass(frozen=True)
class Rendered:
    """What went to the speaker since it was opened. `stamps` [N, 2]: this sample is heard at this page time."""

    sound: np.ndarray
    rate: int
    stamps: np.ndarray

    def onset(self, after_ms: float, threshold: float = 0.01) -> float:
        """Page time of the first loud sample after a page time."""
        start = max(0, self._sample(after_ms))
        return self.page_ms(start + int((np.abs(self.sound[start:]) > threshold).argmax()))

    def page_ms(self, sample: float) -> float:
        """By the stamp nearest to it: a sound device that was kept waiting shifts all that follows."""
        frame, ms = self.stamps[np.abs(self.stamps[:, 0] - sample).argmin()]
        return float(ms + (sample - frame) * 1000 / self.rate)

    def between(self, from_ms: float, to_ms: float) -> np.ndarray:
        a, b = (self._sample(ms) for ms in (from_ms, to_ms))
        return self.sound[max(0, a) : max(0, b)]

    def _sample(self, page_ms: float) -> int:
        if page_ms == np.inf:
            return self.sound.size
        frame, ms = self.stamps[np.abs(self.stamps[:, 1] - page_ms).argmin()]
        return int(frame + (page_ms - ms) * self.rate / 1000)


def listen(context: BrowserContext) -> None:
    """Have every page of the context record what it sends to its speaker. The context must bypass the page's CSP."""
    context.add_init_script(TAP)


def rendered(page: Page) -> Rendered:
    data = page.evaluate("renderedSound()")
    sound = np.frombuffer(base64.b64decode(data["pcm"]), "<i2").astype(np.float32) / 32767
    return Rendered(sound, int(data["rate"]), np.array(data["stamps"]))
