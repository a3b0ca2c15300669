"""Days as people name them: weekdays, days of a month, feasts, `tomorrow`, `in two weeks`, ISO dates; and repeats."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from assistant.base.days import AROUND_EASTER, FEASTS, NTH_WEEKDAYS
from assistant.tools.durations import SECONDS, Length, lengths
from assistant.tools.phrases import Phrase, Readings
from assistant.tools.repeats import Repeat
from assistant.tools.wall import add_months

YEARS_AHEAD = 9
"""How far February 29 may be away."""


@dataclass(frozen=True, slots=True)
class Days:
    """The days that were meant, the first one that suits is taken. `timed`: it means a time by itself, that of now, as
    `in a week` does. `part`: it is one of these days' mornings or evenings."""

    dates: tuple[dt.date, ...]
    timed: bool = False
    part: str = ""
    repeat: Repeat | None = None


def days(phrase: Phrase, place: int, today: dt.date) -> Readings[Days]:
    """All readings of a day or of days that come again."""
    words = phrase.words
    for start in phrase.past_optional(place, words.at):
        yield from _named(phrase, start, today)
        yield from _of_weeks(phrase, start, today)
        yield from _of_months(phrase, start, today)
        for weekday, behind in _weekday(phrase, start):  # `monday, november 23`: the one has to fit the other
            for found, end in _of_months(phrase, behind, today):
                yield Days(tuple(day for day in found.dates[:1] if day.weekday() == weekday)), end
    yield from _away(phrase, place, today)
    yield from _again(phrase, place, today)


def shifted(day: dt.date, length: Length) -> dt.date:
    return add_months(day, length.months) + dt.timedelta(days=length.days)


def _named(phrase: Phrase, place: int, today: dt.date) -> Readings[Days]:
    words, token = phrase.words, phrase.token(place)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", token):
        try:
            yield Days((dt.date.fromisoformat(token),)), place + 1
        except ValueError:
            return
    for name, away in words.days_away.items():
        for behind in phrase.behind(place, (name,)):
            yield Days((today + dt.timedelta(days=away),)), behind
    for name, part in words.todays_parts.items():
        for behind in phrase.behind(place, (name,)):
            yield Days((today,), part=part), behind
    for start in phrase.past_optional(place, (*words.the, *words.next_, "next")):
        for name in (*FEASTS, *AROUND_EASTER, *NTH_WEEKDAYS):
            for behind in phrase.behind(start, (name,)):
                yield Days(tuple(feast(name, today))), behind


def _of_weeks(phrase: Phrase, place: int, today: dt.date) -> Readings[Days]:
    """`friday`, `this friday`, `next friday`, `friday next week`."""
    words = phrase.words
    monday = today - dt.timedelta(days=today.weekday())
    for weekday, behind in _weekday(phrase, place):
        ahead = (weekday - today.weekday() - 1) % 7 + 1
        for after in phrase.behind(behind, words.next_week):
            yield Days((monday + dt.timedelta(days=7 + weekday),)), after
        yield Days((today + dt.timedelta(days=ahead), today + dt.timedelta(days=ahead + 7))), behind
    for start in phrase.behind(place, words.this):
        for weekday, behind in _weekday(phrase, start):
            ahead = (weekday - today.weekday()) % 7
            yield Days((today + dt.timedelta(days=ahead), today + dt.timedelta(days=ahead + 7))), behind
    for phrases in (words.next_, words.next_week):
        for start in phrase.behind(place, phrases):
            for middle in phrase.past_optional(start, words.at):
                for weekday, behind in _weekday(phrase, middle):
                    yield Days((monday + dt.timedelta(days=7 + weekday),)), behind


def _weekday(phrase: Phrase, place: int) -> Readings[int]:
    weekday = phrase.words.weekdays.get(phrase.token(place))
    if weekday is not None:
        yield weekday, place + 1


def _of_months(phrase: Phrase, place: int, today: dt.date) -> Readings[Days]:
    """`the 3rd`, `july 4`, `the 4th of july 2027`, `the 3rd of next month`."""
    words = phrase.words
    for start in phrase.past_optional(place, words.the):
        for number, behind in _day_of_month(phrase, start):
            for middle in phrase.past_optional(behind, words.of):
                if month := words.months.get(phrase.token(middle)):
                    yield from _of_year(phrase, middle + 1, month, number, today)
                for after in phrase.behind(middle, words.next_month):
                    yield Days(_existing([add_months(today.replace(day=1), 1)], number)), after
            if not phrase.token(start).isdecimal():
                firsts = [add_months(today.replace(day=1), n) for n in range(13)]
                yield Days(tuple(day for day in _existing(firsts, number) if day >= today)), behind
    if month := words.months.get(phrase.token(place)):
        for start in phrase.past_optional(place + 1, words.the):
            for number, behind in _day_of_month(phrase, start):
                yield from _of_year(phrase, behind, month, number, today)


def _day_of_month(phrase: Phrase, place: int) -> Readings[int]:
    token, ordinals = phrase.token(place), phrase.words.ordinals
    if match := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", token):
        if 1 <= int(match[1]) <= 31:
            yield int(match[1]), place + 1
    elif token in ordinals:
        yield ordinals[token], place + 1
    elif (tens := phrase.words.numbers.get(token, 0)) in (20, 30):
        ones = ordinals.get(phrase.token(place + 1), 31)
        if ones < 10 and tens + ones <= 31:
            yield tens + ones, place + 2


def _of_year(phrase: Phrase, place: int, month: int, number: int, today: dt.date) -> Readings[Days]:
    if re.fullmatch(r"20\d\d", phrase.token(place)):
        yield Days(_existing([dt.date(int(phrase.token(place)), month, 1)], number)), place + 1
    firsts = [dt.date(today.year + n, month, 1) for n in range(YEARS_AHEAD)]
    yield Days(tuple(day for day in _existing(firsts, number) if day >= today)), place


def _existing(firsts: list[dt.date], number: int) -> tuple[dt.date, ...]:
    """The day of this number in each month that has one."""
    found = (first + dt.timedelta(days=number - 1) for first in firsts)
    return tuple(day for day, first in zip(found, firsts, strict=True) if day.month == first.month)


def _away(phrase: Phrase, place: int, today: dt.date) -> Readings[Days]:
    """`in two weeks`, `three days from now`, `a week from friday`."""
    words = phrase.words
    for start in phrase.past_optional(place, words.in_):
        for length, behind in lengths(phrase, start):
            if length.seconds or not length.is_sane:
                continue
            if start != place:
                yield Days((shifted(today, length),), timed=True), behind
            for after in phrase.behind(behind, words.from_now):
                yield Days((shifted(today, length),), timed=True), after
            for after in phrase.behind(behind, words.from_):
                for base in (_named, _of_weeks):
                    for found, end in base(phrase, after, today):
                        yield replace(found, dates=tuple(shifted(day, length) for day in found.dates)), end


# ------------------------------------------------------------------------------------------------- repeats


def _again(phrase: Phrase, place: int, today: dt.date) -> Readings[Days]:
    """`every day`, `every other friday`, `on mondays and thursdays`, `every two hours`, `the 1st of every month`."""
    words = phrase.words
    ahead = tuple(today + dt.timedelta(days=n) for n in range(15))
    for start in phrase.behind(place, words.every):
        yield from _every(phrase, start, ahead)
    if unit := words.adverbs.get(phrase.token(place)):
        yield _each(unit, 1, ahead), place + 1
    for start in phrase.past_optional(place, words.at):
        names = {f"{name}s": which for name, which in words.sets_of_days.items() if name != "day"}
        names.update({f"{name}s": (which,) for name, which in words.weekdays.items()})
        yield from _some_weekdays(phrase, start, names, ahead)
        yield from _monthly(phrase, start, today)


def _every(phrase: Phrase, place: int, ahead: tuple[dt.date, ...]) -> Readings[Days]:
    words = phrase.words
    names = {**words.sets_of_days, **{name: (which,) for name, which in words.weekdays.items()}}
    yield from _some_weekdays(phrase, place, names, ahead)
    for part_phrase, part in words.parts.items():
        for behind in phrase.behind(place, (part_phrase,)):
            yield Days(ahead, part=part, repeat=Repeat("day", weekdays=tuple(range(7)))), behind
    counts = [*phrase.whole(place), (1, place)]
    if phrase.token(place) in words.other:
        counts.append((2, place + 1))
    for count, behind in counts:
        if 0 < count < 1000 and (unit := words.units.get(phrase.token(behind))):
            yield _each(unit, count, ahead), behind + 1
        for weekday, end in _weekday(phrase, behind) if count == 2 else ():
            first = tuple(day for day in ahead if day.weekday() == weekday and day > ahead[0])[:1]
            yield Days(first, repeat=Repeat("week", 2)), end


def _each(unit: str, count: int, ahead: tuple[dt.date, ...]) -> Days:
    if unit in ("month", "year"):
        return Days(ahead, timed=True, repeat=Repeat(unit, count, month_day=ahead[0].day))
    return Days(ahead, timed=unit in SECONDS, repeat=Repeat(unit, count))


def _some_weekdays(
    phrase: Phrase, place: int, names: dict[str, tuple[int, ...]], ahead: tuple[dt.date, ...]
) -> Readings[Days]:
    for found, behind in _row_of(phrase, place, names):
        which = tuple(sorted({day for days_ in found for day in days_}))
        yield Days(tuple(day for day in ahead if day.weekday() in which), repeat=Repeat("week", weekdays=which)), behind


def _row_of(phrase: Phrase, place: int, names: dict[str, tuple[int, ...]]) -> Readings[list[tuple[int, ...]]]:
    """`monday`, `monday and thursday`, `monday wednesday and friday`; the longest row first."""
    here = names.get(phrase.token(place))
    if here is None:
        return
    for start in phrase.past_optional(place + 1, phrase.words.and_):
        for rest, behind in _row_of(phrase, start, names):
            yield [here, *rest], behind
    yield [here], place + 1


def _monthly(phrase: Phrase, place: int, today: dt.date) -> Readings[Days]:
    """`the 1st of every month`, `every month on the 1st`."""
    words = phrase.words
    firsts = [add_months(today.replace(day=1), n) for n in range(13)]
    for start in phrase.past_optional(place, words.the):
        for number, behind in _day_of_month(phrase, start):
            for middle in phrase.past_optional(behind, words.of):
                for every in phrase.behind(middle, words.every):
                    if words.units.get(phrase.token(every)) == "month":
                        found = tuple(day for day in _existing(firsts, number) if day >= today)
                        yield Days(found, repeat=Repeat("month", month_day=number)), every + 1
    for start in phrase.behind(place, words.every):
        if words.units.get(phrase.token(start)) == "month":
            for middle in phrase.behind(start + 1, words.at):
                for after in phrase.past_optional(middle, words.the):
                    for number, behind in _day_of_month(phrase, after):
                        found = tuple(day for day in _existing(firsts, number) if day >= today)
                        yield Days(found, repeat=Repeat("month", month_day=number)), behind


# -------------------------------------------------------------------------------------------------- feasts


def feast(name: str, today: dt.date) -> Iterator[dt.date]:
    """The coming days of this name, the first of them perhaps today."""
    years = range(today.year, today.year + YEARS_AHEAD)
    return islice((day for year in years if (day := _feast_of(name, year)) >= today), 2)


def _feast_of(name: str, year: int) -> dt.date:
    if name in FEASTS:
        return dt.date(year, *FEASTS[name])
    if name in AROUND_EASTER:
        return _easter(year) + dt.timedelta(days=AROUND_EASTER[name])
    month, weekday, which = NTH_WEEKDAYS[name]
    first = dt.date(year, month, 1)
    return first + dt.timedelta(days=(weekday - first.weekday()) % 7 + 7 * (which - 1))


def _easter(year: int) -> dt.date:
    """Easter Sunday of the Gregorian calendar (Meeus, Astronomical Algorithms, chapter 8)."""
    golden, (century, rest) = year % 19, divmod(year, 100)
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    correction = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * correction + 114, 31)
    return dt.date(year, month, day + 1)
