"""Sound to cepstra, as the English acoustic model of pocketsphinx wants them.

The arithmetic is that of the package's own front end: mel filters, noise removal (Doblinger's lower envelope, masking
in time, smoothing over frequency), logarithm, cosine transform, lifter. It is done here because the mean can then be
taken away with what is known of the speaker.

T: frames of 10 ms; M: mel filters; C: cepstra.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assistant.events import Pcm

RATE = 16_000
FRAME, SHIFT, POINTS = 410, 160, 512
FILTERS, CEPSTRA = 25, 13
LOWEST_HZ, HIGHEST_HZ = 130.0, 6800.0
Floats = NDArray[np.float64]

_INDEX = np.arange(CEPSTRA)
_COSINES = np.cos(np.pi / FILTERS * np.outer(np.arange(FILTERS) + 0.5, _INDEX))
_TO_CEPSTRA = (
    _COSINES * np.where(_INDEX == 0, 1, np.sqrt(2)) / np.sqrt(FILTERS) * (1 + 11 * np.sin(_INDEX * np.pi / 22))
)
_WINDOW = np.hamming(FRAME)


def _filter_bank() -> Floats:
    """[POINTS // 2 + 1, M]: triangles of unit area, their corners on whole bins."""
    step = RATE / POINTS
    low, high = (2595 * np.log10(1 + hz / 700) for hz in (LOWEST_HZ, HIGHEST_HZ))
    corners = 700 * (10 ** (np.linspace(low, high, FILTERS + 2) / 2595) - 1)
    left, middle, right = (np.floor(corners / step + 0.5)[i : i + FILTERS] * step for i in range(3))
    hz = np.arange(POINTS // 2 + 1)[:, None] * step
    rising, falling = (hz - left) / (middle - left), (right - hz) / (right - middle)
    return np.maximum(np.minimum(rising, falling), 0) * 2 / (right - left)


_BANK = _filter_bank()


class MelPower:
    """Sound to the power in each filter. What comes out does not depend on how the sound is cut into pushes."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a new stretch of sound."""
        self._sound = np.zeros(1)  # one sample more than is left over: the high-pass looks back

    def push(self, sound: Pcm | Floats) -> Floats:
        """Samples at 16 kHz, 32,767 the loudest -> [T, M], the frames that are now whole."""
        self._sound = np.concatenate([self._sound, sound])
        high = self._sound[1:] - 0.97 * self._sound[:-1]
        frames = [_power(high[at : at + FRAME]) for at in range(0, len(high) - FRAME + 1, SHIFT)]
        self._sound = self._sound[len(frames) * SHIFT :]
        return np.array(frames).reshape(-1, FILTERS)


def _power(high: Floats) -> Floats:
    spectrum = np.abs(np.fft.rfft(high * _WINDOW, POINTS)) ** 2
    result: Floats = spectrum @ _BANK
    return result


def power_of_white_noise() -> Floats:
    """[M], for noise of which a sample has the standard deviation 1."""
    angle = np.pi * np.arange(POINTS // 2 + 1) / (POINTS // 2)
    high_pass = 1 + 0.97**2 - 2 * 0.97 * np.cos(angle)
    result: Floats = float(np.sum(_WINDOW**2)) * high_pass @ _BANK
    return result


class Cepstra:
    """Of one talk, whose noise it gets to know: its first frame tells how loud that is, and seconds tell it well."""

    def __init__(self) -> None:
        self._noise: _Noise | None = None

    def of(self, power: Floats) -> Floats:
        """The next frame's power in each filter [M] -> its cepstra [C]."""
        if self._noise is None:
            self._noise = _Noise(power)
        result: Floats = np.log(self._noise.removed(power) + 1e-4) @ _TO_CEPSTRA
        return result

    def scale(self, factor: float) -> None:
        """The same noise will have `factor` times its power from now on."""
        if self._noise is not None:
            self._noise.scale(factor)


class _Noise:
    """The noise in each filter, learnt frame by frame; [M] throughout.

    Source: Doblinger 1995 for the envelope, Kim and Stern 2010 for the masking, in the constants of pocketsphinx.
    """

    _MOST, _SIDE = 20.0, 4
    _START = np.maximum(np.arange(FILTERS) - _SIDE, 0)
    _END = np.minimum(np.arange(FILTERS) + _SIDE + 1, FILTERS)

    def __init__(self, power: Floats) -> None:
        self._power = power
        self._noise, self._floor = power / self._MOST, power / self._MOST
        self._peak = np.zeros_like(power)

    def removed(self, power: Floats) -> Floats:
        """The power of one frame without the noise."""
        self._power = 0.7 * self._power + 0.3 * power
        self._noise = self._under(self._power, self._noise)
        clean = np.maximum(self._power - self._noise, 1.0)
        self._floor = self._under(clean, self._floor)
        fading = 0.85 * self._peak
        self._peak = np.maximum(fading, clean)
        clean = np.maximum(np.where(clean < 0.85 * fading, 0.2 * fading, clean), self._floor)
        gain = np.clip(clean / self._power, 1 / self._MOST, self._MOST)
        total = np.concatenate([[0.0], np.cumsum(gain)])
        smooth = (total[self._END] - total[self._START]) / (self._END - self._START)
        return power * smooth

    def scale(self, factor: float) -> None:
        self._power, self._noise, self._floor, self._peak = (
            factor * known for known in (self._power, self._noise, self._floor, self._peak)
        )

    @staticmethod
    def _under(power: Floats, envelope: Floats) -> Floats:
        """Follows slowly upwards, quickly down."""
        return np.where(power >= envelope, 0.995 * envelope + 0.005 * power, 0.5 * envelope + 0.5 * power)
