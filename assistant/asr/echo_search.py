"""Is there an echo of what is played in what is heard, and how late? Pure; nothing is touched before it says so.

What is heard now is laid beside everything that was played within the longest delay, both whitened, so that a voice's
pitch does not look like another's. A first sign makes an echo likely; whether the delay still holds a moment later, and
over twice as much sound, decides. Fitted on echoes in two rooms, down to 12 dB below a voice and through a loudspeaker
driven into saturation, and on people who spoke over another voice. Of the first blocks of 40 echoes 39 were as alike as
0.38 when looked at again, one in a room of 0.6 s as 0.33; of 160 people who spoke over a voice that they did not hear
23 gave a first sign, and one in twenty of these was alike by more than 0.25 then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum, auto

import numpy as np

from assistant.asr.echo_filter import HOP, Spectrum
from assistant.base.sound import HEARING_RATE, Pcm

COMPARED, COMPARED_AGAIN = 5, 10
"""Blocks of what is heard: 160 ms, and 320 where it is made sure."""
LONGEST = 17
"""Blocks of delay: 544 ms."""
KEPT = COMPARED_AGAIN + LONGEST
CONFIRMED_AFTER = 5
"""Blocks behind the first sign."""
ALIKE, SOMEWHAT_ALIKE, SURELY_ALIKE = 0.3, 0.2, 0.25
"""How alike they must be for a first sign: at once, or twice in a row at the same delay; and to make sure."""
SAME_LAG = 16
WHITENED = 0.8
"""Of a spectrum's magnitudes: 1 would make its noise as loud as its voice."""
BAND_HZ = (150, 7_500)
HUSHED = 0.1
"""Played sound softer than this, of the loudest that is compared, is taken to be as loud."""
SILENT = 1e-7
"""Power of a block in which nothing is looked for: below a quiet microphone's own noise."""

LONG_ENOUGH, FAINT = LONGEST + 5, 3e-4
"""Blocks with sound of a reply behind which its echo must have come, and the power, of what is played, below which it
is none."""

SIZE = KEPT * HOP
_HERTZ = np.fft.rfftfreq(SIZE, 1 / HEARING_RATE)
_BAND = (BAND_HZ[0] < _HERTZ) & (BAND_HZ[1] > _HERTZ)


def best_lag(played: Pcm, heard: Pcm) -> tuple[int, float]:
    """played [KEPT * HOP], heard [any of that], both until now -> how many samples later the one is found in the
    other, and how alike they are there, 0 … 1."""
    before, now = _whitened(played, SIZE), _whitened(heard, SIZE)
    offsets = SIZE - heard.size + 1
    first = offsets - 1 - LONGEST * HOP
    cross = np.fft.irfft(before * np.conj(now), SIZE)[first:offsets]
    square = np.concatenate([[0.0], np.cumsum(np.square(np.fft.irfft(before, SIZE)))])
    power = square[first + heard.size :] - square[first:offsets]
    floor = HUSHED * float(np.max(power))
    there = float(np.sum(np.square(np.fft.irfft(now, SIZE))))
    if floor <= 0.0 or there <= 0.0:
        return 0, 0.0
    alike = cross / np.sqrt(there * np.maximum(power, floor))
    best = int(np.argmax(alike))
    return LONGEST * HOP - best, float(alike[best])


class EchoThere(Enum):
    """LIKELY: for now what is heard counts as an echo, but goes on as it came. ABSENT: it would have come by now."""

    NONE = auto()
    ABSENT = auto()
    LIKELY = auto()
    FOUND = auto()


class EchoSearch:
    """Follows what is played and heard, block by block, until an echo is found."""

    def __init__(self) -> None:
        self.there = EchoThere.NONE
        self.lag = 0
        """The echo's delay in samples, where it is at least likely."""
        self._played: deque[Pcm] = deque([np.zeros(HOP, np.float32)] * KEPT, KEPT)
        self._heard: deque[Pcm] = deque([np.zeros(HOP, np.float32)] * KEPT, KEPT)
        self._before: tuple[int, float] = 0, 0.0
        self._since = 0
        self._went: list[float] = []
        self._came = 0.0

    def hear(self, played: Pcm, heard: Pcm) -> EchoThere:
        """[HOP] each, one more block."""
        self._played.append(played)
        self._heard.append(heard)
        if self.there is EchoThere.LIKELY:
            self._since += 1
            if self._since == CONFIRMED_AFTER:
                self._confirm()
        elif self.there is EchoThere.NONE:
            went, came = float(np.mean(np.square(played))), float(np.mean(np.square(heard)))
            self._look_for_none(went, came)
            if came > SILENT and np.any(self._played) and self.there is EchoThere.NONE:
                self._look()
        return self.there

    def recent(self) -> Iterator[tuple[Pcm, Pcm]]:
        """The last blocks, oldest first: played, heard."""
        return zip(self._played, self._heard, strict=True)

    def _look(self) -> None:
        lag, alike = self._alike(COMPARED)
        same = abs(lag - self._before[0]) <= SAME_LAG and self._before[1] >= SOMEWHAT_ALIKE
        self._before = lag, alike
        if alike >= (SOMEWHAT_ALIKE if same else ALIKE):
            self.there, self.lag, self._since = EchoThere.LIKELY, lag, 0

    def _confirm(self) -> None:
        lag, alike = self._alike(COMPARED_AGAIN)
        same = abs(lag - self.lag) <= SAME_LAG and alike >= SURELY_ALIKE
        self.there, self._before = (EchoThere.FOUND if same else EchoThere.NONE), (0, 0.0)

    def _look_for_none(self, went: float, came: float) -> None:
        """Where a reply has sounded for as long as an echo can take, and the microphone was all but silent."""
        self._came = max(self._came, came)
        if went > SILENT:
            self._went.append(went)
            if len(self._went) >= LONG_ENOUGH and self._came < FAINT * sum(self._went) / len(self._went):
                self.there = EchoThere.ABSENT

    def _alike(self, blocks: int) -> tuple[int, float]:
        return best_lag(np.concatenate(self._played), np.concatenate([*self._heard][-blocks:]))


def _whitened(sound: Pcm, size: int) -> Spectrum:
    spectrum = np.fft.rfft(sound, size)
    return np.where(_BAND, spectrum / (np.abs(spectrum) + 1e-9) ** WHITENED, 0.0)
