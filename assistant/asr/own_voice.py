"""Removes our own voice from the microphone and tells it from the user's. Block by block, for one stream.

Until an echo is certain (`echo_search`) all sound passes unchanged: with headphones, or a front that removes the echo
itself, nothing is altered. From then on a filter follows the echo. Every reply may come back at another delay, because
the front's player starts anew. So at the beginning of each reply the expected echo is compared with the microphone
until the two match at some lag. Until then, any sound not much louder than the expected echo counts as echo. The same
applies if removing the echo made the sound louder, because then the player has stumbled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assistant.asr.echo_filter import PARTITIONS, EchoFilter
from assistant.asr.echo_search import EchoSearch, EchoThere
from assistant.base.sound import HEARING_RATE, Pcm

OVER_DOUBT = 3.0
"""The remaining sound must be louder than the possible remaining echo, by this power …"""
OVER_ECHO = 0.25
"""… and louder than this share of the removed echo: loudspeakers distort."""
OVER_UNALIGNED = 4.0
"""The same before the delay is known, relative to the loudest echo the reply can have caused so far."""
LONGEST_LAG = HEARING_RATE // 8
"""How far a reply's delay may differ from that of the previous one."""
LEAST_BLOCKS, LEAST_HEARD, ENOUGH_BLOCKS, MOST_BLOCKS = 8, 4, 16, 48
MOST_COMPARED = 96
ALIKE, SOMEWHAT_ALIKE = 0.7, 0.5
"""Blocks with sound compared to find a lag, how many of them must be heard, and the similarity needed. With more of
them, perhaps with the user's voice among them, less similarity is enough."""
SOFT = 0.01
"""Share of the loudest block's power: softer blocks cannot show a lag."""
SILENT = 1e-6
"""Power of a block of played sound below which nothing comes back."""
STUMBLE_BLOCKS, STUMBLES, SURE = 8, 1.3, 0.1
"""Blocks compared (a quarter of a second), the ratio of power left to power heard above which the player has stumbled,
and the ratio of doubt to echo below which the filter is sure."""
FAINT = 1e-3
"""An echo below this power, relative to what is played, counts as gone."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The place of one sound in another: how many samples later, how many times as loud, how similar (0 … 1)."""

    samples: int
    gain: float
    alike: float


def lag_of(expected: Pcm, heard: Pcm, longest: int = LONGEST_LAG) -> Lag:
    """Both [n]. Searches up to `longest` samples in either direction."""
    size = 2 ** int(np.ceil(np.log2(2 * expected.size)))
    cross = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(expected, size)), size)
    near = np.concatenate([cross[-longest:], cross[: longest + 1]])
    best = int(np.argmax(near))
    power, other = float(np.sum(np.square(expected))), float(np.sum(np.square(heard)))
    if power <= 0.0 or other <= 0.0:
        return Lag(0, 1.0, 0.0)
    return Lag(best - longest, float(near[best]) / power, float(near[best]) / float(np.sqrt(power * other)))


class OwnVoice:
    """`part` handles every block of HOP samples. It costs nothing while nothing plays or can still sound."""

    def __init__(self) -> None:
        self._search = EchoSearch()
        self._filter: EchoFilter | None = None
        """None until there may be an echo."""
        self._silent = PARTITIONS
        """Blocks since sound was last played."""
        self._aligning = False
        self._compared: list[tuple[Pcm, Pcm]] = []
        self._loudest = 0.0
        self._recent: list[tuple[float, float]] = []

    def begin(self) -> None:
        """A reply begins to play, or its player has stumbled: the delay may have changed."""
        self._recent = []
        if self._filter is None or self._search.there is EchoThere.LIKELY:
            self._lose()
        elif self._filter.gain > FAINT:
            self._aligning, self._compared, self._loudest = True, [], 0.0
        else:
            self._lose()

    def part(self, played: Pcm, heard: Pcm) -> tuple[Pcm, bool]:
        """[HOP] each, of the same stretch of time -> [HOP] without the echo, and whether it contains anything else."""
        self._silent = 0 if np.any(played) else self._silent + 1
        if self._silent > PARTITIONS:
            return heard, True
        if self._search.there is not EchoThere.FOUND:
            self._look(played, heard)
            return heard, self._filter is None
        assert self._filter is not None
        echo = self._filter.hear(played)
        if self._aligning:
            return heard, self._align(self._filter, played, echo, heard)
        parted = self._filter.part(heard, echo)
        before, after = float(np.sum(np.square(heard))), float(np.sum(np.square(parted.sound)))
        user = parted.left > OVER_DOUBT * parted.doubt and parted.left > OVER_ECHO * parted.echo
        sure = user and parted.doubt < SURE * parted.echo
        self._recent = [*self._recent[-STUMBLE_BLOCKS + 1 :], (before, after)] if sure else []
        if len(self._recent) == STUMBLE_BLOCKS and _louder(self._recent):
            self.begin()
            return heard, False
        return parted.sound if after < before else heard, user

    def _look(self, played: Pcm, heard: Pcm) -> None:
        """Find out if there is an echo. From its first sign a filter learns it, from all sound that may contain it."""
        before = self._filter
        there = self._search.hear(played, heard)
        if there in (EchoThere.NONE, EchoThere.ABSENT):
            self._filter = None
        elif before is None:
            self._filter = EchoFilter()
            self._filter.expect(self._search.lag)
            for was_played, was_heard in self._search.recent():
                self._filter.part(was_heard, self._filter.hear(was_played))
        else:
            before.part(heard, before.hear(played))

    def _lose(self) -> None:
        self._search, self._filter, self._aligning = EchoSearch(), None, False

    def _align(self, follows: EchoFilter, played: Pcm, echo: Pcm, heard: Pcm) -> bool:
        """Search for the lag -> whether this block is too loud to be an echo at any lag."""
        self._compared = [*self._compared[-MOST_COMPARED:], (echo, heard)]
        self._loudest = max(self._loudest, float(np.mean(np.square(played))))
        active, came = (_loud([blocks[which] for blocks in self._compared]) for which in (0, 1))
        if active >= LEAST_BLOCKS and came >= LEAST_HEARD:
            expected, all_heard = (np.concatenate(row) for row in zip(*self._compared, strict=True))
            found = lag_of(expected, all_heard)
            if found.alike >= (ALIKE if active < ENOUGH_BLOCKS else SOMEWHAT_ALIKE):
                follows.shift(found.samples, float(np.clip(found.gain, 0.1, 10.0)))
                self._compared = []
        if self._compared and active >= MOST_BLOCKS:  # the echo is gone, or a quite different one
            self._lose()
            return True
        self._aligning = bool(self._compared)
        return float(np.mean(np.square(heard))) > OVER_UNALIGNED * follows.gain * self._loudest


def _loud(blocks: list[Pcm]) -> int:
    """How many blocks are not much softer than the loudest."""
    powers = [float(np.mean(np.square(each))) for each in blocks]
    return sum(each > max(SILENT, SOFT * max(powers)) for each in powers)


def _louder(powers: list[tuple[float, float]]) -> bool:
    return sum(after for _, after in powers) > STUMBLES * sum(before for before, _ in powers)
