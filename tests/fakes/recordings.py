"""Recordings of nobody: sound with the loudness and the pauses of speech, and ten that nobody can use."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import soundfile

RATE = 24_000


def voice_like(seconds: float = 5.0, rate: int = RATE, pitch: float = 120.0, gain: float = 0.2) -> np.ndarray:
    """[n] float32: harmonics of a pitch that moves, in syllables."""
    t = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(pitch + 25 * np.sin(2 * np.pi * 0.8 * t)) / rate
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 4.5 * t)
    return (gain * syllables * sum(np.sin(h * phase) / h for h in range(1, 8))).astype(np.float32)


def recorded(path: Path, **kinds: float) -> Path:
    """Written at its rate as a WAV file of 16 bits."""
    soundfile.write(path, voice_like(**kinds), int(kinds.get("rate", RATE)), subtype="PCM_16")
    return path


def hostile(folder: Path) -> dict[str, tuple[Path, str]]:
    """What it is: the file, and what is said of it."""
    made: dict[str, tuple[Path, str]] = {}

    def put(what: str, said: str, sound: np.ndarray | bytes, rate: int = RATE, subtype: str = "PCM_16") -> None:
        path = folder / f"{what.replace(' ', '-')}.wav"
        if isinstance(sound, bytes):
            path.write_bytes(sound)
        else:
            soundfile.write(path, sound, rate, subtype=subtype)
        made[what] = path, said

    speech = voice_like(4.0)
    whole = recorded(folder / "whole.wav").read_bytes()
    put("empty", "is empty", b"")
    put("truncated", "cannot be read as sound", whole[:30])
    put("not sound", "cannot be read as sound", b"This is a letter and not a recording.\n" * 40)
    put("one sample", "too short", np.full(1, 0.3, np.float32))
    put("half an hour", "longer than 30 s", np.zeros(1800 * 8000, np.int16), 8000)
    put("silence", "is silent", np.zeros(4 * RATE, np.float32))
    put("clipped", "clipped", np.clip(speech * 20, -1, 1))
    put("too quiet", "too quiet", speech * 0.01)
    put("a click", "0.1 s of sound", np.r_[speech[: RATE // 8], np.zeros(4 * RATE, np.float32)])
    put("no numbers", "invalid values", np.where(np.arange(speech.size) % 99 == 5, np.nan, speech), subtype="FLOAT")
    put("many channels", "200 channels", np.tile(speech[: RATE // 2, None], (1, 200)))
    put("absurd rate", "1000000 samples a second", speech, 1_000_000)
    put("slow rate", "100 samples a second", speech[:2000], 100)
    huge = folder / "huge.wav"
    with huge.open("wb") as file:  # a hole in the disk, not gigabytes of it
        file.write(b"RIFF" + struct.pack("<I", 0xFFFFFFFF) + b"WAVE")
        file.truncate(5 << 30)
    made["huge file"] = huge, "5369 MB"
    return made
