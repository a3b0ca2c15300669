"""The words of one growing stretch of sound: stable words stay, whatever a later pass writes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.asr.agreement import Agreement, bare, begin_alike
from assistant.contracts import HeardWord, Partial


class Grown:
    """For an engine that rewrites the whole stretch in every pass."""

    def __init__(self) -> None:
        self._agreement = Agreement()
        self.stable: tuple[HeardWord, ...] = ()
        self.words: tuple[HeardWord, ...] = ()
        self.settled_ms = 0.0
        """All stable words were said within this much of the sound."""

    def add(self, end_ms: float, heard: tuple[HeardWord, ...], believed: bool = True) -> None:
        """Add the words of a pass over the first `end_ms`. If not `believed`, none of them becomes stable."""
        texts, stable = [word.text for word in heard], [word.text for word in self.stable]
        agreed = self._agreement.add(end_ms, texts)
        if begin_alike(stable, texts) == len(stable):
            self.words = heard
            if believed and agreed > len(stable):
                last = heard[agreed - 1]
                self.stable = (*heard[: agreed - 1], replace(last, text=bare(last.text) or last.text))
                self.settled_ms = self._agreement.since_ms
        else:
            self.words = (*self.stable, *heard[splice(stable, texts) :])

    def partial(self) -> Partial:
        begin, text = joined(self.stable), joined(self.words)
        return Partial(begin, text[len(begin) :])


def splice(stable: Sequence[str], written: Sequence[str]) -> int:
    """The place where the text continues after the stable words, even if a later pass wrote some of them differently.

    The result is just after the written word that matches the last stable one nearest its place, or at that place.
    """
    count = len(stable)
    if not stable or begin_alike(stable, written) == count:
        return count
    same = [at for at, word in enumerate(written, 1) if bare(word) == bare(stable[-1])]
    return min(same, key=lambda at: abs(at - count), default=count)


def joined(words: Sequence[HeardWord]) -> str:
    return " ".join(word.text for word in words)
