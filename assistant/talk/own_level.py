"""Tracks how loud the user is, and recognises a voice that begins far below that. Pure: powers in, an answer out.

When people talk nearby, one of them sometimes stands out enough for a detector, though hardly in loudness: a voice
about as loud as the sound between turns does not begin a turn. A louder stranger can only be distinguished by
comparison with the user, known from turns in which words were heard: a voice far below that must stand out further.
In a quiet room the first rule refuses nobody, and a minute after the last turn neither does the second: so a user who
has moved away from the microphone is heard.
"""

from __future__ import annotations

from collections import deque
from statistics import median

SMOOTH = 3
"""A level is the mean of this many blocks: the level of a word, not of a sound."""
OUT = 10 ** (5 / 10)
"""Power over the median of the sound between turns that a voice needs to begin a turn. In 36 minutes of six talkers,
with two users in turn who are 10 dB louder, six seeds, detectors alone: 18 of the talkers' 122 turns remain, 3 of 38 in
9 minutes without a user, and none of the user's own 96 is lost (fitted on these). 5 dB above a street, a kitchen or the
talkers, 47 of 48 requests are heard with it and without; at their level 28 with it, 33 without, 23 with 6 dB."""
SURROUNDED_BLOCKS = 8
"""Fewer blocks than this do not describe the surroundings. With 31, talkers begin another ten turns."""
FAR = 10 ** (-7 / 10)
"""A share of the user's power, if that is known: with it 12 of the 18 turns remain; every third request may be 9 dB
softer than the rest, and none is lost by it."""
ALONE = 10.0
"""Power over the same median: a voice that stands out this far is alone. 6 to 12 dB make no difference above."""
BETWEEN_BLOCKS = 312
"""Ten seconds of 32 ms."""
LATE_BLOCKS = 3
"""A voice has sounded for about this many blocks before it is believed: these are not the surroundings either."""
SOFTER = 10 ** (-1 / 10)
"""A turn lowers the known level by this at most: the loudest recent turns are the user's."""
KNOWN_S = 60.0


class OwnLevel:
    """Follows one talk. Times are seconds since its beginning."""

    def __init__(self) -> None:
        self._own, self._known_at = 0.0, 0.0
        self._last: deque[float] = deque(maxlen=SMOOTH)
        self._between: deque[float] = deque(maxlen=BETWEEN_BLOCKS)

    def spoke(self, power: float, now_s: float) -> None:
        """Note that a turn of this power had words."""
        self._own, self._known_at = max(power, SOFTER * self._own), now_s

    def between(self, power: float) -> None:
        """Note one more block while nobody speaks."""
        self._last.append(power)
        self._between.append(self._level)

    def began(self, blocks: int) -> None:
        """Note that the last blocks begin a turn. If a reply fills the rest, or the front sends nothing else, the user
        would soon be taken for the surroundings."""
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
