"""Voices: a reference recording prepared for cloning, its codes, and the capsule of its prefix.

The model imitates everything in its reference: loudness, noise and above all the ending, so the tail is faded to
silence. Loudness is left alone. A voice is identified by its codes and transcript; two voices with the same are one.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import samplerate
import soundfile
import torch
from numpy.typing import NDArray
from torch import Tensor

from capsules import Capsule
from tts_engine.config import SAMPLE_RATE
from tts_engine.errors import ReferenceRefused

LONGEST_S = 30.0
SHORTEST_S = 0.05
PADDED_S = 1.0  # shorter clips are padded with silence, as everywhere else
FADE_S = 0.05
SILENT_PEAK = 1e-3  # of full scale
INTEGERS = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))


@dataclass(frozen=True, eq=False)
class Voice:
    """codes [Q, T] int64 of the reference, or None for no reference; capsule: the state after its prefix."""

    name: str
    codes: Tensor | None
    transcript: str | None
    capsule: Capsule | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """Equal for equal codes and transcript: all reference positions share one id, so ids alone would not
        suffice."""
        digest = hashlib.blake2b(digest_size=16)
        if self.codes is not None:
            digest.update(str(tuple(self.codes.shape)).encode())
            digest.update(self.codes.to("cpu", torch.int64).contiguous().numpy().tobytes())
        digest.update((self.transcript or "").encode())
        return digest.hexdigest()


def prepare_reference(wave: Any, rate: int = SAMPLE_RATE) -> Tensor:
    """Any recording -> float32 [samples], mono, 24 kHz, tail faded, at least one second.

    wave  a file that libsndfile reads, with its own rate; or samples, [samples, channels] or
          [channels, samples]: a tensor, an array or a list; float or 16/32-bit integer
    Raises ReferenceRefused: not a sound file, empty, not finite, silent, shorter than 0.05 s or longer than 30 s.
    """
    samples, rate = _read(wave) if isinstance(wave, str | Path) else (_mono(wave), rate)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 4_000 <= rate <= 384_000:
        raise ReferenceRefused(f"a reference at {rate!r} Hz; 4000 to 384000 samples a second are accepted")
    if not np.isfinite(samples).all():
        raise ReferenceRefused("the reference holds values that are not numbers")
    seconds = samples.size / rate
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ReferenceRefused(
            f"the reference is {seconds:.2f} s long; {SHORTEST_S} to {LONGEST_S:g} s are accepted, 10 to 20 s are best"
        )
    if float(np.abs(samples).max()) < SILENT_PEAK:
        raise ReferenceRefused("the reference is silent; record it again closer to the microphone")
    if rate != SAMPLE_RATE:
        samples = np.asarray(samplerate.resample(samples, SAMPLE_RATE / rate, "sinc_best"), dtype=np.float32)
    samples = np.clip(samples, -1.0, 1.0)
    fade = min(samples.size, int(FADE_S * SAMPLE_RATE))
    samples[-fade:] *= np.linspace(1.0, 0.0, fade, dtype=np.float32)
    missing = int(PADDED_S * SAMPLE_RATE) - samples.size
    return torch.from_numpy(np.pad(samples, (0, max(0, missing))))


def _read(path: str | Path) -> tuple[NDArray[np.float32], int]:
    """A sound file's samples, mono, and their rate."""
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, RuntimeError) as error:
        raise ReferenceRefused(f"{path} cannot be read as sound: {error}; give a WAV or FLAC file") from error
    return _mono(samples.T), int(rate)


def _mono(wave: Any) -> NDArray[np.float32]:
    """[samples] of one or more channels."""
    try:
        samples = wave.detach().cpu().numpy() if isinstance(wave, Tensor) else np.asarray(wave)
    except (TypeError, ValueError) as error:
        raise ReferenceRefused(f"a reference of {type(wave).__name__} is no row of samples: {error}") from error
    if samples.dtype.kind not in "iuf":
        raise ReferenceRefused(
            f"a reference of {type(wave).__name__} ({samples.dtype}); give samples as numbers, or a path"
        )
    if samples.dtype.kind != "f":
        samples = samples / float(-np.iinfo(samples.dtype).min or 1)
    samples = samples.astype(np.float32)
    if samples.ndim == 2:
        samples = samples.mean(axis=0 if samples.shape[0] <= samples.shape[1] else 1)
    if samples.ndim != 1 or samples.size == 0:
        raise ReferenceRefused(f"a reference of shape {list(np.shape(wave))}; one or two channels are needed")
    return samples


def checked_codes(codes: Any, codebooks: int, size: int) -> Tensor:
    """[Q, T] int64 on the host; codes is a tensor, an array or lists of integers. Raises ReferenceRefused."""
    try:
        made = torch.as_tensor(codes)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ReferenceRefused(f"codes of {type(codes).__name__} are no table of integers: {error}") from error
    if made.dim() != 2 or made.shape[0] != codebooks or made.shape[1] < 1:
        raise ReferenceRefused(f"codes are {list(made.shape)}; [{codebooks}, frames] are needed")
    if made.dtype not in INTEGERS:
        raise ReferenceRefused(f"codes are {made.dtype}; integers are needed, as HiggsTTS.codes gives them")
    made = made.to("cpu", torch.int64)
    if int(made.min()) < 0 or int(made.max()) >= size:
        raise ReferenceRefused(
            f"codes reach from {int(made.min())} to {int(made.max())}; 0 to {size - 1} are real codes"
        )
    return made
