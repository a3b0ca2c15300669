"""Is it the user who speaks, or people in the background? Pure: levels and probabilities in, a probability out.

A detector calls a murmur behind the user speech, and rightly: then no turn ends. What tells the two apart is that the
user stands out. The floor is the quietest tenth of a second of the last three. Where even the quietest of what was
heard sounds like speech, only that counts which is louder than the floor by as much as a near talker is and a crowd
hardly ever; soft ends of words belong to what came before them. In quiet nothing is changed.

Constants were fitted on 44 utterances of four synthetic voices, alone and in pairs, before six other talkers, a street
and a kitchen at 5 to 20 dB; recordings of people are what it is judged by.
"""

from __future__ import annotations

from collections import deque

import numpy as np

FLOOR_BLOCKS, MEMORY_BLOCKS = 94, 625
"""Blocks of 32 ms: the floor is that of 3 s, what the background sounds like is remembered for 20."""
LEAST = 25
"""Blocks that must have been heard before anything is refused: who begins at once has no floor yet but his own."""
SMOOTH = 3
"""Blocks that a level is the mean of: a word's, not a sound's."""
STAYS, RISES = 10.0, 16.0
"""Power over the floor: what goes on being the user, and what begins to be. 10 and 12 dB."""
RISE_BLOCKS = 3
SOFT_BLOCKS = ((0.75, 6), (0.5, 16))
"""What is below it for so many blocks is no soft part of a word any more, but the background: 0.2 s if it is nearly
sure that people talk there, by the share of the quietest blocks that sound like speech, 0.5 s if it is likely. Of a
street's own blocks 1 in 100 does, but after a long sentence the user's soft sounds are among the quietest."""
QUIETEST, SPEECH_LIKE = 0.15, 0.2
"""The share of all blocks by which the background is known, and the probability of speech that is like speech there."""


class Foreground:
    """Follows one stream of blocks."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=SMOOTH)
        self._levels: deque[float] = deque(maxlen=MEMORY_BLOCKS)
        self._probabilities: deque[float] = deque(maxlen=MEMORY_BLOCKS)
        self._loud = self._soft = 0

    def probability(self, power: float, probability: float) -> float:
        """One more block of mean square `power`, speech of somebody with this probability -> that it is the user's."""
        self._last.append(power)
        level = sum(self._last) / len(self._last)
        self._levels.append(level)
        self._probabilities.append(probability)
        if len(self._levels) < LEAST:
            return probability
        floor = min(list(self._levels)[-FLOOR_BLOCKS:])
        surely, soon = SOFT_BLOCKS[0]
        self._loud = self._loud + 1 if level >= RISES * floor else 0
        goes_on = self._soft <= soon and level >= STAYS * floor
        self._soft = 0 if goes_on or self._loud >= RISE_BLOCKS else self._soft + 1
        if self._soft <= soon or probability < SPEECH_LIKE:
            return probability
        people = self._people()
        if people < surely and level >= STAYS * floor:
            self._soft = 0
        patience = next((blocks for least, blocks in SOFT_BLOCKS if people >= least), self._soft)
        return 0.0 if self._soft > patience else probability

    def _people(self) -> float:
        """Does the background sound like speech? The share of its blocks that does."""
        levels = np.array(self._levels)
        quietest = levels <= np.quantile(levels, QUIETEST)
        return float(np.mean(np.array(self._probabilities)[quietest] >= SPEECH_LIKE))
