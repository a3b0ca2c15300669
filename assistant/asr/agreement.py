"""Which words of a hypothesis will not change any more? Pure: words in, a count out.

LocalAgreement (Liu et al. 2020), over time instead of over passes: a word is stable when every pass over the last
`settled_ms` of sound, two at least, has written it the same way. So it ended that long before the sound did, and no
word times are needed to know it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

SETTLED_MS = 400.0
"""Sound after a word that may still change it: `ninety` becomes `nineteen`, `there` becomes `therefore`."""
MARKS = ".,!?;:…"
"""What may stand after a word and come and go as the sentence grows."""


def bare(word: str) -> str:
    return word.rstrip(MARKS)


def begin_alike(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both begin with. The last of them may differ in the marks behind it."""
    count = 0
    for mine, other in zip(a, b, strict=False):
        if bare(mine) != bare(other):
            break
        count += 1
        if mine != other:
            break
    return count


class Agreement:
    """Passes over one growing stretch of sound. `settled_ms`: how much of it must come behind a word."""

    def __init__(self, settled_ms: float = SETTLED_MS) -> None:
        self._settled_ms = settled_ms
        self._passes: deque[tuple[float, Sequence[str]]] = deque()

    @property
    def since_ms(self) -> float:
        """How much sound the oldest pass that counts had: what all of them wrote was said within it."""
        return self._passes[0][0] if self._passes else 0.0

    def add(self, end_ms: float, words: Sequence[str]) -> int:
        """A pass over the first `end_ms` of the sound wrote these words -> with how many of them all others agree.

        Of the last one, the marks behind it are not agreed on.
        """
        while len(self._passes) > 1 and self._passes[1][0] <= end_ms - self._settled_ms:
            self._passes.popleft()
        agreed = 0
        if self._passes and self._passes[0][0] <= end_ms - self._settled_ms:
            agreed = min(begin_alike(words, earlier) for _, earlier in self._passes)
        self._passes.append((end_ms, words))
        return agreed
