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


def chromium(playwright: Playwright, microphone: Path | None = None) -> Browser:
    """A headless browser; `microphone` is played once, from the moment the page opens the microphone.

    Without it there is a microphone, and every request for it is refused.
    """
    fake = ["--use-fake-device-for-media-stream"]
    if microphone is not None:
        fake += ["--use-fake-ui-for-media-stream", f"--use-file-for-fake-audio-capture={microphone}%noloop"]
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
  const recorder = `registerProcessor("test-recorder", class extends AudioWorkletProcessor {
    process(inputs) {
      const block = inputs[0][0];
      if (block) this.port.postMessage({ frame: currentFrame, block: block.slice() });
      return true;
    }
  });`;
  window.rendered = { rate: 0, context: null, blocks: [] };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      rendered.context = this.context;
      rendered.rate = this.context.sampleRate;
      const module = URL.createObjectURL(new Blob([recorder], { type: "text/javascript" }));
      this.context.audioWorklet.addModule(module).then(() => {
        const tap = new AudioWorkletNode(this.context, "test-recorder", { numberOfOutputs: 0 });
        tap.port.onmessage = (message) => rendered.blocks.push(message.data);
        connect.call(this, tap);
      });
    }
    return connect.call(this, target, ...rest);
  };
  window.renderedSound = () => {
    const { blocks, rate, context } = rendered;
    const from = blocks.length ? blocks[0].frame : 0;
    const length = blocks.length ? blocks[blocks.length - 1].frame + 128 - from : 0;
    const pcm = new Int16Array(length);
    for (const { frame, block } of blocks) block.forEach((x, i) => { pcm[frame - from + i] = Math.round(x * 32767); });
    const bytes = new Uint8Array(pcm.buffer);
    let binary = "";
    for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode.apply(null, bytes.subarray(i, i + 8192));
    const stamp = context ? context.getOutputTimestamp() : { contextTime: 0, performanceTime: 0 };
    return { rate, startMs: stamp.performanceTime + (from / rate - stamp.contextTime) * 1000, pcm: btoa(binary) };
  };
})();
"""


@dataclass(frozen=True)
class Rendered:
    """What went to the speaker since it was opened. `start_ms`: page time at which the first sample is heard."""

    sound: np.ndarray
    rate: int
    start_ms: float

    def loud(self, threshold: float = 0.01, gap_ms: float = 250.0) -> list[tuple[float, float]]:
        """Page times of each stretch of sound, joined over short gaps."""
        at = np.flatnonzero(np.abs(self.sound) > threshold)
        if at.size == 0:
            return []
        cuts = np.flatnonzero(np.diff(at) > gap_ms * self.rate / 1000)
        first, last = np.r_[at[0], at[cuts + 1]], np.r_[at[cuts], at[-1]]
        return [(self.page_ms(a), self.page_ms(b)) for a, b in zip(first, last, strict=True)]

    def page_ms(self, sample: float) -> float:
        return float(self.start_ms + sample * 1000 / self.rate)

    def between(self, from_ms: float, to_ms: float) -> np.ndarray:
        a, b = (int((ms - self.start_ms) * self.rate / 1000) for ms in (from_ms, to_ms))
        return self.sound[max(0, a) : max(0, b)]


def listen(context: BrowserContext) -> None:
    """Have every page of the context record what it sends to its speaker. The context must bypass the page's CSP."""
    context.add_init_script(TAP)


def rendered(page: Page) -> Rendered:
    data = page.evaluate("renderedSound()")
    sound = np.frombuffer(base64.b64decode(data["pcm"]), "<i2").astype(np.float32) / 32767
    return Rendered(sound, int(data["rate"]), data["startMs"])
