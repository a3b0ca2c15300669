"""Removes the echo of our own voice from the microphone: predicts it from what is played, and says how certain it is.

The path from loudspeaker to microphone is an unknown linear filter. We follow 640 ms of it, so any delay within that
needs no search. A partitioned Kalman filter in the frequency domain (Enzner & Vary 2006; Kuech, Mabande and Enzner
2014) learns it from whatever is played. It tracks its own uncertainty, so it keeps learning while the user speaks
without unlearning, and reports how much echo may remain in its output. One block takes 0.4 ms.

Shapes: K partitions of HOP samples, FFT of 2 HOP, B = HOP + 1 bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from assistant.base.sound import HEARING_RATE, Pcm

Spectrum: TypeAlias = NDArray[np.complexfloating]
Power: TypeAlias = NDArray[np.floating]

HOP = 512
PARTITIONS = 20
FORGETS = 0.9995
"""Share of the filter kept per block: people move, doors open."""
LEARNT = 0.12
"""How fast its uncertainty falls. Half as fast as in theory for independent blocks (0.5) is still too fast: speech
repeats itself. At 0.12 its actual error matches the uncertainty it reports."""
UNKNOWN = 4.0
"""Power of a path that is still unknown: an echo 6 dB louder than what is played."""
DIES, EARLIER, NOT_BEFORE = 0.45, 0.05, 1e-3
"""Decay of the path from one partition to the next (half a second of reverberation), and the least power it may have,
also where no echo was heard."""
SHIFTED = 0.3
"""Share of the path's power that becomes uncertain again after a shift."""
NOISE_MEMORY = 0.6
LEAST = 1e-3
BAND = slice(round(200 * 2 * HOP / HEARING_RATE), round(4000 * 2 * HOP / HEARING_RATE))
"""The frequency band of speech."""


@dataclass(frozen=True, slots=True)
class Parted:
    """One block of a microphone with the echo removed. Powers are for the speech band, summed over its bins.

    sound      [HOP] what remains
    left       power of what remains
    echo       power of the echo that was removed
    doubt      power of the echo that may remain
    """

    sound: Pcm
    left: float
    echo: float
    doubt: float


class EchoFilter:
    """Follows one path from loudspeaker to microphone, block by block."""

    def __init__(self) -> None:
        self._played = np.zeros((PARTITIONS, HOP + 1), np.complex64)
        self.forget()
        self._noise = np.zeros(HOP + 1, np.float32)
        self._before = np.zeros(HOP, np.float32)

    def hear(self, played: Pcm) -> Pcm:
        """[HOP] now sent to the loudspeaker -> [HOP] the echo now expected in the microphone."""
        self._played[1:] = self._played[:-1]
        self._played[0] = np.fft.rfft(np.concatenate([self._before, played]))
        self._before = played
        return np.fft.irfft(np.sum(self._played * self._way, axis=0))[HOP:].astype(np.float32)

    def part(self, heard: Pcm, echo: Pcm) -> Parted:
        """Remove the echo that `hear` has just predicted, and learn from what remains."""
        power = np.square(np.abs(self._played))  # [K, B]
        doubt = 0.5 * np.sum(power * self._unsure, axis=0)  # [B]; half of an FFT is zeros
        left = heard - echo
        spectrum = _half(left)
        self._learn(spectrum, power, doubt)
        return Parted(left, _band(spectrum), _band(_half(echo)), float(np.sum(doubt[BAND])))

    def forget(self) -> None:
        """Assume a different path; sound already played may still come back over it."""
        self._way = np.zeros_like(self._played)
        self._unsure = np.full(self._played.shape, UNKNOWN / PARTITIONS, np.float32)

    @property
    def gain(self) -> float:
        """Power of the echo relative to what is played, as far as is known."""
        return float(np.mean(np.sum(np.square(np.abs(self._way)), axis=0)))

    def expect(self, lag: int) -> None:
        """Expect the echo `lag` samples late, or a little sooner, and decaying after that."""
        behind = np.arange(PARTITIONS) - lag // HOP
        share = np.where(behind < 0, EARLIER, np.maximum(DIES**behind, EARLIER))
        share[behind < -1] = NOT_BEFORE
        self._unsure = np.repeat((UNKNOWN * share / np.sum(share)).astype(np.float32)[:, None], HOP + 1, axis=1)

    def shift(self, lag: int, gain: float) -> None:
        """Expect the echo `lag` samples later than learnt, scaled by `gain`."""
        taps = np.fft.irfft(self._way, axis=1)[:, :HOP].ravel()
        moved = np.zeros_like(taps)
        if lag >= 0:
            moved[lag:] = taps[: taps.size - lag]
        else:
            moved[:lag] = taps[-lag:]
        self._way = np.fft.rfft(gain * moved.reshape(PARTITIONS, HOP), 2 * HOP, axis=1).astype(np.complex64)
        self._unsure += SHIFTED * np.mean(np.square(np.abs(self._way)), axis=0)

    def _learn(
        self, left: NDArray[np.complexfloating], power: NDArray[np.floating], doubt: NDArray[np.floating]
    ) -> None:
        self._noise = NOISE_MEMORY * self._noise + (1 - NOISE_MEMORY) * np.square(np.abs(left))
        step = self._unsure / (self._noise + doubt + LEAST)
        taps = np.fft.irfft(step * np.conj(self._played) * left, axis=1)
        taps[:, HOP:] = 0.0  # the second half wraps around
        self._way = (FORGETS * (self._way + np.fft.rfft(taps, axis=1))).astype(np.complex64)
        forgets = FORGETS**2
        self._unsure *= forgets * (1 - LEARNT * np.minimum(step * power, 1.0))
        self._unsure += (1 - forgets) * np.square(np.abs(self._way))


def _half(block: Pcm) -> Spectrum:
    return np.fft.rfft(np.concatenate([np.zeros(HOP, np.float32), block]))


def _band(spectrum: Spectrum) -> float:
    return float(np.sum(np.square(np.abs(spectrum[BAND]))))
