"""Which words of a hypothesis will not change any more? Pure: words in, a count out.

LocalAgreement (Liu et al. 2020), over time instead of over passes: a word is stable when every pass over the last
`settled_ms` of sound, at least two of them, has written it the same way. It must then have ended that long before the
end of the sound, so no word times are needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

SETTLED_MS = 400.0
"""Later sound that may still change a word, in ms: `ninety` becomes `nineteen`, `there` becomes `therefore`."""
MARKS = ".,!?;:…"
"""Marks that may come and go after a word as the sentence grows."""


def bare(word: str) -> str:
    return word.rstrip(MARKS)


def begin_alike(a: Sequence[str], b: Sequence[str]) -> int:
    """How many leading words agree. The last of them may differ in the marks after it."""
    count = 0
    for mine, other in zip(a, b, strict=False):
        if bare(mine) != bare(other):
            break
        count += 1
        if mine != other:
            break
    return count


class Agreement:
    """Passes over one growing stretch of sound. `settled_ms`: how much of it must follow a word."""

    def __init__(self, settled_ms: float = SETTLED_MS) -> None:
        self._settled_ms = settled_ms
        self._passes: deque[tuple[float, Sequence[str]]] = deque()

    @property
    def since_ms(self) -> float:
        """How much sound the oldest counted pass had: all words that every pass wrote were said within it."""
        return self._passes[0][0] if self._passes else 0.0

    def add(self, end_ms: float, words: Sequence[str]) -> int:
        """Add the words of a pass over the first `end_ms` of the sound -> how many of them all other passes agree with.

        The marks after the last one are not part of the agreement.
        """
        while len(self._passes) > 1 and self._passes[1][0] <= end_ms - self._settled_ms:
            self._passes.popleft()
        agreed = 0
        if self._passes and self._passes[0][0] <= end_ms - self._settled_ms:
            agreed = min(begin_alike(words, earlier) for _, earlier in self._passes)
        self._passes.append((end_ms, words))
        return agreed
