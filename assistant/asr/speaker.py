"""Who speaks in this talk: the average sound of voice, microphone and room, in cepstra.

Tried and left out: fitting the frequency axis to the length of the vocal tract. It cost words, clean and in noise.
"""

from __future__ import annotations

import numpy as np

from assistant.asr.mfcc import Floats

MEAN = np.array([52.8, -7.2, -2.3, 4.3, -7.6, 1.4, -6.9, -7.0, -1.3, -3.7, 0.3, -4.3, 0.8])
"""Cepstra of nobody in particular: the mean of nine synthetic voices at half of full scale."""
MEAN_FRAMES = 30.0
KNOWN_FRAMES = 400.0
"""The weight of what a talk knows, in frames of the utterance that is under way; the microphone may have moved."""


class Speaker:
    """What one talk has told so far."""

    def __init__(self) -> None:
        self._frames = MEAN_FRAMES
        self._mean = MEAN
        self._known = False

    @property
    def known(self) -> bool:
        """An utterance was learnt."""
        return self._known

    def mean(self, total: Floats, frames: int) -> Floats:
        """The mean [C] of an utterance of which `frames` frames, `total` [C] in sum, are known."""
        result: Floats = (total + self._frames * self._mean) / (frames + self._frames)
        return result

    def learn(self, total: Floats, frames: int) -> None:
        """Another utterance of this speaker: the sum [C] of its frames."""
        self._mean = self.mean(total, frames)
        self._frames = min(self._frames + frames, KNOWN_FRAMES)
        self._known = True
