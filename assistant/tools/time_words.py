"""The words for times, days and lengths of time, as tables of one language. Digits and ISO 8601 need none of them.

Another language is another `TimeWords`, handed to the readers. A text in a language without one is refused as a whole,
and its model then writes digits or ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assistant.base.days import DAYS, MONTHS


@dataclass(frozen=True, slots=True)
class TimeWords:
    """A phrase of several words is written with spaces. If a table maps to a number, its unit stands beside it."""

    numbers: Mapping[str, int]
    hundred: frozenset[str]
    ordinals: Mapping[str, int]
    one: frozenset[str]
    """Articles that count as one: `an hour`."""
    couple: tuple[str, ...]
    half: frozenset[str]
    quarter: frozenset[str]
    and_: frozenset[str]
    of: frozenset[str]
    the: frozenset[str]
    units: Mapping[str, str]
    """Each name of a unit → second, minute, hour, day, week, month or year."""
    halves: Mapping[str, int]
    """am, pm → hours to add."""
    oclock: frozenset[str]
    oh: frozenset[str]
    """The zero in `seven oh five`."""
    named_times: Mapping[str, int]
    """noon, midnight → hour."""
    past: tuple[str, ...]
    to: tuple[str, ...]
    parts: Mapping[str, str]
    """Each phrase for a part of the day → morning, afternoon, evening or night."""
    todays_parts: Mapping[str, str]
    """The same, of this day: `tonight`."""
    at: tuple[str, ...]
    """Words that may stand before a time or a day."""
    in_: tuple[str, ...]
    from_now: tuple[str, ...]
    from_: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    days_away: Mapping[str, int]
    weekdays: Mapping[str, int]
    months: Mapping[str, int]
    this: tuple[str, ...]
    next_: tuple[str, ...]
    next_week: tuple[str, ...]
    next_month: tuple[str, ...]
    every: tuple[str, ...]
    other: frozenset[str]
    sets_of_days: Mapping[str, tuple[int, ...]]
    """Words that may follow `every` and mean some days of the week (Monday = 0)."""
    adverbs: Mapping[str, str]
    """daily, weekly → unit."""
    closing: frozenset[str]
    """Words that may end a text and mean nothing: `sharp`."""


def _counted(words: str, start: int = 0, step: int = 1) -> dict[str, int]:
    return {word: start + step * place for place, word in enumerate(words.split())}


def _units(**names: str) -> dict[str, str]:
    return {name: unit for unit, written in names.items() for name in written.split()}


_WEEKDAYS: Final = {name: place for place, day in enumerate(DAYS) for name in (day, day[:3])}
_WEEKDAYS.update({"tues": 1, "weds": 2, "thur": 3, "thurs": 3})
_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_ORDERED: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)

ENGLISH: Final = TimeWords(
    numbers=_counted(_SMALL) | _counted("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10),
    hundred=frozenset({"hundred"}),
    ordinals=_counted(_ORDERED, 1) | {"thirtieth": 30},
    one=frozenset({"a", "an"}),
    couple=("a couple of", "a couple"),
    half=frozenset({"half"}),
    quarter=frozenset({"quarter", "quarters"}),
    and_=frozenset({"and"}),
    of=frozenset({"of"}),
    the=frozenset({"the"}),
    units=_units(
        second="s sec secs second seconds", minute="m min mins minute minutes", hour="h hr hrs hour hours",
        day="d day days", week="w week weeks", month="month months", year="year years",
    ),
    halves={"am": 0, "pm": 12},
    oclock=frozenset({"o'clock"}),
    oh=frozenset({"oh", "o"}),
    named_times={"noon": 12, "midday": 12, "midnight": 0},
    past=("past", "after"),
    to=("to", "before", "of", "till"),
    parts={
        f"{opening}{part}": part
        for part in ("morning", "afternoon", "evening") for opening in ("", "in the ", "on the ")
    } | {"at night": "night", "in the night": "night", "night": "night"},
    todays_parts={
        "tonight": "night", "this morning": "morning", "this afternoon": "afternoon", "this evening": "evening",
    },
    at=("at", "on", "for", "by", "around", "about", "@"),
    in_=("in",),
    from_now=("from now",),
    from_=("from", "after"),
    before=("before",),
    after=("after", "past"),
    days_away={
        "today": 0, "tomorrow": 1, "the day after tomorrow": 2, "day after tomorrow": 2, "yesterday": -1,
        "the day before yesterday": -2, "day before yesterday": -2,
    },
    weekdays=_WEEKDAYS,
    months={name: place for place, month in enumerate(MONTHS, 1) for name in (month, month[:3])} | {"sept": 9},
    this=("this", "this coming", "the coming"),
    next_=("next", "the next"),
    next_week=("next week",),
    next_month=("next month",),
    every=("every", "each"),
    other=frozenset({"other", "second"}),
    sets_of_days={
        "day": tuple(range(7)), "weekday": tuple(range(5)), "workday": tuple(range(5)), "weekend": (5, 6),
    },
    adverbs={"daily": "day", "weekly": "week", "monthly": "month", "hourly": "hour", "yearly": "year"},
    closing=frozenset({"sharp", "exactly", "please"}),
)  # fmt: skip
