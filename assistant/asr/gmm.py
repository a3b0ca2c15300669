"""How the phones of English sound: the mixtures of Gaussians in the acoustic model that pocketsphinx brings along.

Of its files only the phones without context are read. Such a phone is a row of states; under a state the chance of a
frame is a product over the streams (cepstra, slopes, curvatures), each a mixture of the Gaussians that all states of
the phone share. File formats: SphinxTrain's.

P: phones; S: streams; D: Gaussians of a mixture; C: cepstra; T: frames of 10 ms; J: states of some phones in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pocketsphinx import get_model_path

from assistant.asr.mfcc import CEPSTRA, Floats
from assistant.base.errors import EngineFailed

STATES = 3
"""Of each phone."""
STREAMS = 3
REACH = 3
"""Frames on either side from which a curvature is taken."""
_LEAST_SPREAD = 0.05
"""Of the usual variance; a few Gaussians have none at all."""
_WEIGHT_UNIT = 1024 * np.log(1.0001)


@dataclass(frozen=True, slots=True)
class Gaussians:
    """`phones` gives each phone its place. `means`, `precisions` [P, S, D, C]; `constants` [P, S, D], the logarithm of
    the density at zero; `weights` [P, S, D, STATES], logarithms."""

    phones: dict[str, int]
    means: Floats
    precisions: Floats
    constants: Floats
    weights: Floats

    def align(self, features: Floats, phones: Sequence[int]) -> NDArray[np.int_] | None:
        """The likeliest state [T] of each frame of `features` [T, S, C], through all states of `phones` in order.

        None if there are fewer frames than states.
        """
        chances = np.concatenate([self._chances(features, phone) for phone in phones], axis=1)  # [T, J]
        frames, states = chances.shape
        if frames < states:
            return None
        best = np.full(states, -np.inf)
        best[0] = chances[0, 0]
        moved = np.zeros((frames, states), dtype=bool)
        for t in range(1, frames):
            step = np.concatenate([[-np.inf], best[:-1]])
            moved[t] = step > best
            best = np.maximum(step, best) + chances[t]
        path = np.empty(frames, dtype=np.int_)
        state = states - 1
        for t in reversed(range(frames)):
            path[t] = state
            state -= moved[t, state]
        return path

    def wishes(self, features: Floats, phones: Sequence[int], path: NDArray[np.int_]) -> tuple[Floats, Floats]:
        """What the mixtures along a path wish each frame to be: precisions, and precisions times means, [T, S, C].

        Averages over the Gaussians of a mixture, each by its chance given the frame.
        """
        precisions, wanted = np.empty_like(features), np.empty_like(features)
        for place, phone in enumerate(phones):
            here = path // STATES == place
            logs = self._logs(features[here], phone) + self.weights[phone][:, :, path[here] % STATES].transpose(2, 0, 1)
            share = np.exp(logs - logs.max(axis=-1, keepdims=True))
            share /= share.sum(axis=-1, keepdims=True)
            precisions[here] = np.einsum("tsd,sdc->tsc", share, self.precisions[phone])
            wanted[here] = np.einsum("tsd,sdc->tsc", share, self.precisions[phone] * self.means[phone])
        return precisions, wanted

    def _chances(self, features: Floats, phone: int) -> Floats:
        """log p of each frame under the states of one phone: [T, STATES]"""
        logs = self._logs(features, phone)
        most = logs.max(axis=-1, keepdims=True)
        mixed = np.log(np.einsum("tsd,sdj->tsj", np.exp(logs - most), np.exp(self.weights[phone])))
        result: Floats = (mixed + most).sum(axis=1)
        return result

    def _logs(self, features: Floats, phone: int) -> Floats:
        """log p of [T, S, C] under each Gaussian of a phone: [T, S, D]"""
        precisions = self.precisions[phone]
        linear = np.einsum("tsc,sdc->tsd", features, precisions * self.means[phone])
        result: Floats = self.constants[phone] + linear - np.einsum("tsc,sdc->tsd", features**2, precisions / 2)
        return result


def features_of(cepstra: Floats) -> Floats:
    """[T, C] -> [T, S, C]: cepstra, their slopes and curvatures, the first and last frame going on for ever."""
    frames = len(cepstra)
    longer = np.pad(cepstra, ((REACH, REACH), (0, 0)), mode="edge")

    def at(shift: int) -> Floats:
        return longer[REACH + shift : REACH + shift + frames]

    return np.stack([cepstra, at(2) - at(-2), (at(3) - at(-1)) - (at(1) - at(-3))], axis=1)


@cache
def english() -> Gaussians:
    """The model inside pocketsphinx's package, read once. Raises EngineFailed if its files have another shape."""
    folder = Path(get_model_path("en-us/en-us"))
    phones = _phones(folder / "mdef")
    means, variances = (_parameters(folder / name, len(phones)) for name in ("means", "variances"))
    usual = np.median(variances, axis=(0, 2))[None, :, None]
    variances = np.maximum(variances, _LEAST_SPREAD * usual)
    constants = -0.5 * (np.log(2 * np.pi * variances) + means**2 / variances).sum(axis=-1)
    weights = _weights(folder / "sendump", len(phones), means.shape[2])
    return Gaussians(phones, means, 1 / variances, constants, weights)


def _phones(path: Path) -> dict[str, int]:
    """The names at the beginning of a binary `mdef`."""
    data = path.read_bytes()
    if data[:4] != b"BMDF":
        raise _unlike(path, "a binary model definition")
    start = 12 + int(np.frombuffer(data, "<i4", 1, 8)[0])
    count, _, states, senones = np.frombuffer(data, "<i4", 4, start)
    if states != STATES or senones != STATES * count:
        raise _unlike(path, f"one with {STATES} states to each phone")
    names = data[start + 40 :].split(b"\0", int(count))[:count]
    return {name.decode(): place for place, name in enumerate(names)}


def _parameters(path: Path, phones: int) -> Floats:
    """Means or variances: [P, S, D, C]"""
    data = path.read_bytes()
    start = data.index(b"endhdr\n") + 7 + 4  # behind the header and the mark of the byte order
    *shape, count = np.frombuffer(data, "<i4", 4 + STREAMS, start)
    if (*shape[:2], *shape[3:]) != (phones, STREAMS, *[CEPSTRA] * STREAMS):
        raise _unlike(path, f"one mixture a phone for each of {STREAMS} streams of {CEPSTRA}")
    values = np.frombuffer(data, "<f4", count, start + 4 * (4 + STREAMS))
    return values.reshape(phones, STREAMS, shape[2], CEPSTRA).astype(np.float64)


def _weights(path: Path, phones: int, gaussians: int) -> Floats:
    """Logarithms [P, S, D, STATES]; the phones without context come first in the file."""
    data = path.read_bytes()
    start = 0
    while (length := int(np.frombuffer(data, "<i4", 1, start)[0])) > 0:
        start += 4 + length
    rows, columns = np.frombuffer(data, "<i4", 2, start + 4)
    size = STREAMS * gaussians * int(columns)
    if rows != gaussians or len(data) != start + 12 + size:
        raise _unlike(path, f"weights of {gaussians} Gaussians in a byte each")
    units = np.frombuffer(data, np.uint8, size, start + 12).reshape(STREAMS, gaussians, columns)
    states = units[:, :, : phones * STATES].reshape(STREAMS, gaussians, phones, STATES)
    result: Floats = states.transpose(2, 0, 1, 3) * -_WEIGHT_UNIT
    return result


def _unlike(path: Path, wanted: str) -> EngineFailed:
    return EngineFailed(f"{path} is not {wanted}; install the pocketsphinx that pyproject.toml asks for.")
