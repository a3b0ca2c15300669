"""Who speaks in this talk: the average sound of voice and microphone, and the length of the vocal tract.

Short vocal tracts (women, children) put the same vowel at higher frequencies than the men of whom the acoustic model
learnt most; a frequency axis `warp` times as wide brings it back. Which warp fits is asked of the acoustic model's own
Gaussians, without regard to the words (Wegmann et al. 1996), so it costs milliseconds and no decoding.

T: frames of 10 ms; W: warps; C: cepstra.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pocketsphinx import get_model_path

from assistant.hearing.cepstra import CEPSTRA, Floats

WARPS = (0.92, 1.0, 1.08, 1.16)
MEAN = np.array([52.8, -7.2, -2.3, 4.3, -7.6, 1.4, -6.9, -7.0, -1.3, -3.7, 0.3, -4.3, 0.8])
"""Cepstra of nobody in particular: the mean of nine synthetic voices at half of full scale."""
MEAN_FRAMES = 30.0
KNOWN_FRAMES = 400.0
"""The weight of what a talk knows, in frames of the utterance that is under way; the microphone may have moved."""
LOUD = 45
"""Frames louder than this per cent of an utterance are speech."""


class Speaker:
    """What one talk has told so far. All means are [W, C]."""

    def __init__(self) -> None:
        self._frames = MEAN_FRAMES
        self._mean = np.tile(MEAN, (len(WARPS), 1))
        self._fit = np.zeros(len(WARPS))
        self._known = False

    @property
    def known(self) -> bool:
        """Something was learnt."""
        return self._known

    def mean(self, total: Floats, frames: int) -> Floats:
        """The mean of an utterance of which `frames` frames, `total` [W, C] in sum, are known."""
        result: Floats = (total + self._frames * self._mean) / (frames + self._frames)
        return result

    def warp(self, heard: Floats | None = None) -> int:
        """Which of WARPS fits best, `heard` [T, W, C] taken into account."""
        return int(np.argmax(self._fit if heard is None else self._fit + fits(heard)))

    def learn(self, heard: Floats) -> None:
        """Another utterance of this speaker, [T, W, C]."""
        self._fit = self._fit + fits(heard)
        self._mean = self.mean(heard.sum(axis=0), len(heard))
        self._frames = min(self._frames + len(heard), KNOWN_FRAMES)
        self._known = True


def fits(heard: Floats) -> Floats:
    """[T, W, C] -> [W]: log-likelihoods of the loud frames under the best Gaussian for each."""
    level = heard[:, WARPS.index(1.0), 0]
    loud = heard[level >= np.percentile(level, LOUD)] - heard.mean(axis=0)
    constant, linear, square = _gaussians()
    flat = loud.reshape(-1, CEPSTRA).astype(np.float32)  # [T * W, C]
    best = (constant + flat @ linear + (flat * flat) @ square).max(axis=1)
    result: Floats = best.reshape(-1, len(WARPS)).sum(axis=0, dtype=np.float64)
    return result


@cache
def _gaussians() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Of all phones: constants [G], and the coefficients [C, G] of x and of x²."""
    means, variances = (_static(Path(get_model_path(f"en-us/en-us/{name}"))) for name in ("means", "variances"))
    variances = np.maximum(variances, 1e-4)
    constants = -0.5 * (np.log(2 * np.pi * variances) + means**2 / variances).sum(axis=1)
    parts = constants, (means / variances).T, (-0.5 / variances).T
    return tuple(np.ascontiguousarray(part, dtype=np.float32) for part in parts)  # type: ignore[return-value]


def _static(path: Path) -> Floats:
    """[G, C]: the static cepstra's share of a parameter file of the acoustic model (Sphinx-3 format)."""
    raw = path.read_bytes()
    start = raw.index(b"endhdr\n") + len(b"endhdr\n")
    magic, codebooks, streams, densities, *lengths = np.frombuffer(raw, "<i4", count=7, offset=start).tolist()
    assert magic == 0x11223344 and lengths == [CEPSTRA] * streams, f"{path}: not the model this package was written for"
    values = np.frombuffer(raw, "<f4", count=codebooks * streams * densities * CEPSTRA, offset=start + 32)
    return values.reshape(codebooks, streams, densities, CEPSTRA)[:, 0].reshape(-1, CEPSTRA).astype(np.float64)
