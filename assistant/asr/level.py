"""How loud a talk is: every microphone is brought to one level, above a hiss too faint to hide a word.

The hiss stands in for the noise that digital silence lacks, which would pull the mean of the cepstra far away. It is a
fixed part of the talk's own level, so it never hides a quiet voice, and it is known by its power: nothing is random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assistant.asr.mfcc import Floats, power_of_white_noise

USUAL = 19.4
"""The natural logarithm of a loud frame's power: synthetic voices at half of full scale."""
LOUD_PERCENT = 90.0
"""Of the frames are softer than a loud one; a click is shorter than the rest."""
MOST_GAIN = 1e4
"""In power: a hundredth of the usual amplitude can still be brought up, and silence stays finite."""
HISS = power_of_white_noise() * 60.0**2
"""[M]: some 35 dB below speech; 60 of 32,768 at the usual level."""


class Level:
    """Of one talk."""

    def __init__(self) -> None:
        self._loudness: float | None = None
        self._gain = 1.0

    @property
    def known(self) -> bool:
        """An utterance told how loud voices are."""
        return self._loudness is not None

    def settle(self, powers: Sequence[Floats]) -> float:
        """An utterance is under way: `powers` [M] are its first frames, by which a new talk is judged.

        Returns the factor by which its sound will have more power than that of the utterance before.
        """
        loudness = _loudness(powers) if self._loudness is None else self._loudness
        before, self._gain = self._gain, min(float(np.exp(USUAL - loudness)), MOST_GAIN)
        return self._gain / before

    def learn(self, powers: Sequence[Floats]) -> None:
        """An utterance ended; half of what is known is the latest, because people and microphones move."""
        loudness = _loudness(powers)
        if loudness < USUAL - np.log(MOST_GAIN):
            return  # silence says nothing of a voice
        self._loudness = loudness if self._loudness is None else (self._loudness + loudness) / 2

    def leveled(self, power: Floats) -> Floats:
        """A frame's power in each filter [M] -> the same at the usual level, with the hiss."""
        return power * self._gain + HISS


def _loudness(powers: Sequence[Floats]) -> float:
    return float(np.percentile(np.log(np.sum(powers, axis=1) + 1e-9), LOUD_PERCENT))
