"""A text as tokens, and what may begin at a token: phrases and numbers. Every reading is offered; none drops a token.

A reader of a kind of thing yields pairs: the thing, and the place behind its last token. Whoever asks takes only
readings that reach `end`: so a text is used as a whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Final, TypeAlias, TypeVar

from assistant.tools.time_words import TimeWords

T = TypeVar("T")
Readings: TypeAlias = Iterator[tuple[T, int]]

MOST_CHARACTERS = 200
_WRITTEN: Final = (("\u2019", "'"), ("½", " 1/2"), ("¼", " 1/4"), ("¾", " 3/4"), ("\xa0", " "), ("\u202f", " "))
_HALF: Final = re.compile(r"(?<![^\W\d])([ap])\.? ?m\b\.?")
_FRENCH: Final = re.compile(r"(?<=\bat )([01]?\d|2[0-3])h([0-5]\d)\b")
"""Behind `at` 18h30 is a time of day; elsewhere 1h30 is a length."""
_OCLOCK: Final = re.compile(r"\bo ?'? ?clock\b")
_HYPHEN: Final = re.compile(r"(?<=\w)-(?=[^\W\d])")
_CLOSING: Final = re.compile(r"(?<=\w)(?:,(?=\s|$)|[.!?]+\s*$)")
_TOKEN: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:t\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?)?(?![\w-])"
    r"|(?<!\w)pt?\d[\dhmsdtw.]*(?!\w)"  # a length as ISO 8601 writes it
    r"|\d+(?::\d+)+|\d+[.,]\d+(?![\d.,])|\d+/\d+|\d+(?:st|nd|rd|th)\b|\d+|[^\W\d_]+(?:'[^\W\d_]+)*|\S"
)


class Phrase:
    """The tokens of a text, in lower case, and the words of the language that it is read in."""

    def __init__(self, text: str, words: TimeWords) -> None:
        lower = text[: MOST_CHARACTERS + 1].lower()
        for mark, plain in _WRITTEN:
            lower = lower.replace(mark, plain)
        lower = _HYPHEN.sub(" ", _OCLOCK.sub("o'clock", _HALF.sub(r"\1m", _FRENCH.sub(r"\1:\2", lower))))
        self.words = words
        self.tokens: tuple[str, ...] = tuple(_TOKEN.findall(_CLOSING.sub(" ", lower)))
        if len(text) > MOST_CHARACTERS:
            self.tokens = ("",)  # longer than any time that is said; no reader takes an empty token
        while len(self.tokens) > 1 and self.tokens[-1] in words.closing:
            self.tokens = self.tokens[:-1]

    @property
    def end(self) -> int:
        return len(self.tokens)

    def token(self, place: int) -> str:
        return self.tokens[place] if place < self.end else ""

    def behind(self, place: int, phrases: Iterable[str]) -> Iterator[int]:
        """The places behind those of these phrases that stand here."""
        for phrase in phrases:
            parts = tuple(phrase.split())
            if self.tokens[place : place + len(parts)] == parts:
                yield place + len(parts)

    def past_optional(self, place: int, phrases: Iterable[str]) -> Iterator[int]:
        """The same, and here, if none of them has to be said."""
        yield from self.behind(place, phrases)
        yield place

    def number(self, place: int) -> Readings[Fraction]:
        """`5`, `1.5`, `1,5`, `1 1/2`, `twenty five`, `two hundred`."""
        token = self.token(place)
        if token.isdecimal() and len(token) < 10:
            if (part := _fraction(self.token(place + 1))) is not None and part < 1:
                yield int(token) + part, place + 2
            yield Fraction(int(token)), place + 1
        elif re.fullmatch(r"\d{1,9}[.,]\d{1,9}", token):
            yield Fraction(token.replace(",", ".")), place + 1
        elif (part := _fraction(token)) is not None:
            yield part, place + 1
        else:
            for whole, behind in self._spoken(place):
                yield Fraction(whole), behind

    def whole(self, place: int) -> Readings[int]:
        """A number without a fraction, in digits or words."""
        for value, behind in self.number(place):
            if value.denominator == 1 and not re.search(r"[.,/]", self.token(place)):
                yield int(value), behind

    def _spoken(self, place: int) -> Readings[int]:
        numbers, token = self.words.numbers, self.token(place)
        value = numbers.get(token)
        if (value is not None or token in self.words.one) and self.token(place + 1) in self.words.hundred:
            hundreds = 100 * (value or 1)
            for rest in self.past_optional(place + 2, self.words.and_):
                for more, behind in self._spoken(rest):
                    if more < 100:
                        yield hundreds + more, behind
            yield hundreds, place + 2
        elif value is not None:
            more = numbers.get(self.token(place + 1), 0)
            if value >= 20 and 0 < more < 10:
                yield value + more, place + 2
            yield value, place + 1


def _fraction(token: str) -> Fraction | None:
    match = re.fullmatch(r"(\d{1,3})/(\d{1,3})", token)
    return Fraction(int(match[1]), int(match[2])) if match and int(match[2]) else None
