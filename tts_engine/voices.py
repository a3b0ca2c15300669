"""Voices: a reference recording made fit for cloning, its codes, and the capsule of its prefix.

The model imitates its reference in everything, its loudness, its noise and above all its ending, so the tail is faded
to silence. Loudness is left alone. A voice is known by its codes and transcript; two voices with the same are one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import samplerate
import torch
from torch import Tensor

from capsules import Capsule
from capsules.disk import CapsuleFolder
from tts_engine.config import SAMPLE_RATE
from tts_engine.errors import ReferenceRefused

LONGEST_S = 30.0
SHORTEST_S = 0.05
PADDED_S = 1.0  # shorter clips are padded with silence, as everywhere else
FADE_S = 0.05
SILENT_PEAK = 1e-3  # of full scale


@dataclass(frozen=True, eq=False)
class Voice:
    """codes [Q, T] int64 of the reference, or None for no reference; capsule: the state after its prefix."""

    name: str
    codes: Tensor | None
    transcript: str | None
    capsule: Capsule | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """Equal for equal codes and transcript: all reference positions share one id, so ids alone would not do."""
        digest = hashlib.blake2b(digest_size=16)
        if self.codes is not None:
            digest.update(str(tuple(self.codes.shape)).encode())
            digest.update(self.codes.to("cpu", torch.int64).contiguous().numpy().tobytes())
        digest.update((self.transcript or "").encode())
        return digest.hexdigest()


def prepare_reference(wave: Any, rate: int = SAMPLE_RATE) -> Tensor:
    """Any recording -> float32 [samples], mono, 24 kHz, tail faded, at least one second.

    wave  samples, [samples, channels] or [channels, samples]; a tensor, an array or a list; float or 16/32-bit integer
    Raises ReferenceRefused: empty, not finite, silent, shorter than 0.05 s or longer than 30 s.
    """
    samples = wave.detach().cpu().numpy() if isinstance(wave, Tensor) else np.asarray(wave)
    if np.issubdtype(samples.dtype, np.integer):
        samples = samples / float(-np.iinfo(samples.dtype).min or 1)
    samples = samples.astype(np.float32)
    if samples.ndim == 2:
        samples = samples.mean(axis=0 if samples.shape[0] <= samples.shape[1] else 1)
    if samples.ndim != 1 or samples.size == 0 or not 4_000 <= rate <= 384_000:
        raise ReferenceRefused(
            f"a reference of shape {list(np.shape(wave))} at {rate} Hz; one or two channels are needed"
        )
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


def save_voice(folder: Path, voice: Voice) -> str:
    """Store a voice that has its capsule; returns the key of the file. Raises CapsuleNotSaved."""
    if voice.capsule is None:
        raise ReferenceRefused(f"voice {voice.name!r} has no capsule; make it with HiggsTTS.voice")
    CapsuleFolder(folder).save(voice.key, voice.capsule, {"voice": voice.name})
    return voice.key


def load_voice(folder: Path, key: str) -> Voice:
    """A stored voice. Raises CapsuleDamaged. Whether its capsule fits the engine shows when it is used."""
    capsule = CapsuleFolder(folder).load(key)
    facts = capsule.host["session"]["voice"]
    codes = facts["codes"]
    return Voice(facts["name"], None if codes is None else torch.tensor(codes), facts["transcript"], capsule)


def with_capsule(voice: Voice, capsule: Capsule) -> Voice:
    return replace(voice, capsule=capsule)


def checked_codes(codes: Tensor | Sequence[Sequence[int]], codebooks: int, size: int) -> Tensor:
    """[Q, T] int64 on the host. Raises ReferenceRefused."""
    made = torch.as_tensor(codes).to("cpu", torch.int64)
    if made.dim() != 2 or made.shape[0] != codebooks or made.shape[1] < 1:
        raise ReferenceRefused(f"reference codes are {list(made.shape)}; [{codebooks}, frames] are needed")
    if int(made.min()) < 0 or int(made.max()) >= size:
        raise ReferenceRefused(f"reference codes reach {int(made.max())}; 0 to {size - 1} are real codes")
    return made
