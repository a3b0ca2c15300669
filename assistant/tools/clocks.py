"""Times of day as people say them and as models write them: `half past six`, `836 pm`, `quarter to 12`, `noon`."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from assistant.tools.phrases import Phrase, Readings


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day. `open_half`: it could be am or pm. `midnight`: said by name, so its day could be either."""

    time: dt.time
    open_half: bool = False
    midnight: bool = False


def clocks(phrase: Phrase, place: int) -> Readings[TimeOfDay]:
    """A time of day, the longest reading first."""
    words = phrase.words
    yield from _around_an_hour(phrase, place)
    for hour, minute, behind, whole_day in (*_digital(phrase, place), *_spoken(phrase, place)):
        if minute > 59 or hour > 24 or (hour == 24 and minute):
            continue
        half = words.halves.get(phrase.token(behind))
        if half is not None and 1 <= hour <= 12:
            yield TimeOfDay(dt.time(hour % 12 + half, minute)), behind + 1
        elif half is not None and 13 <= hour <= 23 and half == 12:
            yield TimeOfDay(dt.time(hour, minute)), behind + 1
        else:
            yield TimeOfDay(dt.time(hour % 24, minute), not whole_day and 1 <= hour <= 12, hour == 24), behind
    twelve = [place + 1] if phrase.token(place) in ("12", "twelve") else []
    for start in (*twelve, place):
        if (named := words.named_times.get(phrase.token(start))) is not None:
            yield TimeOfDay(dt.time(named), midnight=named == 0), start + 1


def _digital(phrase: Phrase, place: int) -> list[tuple[int, int, int, bool]]:
    """`7:30`, `07:30`, `19.30`, `836`, `1930`: hour, minute, the place behind, whether it is of the 24-hour clock."""
    token, found = phrase.token(place), []
    if match := re.fullmatch(r"(\d{1,2})[:.](\d\d)(?::00)?", token):
        found.append((int(match[1]), int(match[2]), place + 1, token[0] == "0"))
    if match := re.fullmatch(r"(\d{1,2})(\d\d)", token):
        found.append((int(match[1]), int(match[2]), place + 1, token[0] == "0"))
    if re.fullmatch(r"\d\d", token) and re.fullmatch(r"[0-5]\d", phrase.token(place + 1)):
        found.append((int(token), int(phrase.token(place + 1)), place + 2, token[0] == "0"))
    return found


def _spoken(phrase: Phrase, place: int) -> Iterator[tuple[int, int, int, bool]]:
    """`7`, `seven o'clock`, `seven thirty`, `seven oh five`, `7 30`."""
    words = phrase.words
    for hour, behind in phrase.whole(place):
        if phrase.token(behind) in words.oclock:
            yield hour, 0, behind + 1, False
        for start in (behind, behind + 1) if phrase.token(behind) in words.oh else (behind,):
            for minute, end in phrase.whole(start):
                if (9 < minute < 60) if start == behind else (0 < minute < 10):
                    yield hour, minute, end, False
        yield hour, 0, behind, phrase.token(place)[:1] == "0"


def _around_an_hour(phrase: Phrase, place: int) -> Readings[TimeOfDay]:
    """`half past six`, `quarter to 12`, `twenty minutes past seven pm`, `10 minutes to midnight`."""
    words = phrase.words
    for minutes, behind in _minutes(phrase, place):
        for sign, phrases in ((1, words.past), (-1, words.to)):
            for start in phrase.behind(behind, phrases):
                for clock, end in clocks(phrase, start):
                    if clock.time.minute == 0 and (minutes != 30 or sign == 1):
                        total = (clock.time.hour * 60 + sign * minutes) % 1440
                        shown = dt.time((total // 60) % 24, total % 60)
                        if clock.open_half:
                            shown = shown.replace(hour=shown.hour % 12 or 12)
                        yield TimeOfDay(shown, clock.open_half), end


def _minutes(phrase: Phrase, place: int) -> Readings[int]:
    words = phrase.words
    for start in phrase.past_optional(place, words.one):
        if phrase.token(start) in words.quarter:
            yield 15, start + 1
    if phrase.token(place) in words.half:
        yield 30, place + 1
    for count, behind in phrase.whole(place):
        if 0 < count < 60:
            if words.units.get(phrase.token(behind)) == "minute":
                yield count, behind + 1
            yield count, behind
