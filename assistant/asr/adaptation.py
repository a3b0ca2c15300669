"""How this talk's speaker differs from those of the acoustic model: a factor for each cepstrum, learnt while talking.

Constrained MLLR with a diagonal matrix (Gales 1998, Maximum likelihood linear transformations): the factors under
which the frames of the words that were understood are likeliest, where they stand. Slopes and curvatures scale alike.

Tried and left out: an offset beside the factor, a full matrix, more weight for the first utterances. They gained
nothing more, and thirteen positive numbers cannot go far astray.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assistant.asr.gmm import STREAMS, Gaussians, features_of
from assistant.asr.mfcc import CEPSTRA, Floats

DOUBT_FRAMES = 100.0
"""The weight of no difference at all, in frames of speech."""
MOST = 2.0
"""No voice differs that much, in any cepstrum; whatever says so was misheard."""


@dataclass(frozen=True, slots=True)
class AlignedWord:
    """A word that was understood, in frames `first` to `last`, and its phones."""

    phones: tuple[str, ...]
    first: int
    last: int


class Adaptation:
    """What one talk has told so far. `factors` [C]."""

    def __init__(self, model: Gaussians) -> None:
        self._model = model
        self.factors = np.ones(CEPSTRA)
        self._frames = 0
        self._squares = np.zeros(CEPSTRA)
        self._products = np.zeros(CEPSTRA)

    def learn(self, cepstra: Floats, words: Sequence[AlignedWord]) -> None:
        """Another utterance [T, C], mean taken away and not yet scaled. Refused if what it says is out of bounds."""
        features = features_of(cepstra)
        frames, squares, products = self._frames, self._squares, self._products
        for word in words:
            phones = [self._model.phones[name] for name in word.phones]
            part = features[word.first : word.last + 1]
            path = self._model.align(part * self.factors, phones)
            if path is None:
                continue
            precisions, wanted = self._model.wishes(part * self.factors, phones, path)
            frames += len(part)
            squares = squares + (precisions * part**2).sum(axis=(0, 1))
            products = products + (wanted * part).sum(axis=(0, 1))
        if not frames:
            return
        factors = likeliest(STREAMS * frames, squares, products) ** (frames / (frames + DOUBT_FRAMES))
        if np.all((factors > 1 / MOST) & (factors < MOST)):
            self.factors, self._frames, self._squares, self._products = factors, frames, squares, products


def likeliest(count: int, squares: Floats, products: Floats) -> Floats:
    """The factors a > 0 with the largest count * log a - a² * squares / 2 + a * products."""
    factors: Floats = (products + np.sqrt(products**2 + 4 * count * squares)) / (2 * squares)
    return factors
