"""How loud is the user, and is a voice that begins far below that? Pure: powers in, an answer out.

Among people who talk nearby now and then one stands out enough for a detector. What tells such a one from the user is
the user: known from turns in which words were heard. A voice far below that begins no turn while it hardly stands out
from what is heard between turns. Alone in a quiet room nobody is refused, nor anybody before a first turn, nor a minute
after the last: so who has moved away from the microphone is heard again.
"""

from __future__ import annotations

from collections import deque
from statistics import median

SMOOTH = 3
"""Blocks that a level is the mean of: a word's, not a sound's."""
FAR = 10 ** (-7 / 10)
"""Of the user's power. Six talkers 10 dB below a user, two voices in turn, six seeds, 36 minutes, detectors alone: 122
turns were theirs, with this 26, of which 14 came before the user's first; of the user's own 96 none is lost (fitted on
these; at 6 dB it is the same, at 8 dB a third more). In 12 other minutes, every third request up to 9 dB softer than
the rest: 26 and 6, all 6 before the first, and no request is lost by it."""
ALONE = 10.0
"""Power over the median of what is heard between turns: who stands out so far is alone. 6 to 12 dB make no difference
above."""
BETWEEN_BLOCKS = 312
"""Ten seconds of 32 ms."""
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

    def far(self, now_s: float) -> bool:
        """Whether the voice of the last blocks is hardly the user's."""
        if not self._own or now_s - self._known_at > KNOWN_S or not self._between:
            return False
        return self._level < FAR * self._own and self._level < ALONE * median(self._between)

    @property
    def _level(self) -> float:
        return sum(self._last) / len(self._last)
