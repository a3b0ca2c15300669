"""Sound as numbers: formats, sample arithmetic, resampling, WAV files. Internally, sound is float32 mono in [-1, 1]."""

from __future__ import annotations

import io

import numpy as np
import samplerate
import soundfile

from assistant.base.sound import Pcm

_MU = 255.0
_A = 87.6


def silence(samples: int) -> Pcm:
    return np.zeros(samples, np.float32)


def samples_of(ms: float, rate: int) -> int:
    return round(ms * rate / 1000)


def from_pcm16(data: bytes) -> Pcm:
    """Little-endian 16-bit samples. Raises ValueError on an odd number of bytes."""
    return np.frombuffer(data, "<i2").astype(np.float32) / 32768.0


def to_pcm16(pcm: Pcm) -> bytes:
    """Samples are clipped to full scale; NaN becomes silence."""
    safe = np.nan_to_num(pcm, nan=0.0, posinf=1.0, neginf=-1.0)
    return (np.clip(safe, -1.0, 1.0) * 32767.0).round().astype("<i2").tobytes()


def from_ulaw(data: bytes) -> Pcm:
    """G.711 µ-law, 8 bits a sample."""
    code = ~np.frombuffer(data, np.uint8)
    magnitude = (((code & 0x0F).astype(np.int32) << 3) + 0x84 << ((code & 0x70) >> 4).astype(np.int32)) - 0x84
    return (np.where(code & 0x80, -magnitude, magnitude) / 32768.0).astype(np.float32)


def to_ulaw(pcm: Pcm) -> bytes:
    value = np.frombuffer(to_pcm16(pcm), "<i2").astype(np.int32)
    magnitude = np.minimum(np.abs(value), 32635) + 0x84
    exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 7
    mantissa = (magnitude >> (exponent + 3)) & 0x0F
    code = np.where(value < 0, 0x80, 0) | (exponent << 4) | mantissa
    return (~code.astype(np.uint8)).tobytes()


def from_alaw(data: bytes) -> Pcm:
    """G.711 A-law, 8 bits a sample."""
    code = np.frombuffer(data, np.uint8) ^ 0x55
    exponent = ((code & 0x70) >> 4).astype(np.int32)
    base = ((code & 0x0F).astype(np.int32) << 4) + 8
    magnitude = np.where(exponent == 0, base, (base + 0x100) << np.maximum(exponent - 1, 0))
    return (np.where(code & 0x80, magnitude, -magnitude) / 32768.0).astype(np.float32)


def to_alaw(pcm: Pcm) -> bytes:
    value = np.frombuffer(to_pcm16(pcm), "<i2").astype(np.int32)
    magnitude = np.minimum(np.where(value < 0, -value - 1, value), 32767)
    exponent = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 7, 0)
    mantissa = np.where(exponent == 0, magnitude >> 4, magnitude >> (exponent + 3)) & 0x0F
    code = np.where(value >= 0, 0x80, 0) | (exponent << 4) | mantissa
    return (code.astype(np.uint8) ^ 0x55).tobytes()


class Resampler:
    """Converts a stream from one rate to another; keeps the filter's state between blocks."""

    def __init__(self, source_rate: int, target_rate: int, kind: str = "sinc_fastest") -> None:
        self.source_rate = source_rate
        self.target_rate = target_rate
        self._ratio = target_rate / source_rate
        self._filter = None if source_rate == target_rate else samplerate.Resampler(kind, 1)

    def feed(self, pcm: Pcm, last: bool = False) -> Pcm:
        """Return the samples that are ready; a few stay in the filter until more arrive or `last` is set."""
        if self._filter is None:
            return pcm
        return np.asarray(self._filter.process(pcm, self._ratio, last), np.float32)


def resample(pcm: Pcm, source_rate: int, target_rate: int) -> Pcm:
    """Convert a whole sound to another rate."""
    if source_rate == target_rate:
        return pcm
    return np.asarray(samplerate.resample(pcm, target_rate / source_rate, "sinc_medium"), np.float32)


def wav_bytes(pcm: Pcm, rate: int) -> bytes:
    """A 16-bit mono WAV."""
    made = io.BytesIO()
    soundfile.write(made, np.frombuffer(to_pcm16(pcm), "<i2"), rate, subtype="PCM_16", format="WAV")
    return made.getvalue()
