"""How likely a sound begins with a name, by Moonshine's decoder. It is asked for the name, not left to spell it.

Greedy decoding writes "Amen" for "Hey Ben" and, in a kitchen, leaves "Ada" out behind "Hey". The probability of the
name itself says more. Its logarithm is -4.3 or more in some reading for all calls of the voice joe that were looked at
(15), near and in a kitchen at 10 dB. In the beginnings of 400 recordings of people in five languages, half of them in
the kitchen, thirteen names of two tokens or more reached -5.5 four times, and never in both of two readings. A name of
one token, with no word before it, needs more: "Then" is "Ben" with -1.9 in both of two readings, and whoever is called
so is better called "hey Ben". The word before a name is whatever the network finds likely there, so a greeting may be
one that nobody thought of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from assistant.asr.tokens import BEGIN, END, Tokens

Kept: TypeAlias = dict[str, np.ndarray]
"""The decoder's cache of what it has read, by the names of its inputs."""
Step = Callable[[Sequence[int], Kept | None], tuple[np.ndarray, Kept]]
"""(tokens, cache so far; None: empty) -> logits [S, V] float32, cache now."""

LIKELY, LIKELY_ALONE = -5.5, -2.5
"""The natural logarithms of the probabilities from which on a name was said: of two tokens or more, with the word
before it, and of one. Fitted as above, for two readings that agree (`assistant.talk.waiting`)."""
LIKELY_A_LETTER = -1.5
"""The same for each letter of a phrase that a network of its own believes to have heard. Phrases that were said reach
-1.4 near, and 11 of 12 in a kitchen; what the networks mistook for them in two hours had -1.8 at most."""
ENDS = 0.5
"""The least probability that a word ends where the name does: "Benchmarks" and "Benetton" begin with "Ben", too."""
FIRST_WORDS, GO_ON = 6, 3
"""Pieces that may begin the word before a name, and those that may follow: a mark, or the word's end."""


@dataclass(frozen=True, slots=True)
class Named:
    """`tokens`: the name, and the word before it if there is one. `score`: their log probability."""

    name: str
    tokens: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Place:
    """A place where a name may stand: what is before it, and the log probabilities [V] of the next token."""

    before: tuple[int, ...]
    score: float
    next: np.ndarray
    past: Kept


class Naming:
    """One sound, asked for names."""

    def __init__(self, step: Step, tokens: Tokens) -> None:
        self._step, self._tokens, self._goes_on = step, tokens, tokens.goes_on()

    def likeliest(self, names: Sequence[str], least: float = LIKELY, alone: float = LIKELY_ALONE) -> Named | None:
        """The likeliest name that the sound begins with or has behind its first word; None below `least`, or below
        `alone` if it is one token."""
        spelt = [(name, self._tokens.of(each)) for name in names for each in dict.fromkeys([name, name.lower()])]
        best: Named | None = None

        def reached() -> float:
            return least if best is None else max(least, best.score)

        for place in self._places(reached):
            for name, tokens in spelt:
                floor = max(alone, reached()) if len(place.before) + len(tokens) == 1 else reached()
                if tokens and place.score + place.next[tokens[0]] >= floor:
                    score = place.score + self._chance(place, tokens)
                    if score >= floor:
                        best = Named(name, (*place.before, *tokens), score)
        return best

    def _places(self, least: Callable[[], float]) -> Iterator[_Place]:
        """The beginning, then behind likely first words of one piece or two. `least`: the least that counts by now."""
        rows, past = self._step([BEGIN], None)
        first = _Place((), 0.0, _chances(rows[0]), past)
        yield first
        for token in _likeliest(first.next, FIRST_WORDS):
            word = self._behind(first, token, least())
            if word is None:
                continue
            yield word
            for more in _likeliest(word.next, GO_ON):
                if not self._tokens.begins_word(more) and (longer := self._behind(word, more, least())) is not None:
                    yield longer

    def _behind(self, place: _Place, token: int, least: float) -> _Place | None:
        score = place.score + float(place.next[token])
        if token <= END or score < least:
            return None
        rows, past = self._step([token], place.past)
        return _Place((*place.before, token), score, _chances(rows[0]), past)

    def _chance(self, place: _Place, tokens: Sequence[int]) -> float:
        """The log probability of a name at a place, and of its end; minus infinity if a longer word is likelier."""
        rows, _ = self._step(tokens, place.past)
        each = [place.next, *map(_chances, rows)]
        ends = 1.0 - float(np.exp(each[-1][self._goes_on]).sum())
        name = sum(float(row[token]) for row, token in zip(each, tokens, strict=False))
        return name + math.log(ends) if ends >= ENDS else -math.inf


def _chances(row: np.ndarray) -> np.ndarray:
    """[V] logits -> [V] log probabilities, float64."""
    wide = row.astype(np.float64)
    wide -= wide.max()
    return np.asarray(wide - np.log(np.exp(wide).sum()))


def _likeliest(chances: np.ndarray, count: int) -> list[int]:
    return [int(token) for token in np.argsort(-chances)[:count]]
