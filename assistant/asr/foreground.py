"""Is it the user who speaks, or people in the background? Pure: levels and probabilities in, a probability out.

A detector calls a murmur behind the user speech, and rightly: but then no turn would end. The user differs by standing
out from the background. The floor is the quietest tenth of a second of the last three seconds. If even the quietest
sound resembles speech, only sound that exceeds the floor by a margin counts; a nearby speaker reaches it and a crowd
hardly ever does. Soft word endings belong to what came before them. In quiet, nothing is changed.

Constants were fitted on 44 utterances of four synthetic voices, alone and in pairs, against six other speakers, a
street and a kitchen at 5 to 20 dB. They are evaluated on recordings of people.
"""

from __future__ import annotations

from collections import deque

import numpy as np

FLOOR_BLOCKS, MEMORY_BLOCKS = 94, 625
"""Blocks of 32 ms: the floor covers 3 s, the memory of how the background sounds 20 s."""
LEAST = 25
"""Blocks needed before anything is refused: a user who speaks at once has no floor yet except their own voice."""
SMOOTH = 3
"""Blocks averaged for a level: it is that of a word, not of a single sound."""
STAYS, RISES = 10.0, 16.0
"""Power over the floor needed to remain the user, and to become the user: 10 and 12 dB."""
RISE_BLOCKS = 3
SOFT_BLOCKS = ((0.75, 6), (0.5, 16))
"""Blocks below the threshold after which sound is no longer the soft part of a word but background, by the share of
the quietest blocks that sound like speech: 0.2 s if people are almost certainly talking there, 0.5 s if that is likely.
In street noise 1 block in 100 does, but after a long sentence the user's soft sounds are among the quietest."""
QUIETEST, SPEECH_LIKE = 0.15, 0.2
"""Share of blocks that represents the background, and the probability from which a block there resembles speech."""


class Foreground:
    """Follows one stream of blocks."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=SMOOTH)
        self._levels: deque[float] = deque(maxlen=MEMORY_BLOCKS)
        self._probabilities: deque[float] = deque(maxlen=MEMORY_BLOCKS)
        self._loud = self._soft = 0

    def probability(self, power: float, probability: float) -> float:
        """Add a block of mean square `power`, speech of anyone with this probability -> probability that it is the
        user's."""
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
        """Share of the background's blocks that sound like speech."""
        levels = np.array(self._levels)
        quietest = levels <= np.quantile(levels, QUIETEST)
        return float(np.mean(np.array(self._probabilities)[quietest] >= SPEECH_LIKE))
