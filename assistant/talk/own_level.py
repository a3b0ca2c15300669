"""How loud is the user, and is a voice that begins far below that? Pure: powers in, an answer out.

Among people who talk nearby now and then one stands out enough for a detector, though hardly in loudness: whoever is
about as loud as what is heard between turns begins none. And what tells such a one from the user is the user, known
from turns in which words were heard: a voice far below that must stand out further. In a quiet room nobody is refused
the first way, and a minute after the last turn nobody the second: so who has moved away from the microphone is heard.
"""

from __future__ import annotations

from collections import deque
from statistics import median

SMOOTH = 3
"""Blocks that a level is the mean of: a word's, not a sound's."""
OUT = 10 ** (5 / 10)
"""Power over the median of what is heard between turns, for a voice that begins a turn. Six talkers, two users 10 dB
louder in turn, six seeds, 36 minutes, detectors alone: of 122 turns that were theirs 18 are left, of 38 in 9 minutes
without a user 3, and of the user's own 96 none is lost (fitted on these). 5 dB over a street, a kitchen or the talkers
47 of 48 requests are heard with it and without, as loud as they 28 and 33; at 6 dB 23."""
SURROUNDED_BLOCKS = 8
"""Before so many nothing is known of the surroundings. With 31 talkers begin another ten."""
FAR = 10 ** (-7 / 10)
"""Of the user's power, where it is known: with it 12 of the 18 are left; every third request may be 9 dB softer than
the rest, and none is lost by it."""
ALONE = 10.0
"""Power over the same median: who stands out so far is alone. 6 to 12 dB make no difference above."""
BETWEEN_BLOCKS = 312
"""Ten seconds of 32 ms."""
LATE_BLOCKS = 3
"""Before it is believed a voice has been heard for so long, about: that is nobody's surroundings either."""
SOFTER = 10 ** (-1 / 10)
"""A turn moves what is known down by this at most: the loudest of late are the user's."""
KNOWN_S = 60.0


class OwnLevel:
    """Follows one talk. Times are seconds since its beginning."""

    def __init__(self) -> None:
        self._own, self._known_at = 0.0, 0.0
        self._last: deque[float] = deque(maxlen=SMOOTH)
        self._between: deque[float] = deque(maxlen=BETWEEN_BLOCKS)

    def spoke(self, power: float, now_s: float) -> None:
        """A turn of this power had words."""
        self._own, self._known_at = max(power, SOFTER * self._own), now_s

    def between(self, power: float) -> None:
        """One more block while nobody speaks."""
        self._last.append(power)
        self._between.append(self._level)

    def began(self, blocks: int) -> None:
        """The last blocks begin a turn. Where a reply fills the rest, or nothing else is sent, soon the user would be
        taken for the surroundings."""
        for _ in range(min(blocks + LATE_BLOCKS, len(self._between))):
            self._between.pop()
        self._last.clear()

    def far(self, now_s: float) -> bool:
        """Whether the voice of the last blocks is hardly the user's."""
        if len(self._between) < SURROUNDED_BLOCKS:
            return False
        around = median(self._between)
        known = self._own > 0 and now_s - self._known_at <= KNOWN_S
        return self._level < OUT * around or (known and self._level < min(FAR * self._own, ALONE * around))

    @property
    def _level(self) -> float:
        return sum(self._last) / max(1, len(self._last))
