"""Lengths of time, as people say them and as models write them. The whole text is used, or it is refused.

    read_length("an hour and 30 minutes")     1 hour 30 minutes, and so are `1,5 hours`, `1:30 hours` and `PT1H30M`
    read_length("10 timer")                   refused
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from assistant.tools.errors import AnswerError
from assistant.tools.phrases import Phrase, Readings
from assistant.tools.time_words import ENGLISH, TimeWords

SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600}
DAYS_IN: Final = {"day": 1, "week": 7}
MONTHS_IN: Final = {"month": 1, "year": 12}
SMALLER: Final = {"hour": "minute", "minute": "second"}
LONGEST_DAYS = 36_525
"""A hundred years."""
_ISO: Final = re.compile(
    r"p(?:(?P<week>\d+)w)?(?:(?P<day>\d+)d)?(?:t(?=\d)(?:(?P<hour>\d+)h)?(?:(?P<minute>\d+)m)?(?:(?P<second>\d+)s)?)?"
)


@dataclass(frozen=True, slots=True)
class Length:
    """Months and days are of the calendar, whose days are not all 24 hours long; seconds are exact."""

    months: int = 0
    days: int = 0
    seconds: Fraction = Fraction(0)

    def __add__(self, other: Length) -> Length:
        return Length(self.months + other.months, self.days + other.days, self.seconds + other.seconds)

    @property
    def is_sane(self) -> bool:
        """Longer than nothing and not longer than a life."""
        days = 31 * self.months + self.days + self.seconds / 86_400
        return 0 < days <= LONGEST_DAYS


def of(amount: Fraction, unit: str) -> Length | None:
    """None for half a month, which has no length."""
    if unit in SECONDS:
        return Length(seconds=amount * SECONDS[unit])
    if unit in DAYS_IN:
        days = amount * DAYS_IN[unit]
        return Length(days=int(days)) if days.denominator == 1 else Length(seconds=days * 86_400)
    return Length(months=int(amount) * MONTHS_IN[unit]) if amount.denominator == 1 else None


def read_length(text: str, words: TimeWords = ENGLISH) -> Length:
    """The length that the whole text means. Raises AnswerError."""
    phrase = Phrase(text, words)
    for place in phrase.past_optional(0, (*words.at, *words.in_)):
        for length, behind in (*lengths(phrase, place), *_counters(phrase, place)):
            if behind == phrase.end and length.is_sane:
                return length
    unitless = words.units.keys().isdisjoint(phrase.tokens)
    count = next((str(value) for value, _ in phrase.number(0) if unitless and value), "")
    raise AnswerError(
        f"{text!r} is not a length of time; say for example 5 minutes",
        f"{count} seconds, minutes or hours?" if count else "How long? Say for example five minutes.",
    )


def seconds_of(text: str, words: TimeWords = ENGLISH) -> float:
    """The length in seconds, a day being 24 hours. Raises AnswerError."""
    length = read_length(text, words)
    if length.months:
        raise AnswerError(f"{text!r} is too long for a timer", "That is too long for a timer. Shall I remind you?")
    return float(length.days * 86_400 + length.seconds)


# ------------------------------------------------------------------------------------------------- the grammar


def lengths(phrase: Phrase, place: int) -> Readings[Length]:
    """One or more amounts of different units: `1 hour, 15 minutes and 10 seconds`; the longest reading first."""
    if match := _ISO.fullmatch(phrase.token(place)):
        parts = [of(Fraction(int(count)), unit) for unit, count in match.groupdict().items() if count]
        yield sum((part for part in parts if part is not None), Length()), place + 1
        return
    for length, unit, behind in _amounts(phrase, place):
        yield from _more(phrase, behind, length, (unit,))


def _more(phrase: Phrase, place: int, so_far: Length, units: tuple[str, ...]) -> Readings[Length]:
    words = phrase.words
    for start in phrase.past_optional(place, words.and_):
        for length, unit, behind in _amounts(phrase, start):
            if unit not in units:
                yield from _more(phrase, behind, so_far + length, (*units, unit))
    last = units[-1]
    if last in SMALLER and len(units) == 1:  # `1h30`, `an hour thirty`
        for count, behind in phrase.whole(place):
            if 0 < count < 60:
                yield so_far + Length(seconds=Fraction(count * SECONDS[SMALLER[last]])), behind
    yield so_far, place


def _amounts(phrase: Phrase, place: int) -> list[tuple[Length, str, int]]:
    """An amount with its unit: the length, the unit and the place behind it."""
    found = [*_written(phrase, place)]
    for amount, behind in _counts(phrase, place):
        if unit := phrase.words.units.get(phrase.token(behind)):
            for part, after in _and_a_part(phrase, behind + 1):
                found.append((amount + part, unit, after))
            found.append((amount, unit, behind + 1))
    lengths_ = [(of(amount, unit), unit, behind) for amount, unit, behind in found]
    return [(length, unit, behind) for length, unit, behind in lengths_ if length is not None]


def _counts(phrase: Phrase, place: int) -> Readings[Fraction]:
    """The counts that may stand before a unit."""
    words = phrase.words
    for value, behind in phrase.number(place):
        for part, after in _and_a_part(phrase, behind):
            yield value + part, after
        yield value, behind
    for behind in phrase.behind(place, words.couple):
        yield Fraction(2), behind
    for part, behind in _parts(phrase, place):
        for start in phrase.past_optional(behind, words.of):
            yield from ((part, after) for after in phrase.past_optional(start, words.one))
    if phrase.token(place) in words.one:
        yield Fraction(1), place + 1


def _and_a_part(phrase: Phrase, place: int) -> Readings[Fraction]:
    """`and a half`."""
    for start in phrase.behind(place, phrase.words.and_):
        yield from _parts(phrase, start)


def _parts(phrase: Phrase, place: int) -> Readings[Fraction]:
    """`half`, `a half`, `a quarter`, `three quarters`."""
    words = phrase.words
    for start in phrase.past_optional(place, words.one):
        if phrase.token(start) in words.half:
            yield Fraction(1, 2), start + 1
        if phrase.token(start) in words.quarter:
            yield Fraction(1, 4), start + 1
    for count, behind in phrase.whole(place):
        if count in (1, 3) and phrase.token(behind) in words.quarter:
            yield Fraction(count, 4), behind + 1


def _written(phrase: Phrase, place: int) -> list[tuple[Fraction, str, int]]:
    """`1:30 hours`."""
    match = re.fullmatch(r"(\d{1,3}):([0-5]\d)", phrase.token(place))
    unit = phrase.words.units.get(phrase.token(place + 1))
    if match is None or unit not in SMALLER:
        return []
    return [(int(match[1]) + Fraction(int(match[2]), 60), unit, place + 2)]


def _counters(phrase: Phrase, place: int) -> Readings[Length]:
    """`00:10:00`: hours, minutes, seconds. Two numbers alone could be either."""
    if match := re.fullmatch(r"(\d{1,3}):([0-5]\d):([0-5]\d)", phrase.token(place)):
        hours, minutes, seconds = map(int, match.groups())
        yield Length(seconds=Fraction(hours * 3600 + minutes * 60 + seconds)), place + 1
