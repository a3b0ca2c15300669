"""Real Chromium for the page's tests: where it is, how it is started, what its microphone hears."""

from __future__ import annotations

import shutil
import wave
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Playwright

RATE = 48_000
EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def chromium(playwright: Playwright, microphone: Path | None = None) -> Browser:
    """A headless browser; `microphone` is played once, from the moment the page opens the microphone."""
    fake = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"]
    if microphone is not None:
        fake.append(f"--use-file-for-fake-audio-capture={microphone}%noloop")
    return playwright.chromium.launch(
        executable_path=EXECUTABLE,
        args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", *(fake if microphone else [])],
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
