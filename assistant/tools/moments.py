"""When something is to ring: one reading of times, days, lengths of time and repeats for timers, alarms and reminders.

Pure: the moment `now`, with its zone, is handed in. The law is *use all of the text or refuse*: a text of which a word
is left over has no moment, and the person is asked. A `Moment` always has a moment, so a reminder without one cannot
be made.

    read_moment("every weekday at 8", now)       Monday 8:00 am, then every weekday
    read_moment("30 minutes before 5 pm", now)   the next 4:30 pm
    read_moment("after dinner", now)             AnswerError: when is that?

A time without am or pm is the next one. It follows custom if a day is named, and for alarms, which wake people: see
`_likely`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from assistant.tools.clocks import TimeOfDay, clocks
from assistant.tools.dates import Days, days, shifted
from assistant.tools.durations import SECONDS, Length, lengths
from assistant.tools.errors import AnswerError
from assistant.tools.phrases import Phrase
from assistant.tools.repeats import Repeat
from assistant.tools.time_words import ENGLISH, TimeWords
from assistant.tools.wall import later, moments_of, naive, seconds_between

DEFAULTS: Final = {"morning": 8, "afternoon": 15, "evening": 19, "night": 20}
"""The hour that a part of the day means without a time, on the 24-hour clock. The reply names it."""
FITS: Final = {"morning": range(12), "afternoon": range(12, 18), "evening": range(16, 24)}
SHORTEST_REPEAT_S = 60
WAKING: Final = range(5, 10)
"""An alarm at one of these hours, without am or pm, is in the morning."""
WORKING: Final = range(7, 13)
"""On a day that is named, these hours are before noon or noon; earlier ones are in the afternoon."""
AWAKE: Final = range(7, 24)
WHEN = "When is that? Say for example at 5 pm, or in ten minutes."
WHAT_TIME = "At what time?"


@dataclass(frozen=True, slots=True)
class Moment:
    """When it rings, in the zone of `now`. `meant`: the time that was said, if clocks skip it on that day. `wait_s`:
    the length that was said, if it was one of hours, minutes and seconds."""

    at: dt.datetime
    repeat: Repeat | None = None
    meant: dt.time | None = None
    wait_s: float | None = None


class TimeIsOver(AnswerError):
    """The moment that was said lies in the past; `at` is when it was."""

    def __init__(self, text: str, at: dt.datetime) -> None:
        shown = f"{at:%Y-%m-%d %H:%M}"
        super().__init__(f"{text!r} is over: it was {shown}; ask whether tomorrow is meant", "That is over. Tomorrow?")
        self.at = at


def read_moment(
    text: str, now: dt.datetime, *, waking: bool = False, words: TimeWords = ENGLISH
) -> Moment:
    """The moment that the whole text means. `waking`: it is said of an alarm. Raises AnswerError, whose `say` asks the
    person, and TimeIsOver."""
    phrase = Phrase(text, words)
    failed: AnswerError | None = None
    for said in _readings(phrase, now):
        try:
            return _resolved(said, text, now, waking)
        except AnswerError as error:
            failed = failed or error
    raise failed or AnswerError(f"I do not know the time {text!r}", WHEN)


def find_time(text: str, now: dt.time | None = None, words: TimeWords = ENGLISH) -> dt.time:
    """A time of day alone. Without am or pm: the next one after `now`, and before noon without `now`. Raises
    AnswerError."""
    for said in _parts_of(Phrase(text, words), 0):
        if said.clock is None:
            continue
        clock = said.clock
        if said.part or not clock.open_half:
            return _times(said, False, False)[0][0]
        if now is None:
            return clock.time
        early, late = (clock.time.replace(hour=clock.time.hour % 12 + half) for half in (0, 12))
        return late if early <= now < late else early
    raise AnswerError(f"I do not know the time {text!r}", WHEN)


def read_day(text: str, today: dt.date, words: TimeWords = ENGLISH) -> dt.date | None:
    """The day that the whole text means, None for another text."""
    phrase = Phrase(text, words)
    for found, behind in days(phrase, 0, today):
        if behind == phrase.end and found.dates and not found.repeat:
            return found.dates[0]
    return None


# ------------------------------------------------------------------------------------------------ the grammar


@dataclass(frozen=True, slots=True)
class _Said:
    """The parts of a moment that a text says, each at most once. `shift`: a length before or after it, and the sign."""

    days: Days | None = None
    clock: TimeOfDay | None = None
    part: str = ""
    exact: dt.datetime | None = None
    wait: Length | None = None
    shift: tuple[Length, int] | None = None


def _readings(phrase: Phrase, now: dt.datetime) -> Iterator[_Said]:
    """Every reading of the whole text."""
    yield from _iso(phrase, now)
    yield from _waits(phrase)
    yield from _parts_of(phrase, 0, now.date())
    words = phrase.words
    for start in phrase.past_optional(0, words.at):
        for length, behind in lengths(phrase, start):
            for phrases, sign in ((words.before, -1), (words.after, 1)):
                for after in phrase.behind(behind, phrases) if length.is_sane else ():
                    for said in _parts_of(phrase, after, now.date()):
                        if said.clock is not None:
                            yield replace(said, shift=(length, sign))


def _iso(phrase: Phrase, now: dt.datetime) -> Iterator[_Said]:
    """`2026-11-27T07:00`, with a zone or without."""
    for start in phrase.past_optional(0, phrase.words.at):
        if start + 1 == phrase.end and "t" in phrase.token(start):
            try:
                found = dt.datetime.fromisoformat(phrase.token(start).upper())
            except ValueError:
                continue
            if found.tzinfo is None:
                yield _Said(Days((found.date(),)), TimeOfDay(found.time()))
            else:
                yield _Said(exact=found.astimezone(now.tzinfo))


def _waits(phrase: Phrase) -> Iterator[_Said]:
    """`in 10 minutes`, `10 minutes from now`, and a length alone, as models write it."""
    for start in phrase.past_optional(0, phrase.words.in_):
        for length, behind in lengths(phrase, start):
            for end in phrase.past_optional(behind, phrase.words.from_now):
                if end == phrase.end and length.is_sane:
                    yield _Said(wait=length)


def _parts_of(phrase: Phrase, place: int, today: dt.date | None = None) -> Iterator[_Said]:
    """A day, a time and a part of the day, in any order, to the end of the text."""
    yield from _more_of(phrase, place, today, _Said())


def _more_of(phrase: Phrase, place: int, today: dt.date | None, said: _Said) -> Iterator[_Said]:
    if place == phrase.end:
        if said != _Said():
            yield said
        return
    if said.days is None and today is not None:
        for found, behind in days(phrase, place, today):
            if not (found.part and said.part):
                yield from _more_of(phrase, behind, today, replace(said, days=found, part=found.part or said.part))
    if said.clock is None:
        for start in phrase.past_optional(place, phrase.words.at):
            for clock, behind in clocks(phrase, start):
                yield from _more_of(phrase, behind, today, replace(said, clock=clock))
    if not said.part:
        for name, part in phrase.words.parts.items():
            for behind in phrase.behind(place, (name,)):
                yield from _more_of(phrase, behind, today, replace(said, part=part))


# ------------------------------------------------------------------------------------------- from words to moments


def _resolved(said: _Said, text: str, now: dt.datetime, waking: bool) -> Moment:
    if said.wait is not None:
        exact = not (said.wait.days or said.wait.months)
        return Moment(_waited(said.wait, now), wait_s=float(said.wait.seconds) if exact else None)
    if said.exact is not None:
        return _first_after(now, [said.exact], text)
    repeat = None if said.days is None else said.days.repeat
    if repeat is not None and repeat.unit in SECONDS:
        return _by_the_clock(repeat, said, text, now)
    if said.clock is None:
        said = _with_default_time(said, text, now)
        assert said.clock is not None
    walls = [*_walls(said, now, waking)]
    if said.shift is not None:
        return _first_after(now, _moved(said, now, walls), text)
    if not walls:
        raise AnswerError(f"{text!r} does not exist", "There is no such time. When do you mean?")
    moments = [moment for wall in walls for moment in moments_of(wall, _zone(now))]
    moment = _first_after(now, moments, text, fixed=repeat is None)
    wanted = {wall.time() for wall in walls}
    meant = None if moment.at.time() in wanted else min(wanted)
    if repeat is not None:
        time = meant or moment.at.time()
        return Moment(moment.at, replace(repeat, time=time.replace(fold=0)), meant)
    return Moment(moment.at, None, meant)


def _zone(now: dt.datetime) -> dt.tzinfo:
    assert now.tzinfo is not None, "the moment now comes with its zone"
    return now.tzinfo


def _waited(length: Length, now: dt.datetime) -> dt.datetime:
    """Days and months are counted on the calendar: `in a week` is at the same time of day."""
    wall = naive(now)
    day = shifted(wall.date(), length)
    moments = moments_of(dt.datetime.combine(day, wall.time()), _zone(now))
    start = now if day == wall.date() else moments[0]
    return later(start, float(length.seconds))


def _by_the_clock(repeat: Repeat, said: _Said, text: str, now: dt.datetime) -> Moment:
    first = repeat.after(now, now)
    if said.clock is not None or said.part or seconds_between(now, first) < SHORTEST_REPEAT_S:
        raise AnswerError(f"{text!r} is not a repeat that I know", "How often, and from when?")
    return Moment(first, repeat)


def _with_default_time(said: _Said, text: str, now: dt.datetime) -> _Said:
    """A time where none was said: that of now for `in a week`, the custom one for a part of the day."""
    if said.part:
        return replace(said, clock=TimeOfDay(dt.time(DEFAULTS[said.part])), part="")
    if said.days is not None and said.days.timed and said.days.repeat is None:
        return replace(said, clock=TimeOfDay(naive(now).time().replace(microsecond=0)))
    raise AnswerError(f"{text!r} has no time of day", WHAT_TIME)


def _walls(said: _Said, now: dt.datetime, waking: bool) -> Iterator[dt.datetime]:
    """The clock times that were meant, the earliest first."""
    assert said.clock is not None
    today, clock = naive(now).date(), said.clock
    named = said.days is not None and said.days.dates != (today,) and not said.days.repeat
    dates = tuple(today + dt.timedelta(days=n) for n in range(3)) if said.days is None else said.days.dates
    if clock.midnight and said.days is not None and not said.part and said.days.repeat is None:
        raise AnswerError("midnight of which day is not said", "At the beginning or at the end of that day?")
    for date in dates:
        for time, later_night in _times(said, named, waking):
            nights = _nights_of_repeat(said) if later_night and _is_repeat(said) else later_night
            if nights and now.hour < 5 and date == today:
                yield dt.datetime.combine(date, time)
            yield dt.datetime.combine(date, time) + dt.timedelta(days=nights if said.days is not None else 0)


def _nights_of_repeat(said: _Said) -> int:
    """A night that begins on one day and ends on the next is of no day alone, unless it is every night."""
    assert said.days is not None and said.days.repeat is not None
    if len(said.days.repeat.weekdays) in range(1, 7):
        raise AnswerError("the night belongs to two days", "In the night before that day, or after it?")
    return 0


def _times(said: _Said, named: bool, waking: bool) -> list[tuple[dt.time, int]]:
    """Times of day, and how many days later than the day that was named: one for `tonight at 1`."""
    assert said.clock is not None
    clock, part = said.clock, said.part
    time, hour = clock.time, clock.time.hour
    if not clock.open_half:
        if part == "night" and (hour < 6 or hour >= 17):
            return [(time, int(hour < 6))]
        if not part or hour in FITS.get(part, ()):
            return [(time, 0)]
    elif part == "night":
        late = 5 <= hour < 12
        return [(time.replace(hour=hour + 12 if late else hour % 12), int(not late))]
    elif part:
        fitting = [h for h in (hour % 12, hour % 12 + 12) if h in FITS[part] and (h or part != "morning")]
        if fitting:
            return [(time.replace(hour=fitting[0]), 0)]
    else:
        return [(time.replace(hour=h), 0) for h in _likely(hour, named or _is_repeat(said), waking)]
    raise AnswerError(f"{time:%H:%M} is not in the {part}", "In the morning or in the afternoon?")


def _is_repeat(said: _Said) -> bool:
    return said.days is not None and said.days.repeat is not None


def _likely(hour: int, named: bool, waking: bool) -> list[int]:
    """The hours of the day, the earlier first, that an hour without am or pm may mean."""
    early, late = hour % 12, hour % 12 + 12
    if waking and hour in WAKING:
        return [early]
    if named:
        return [hour] if hour in WORKING or (waking and hour == 4) else [late]
    return [early, late] if waking else [h for h in (early, late) if h in AWAKE]


def _moved(said: _Said, now: dt.datetime, walls: Iterable[dt.datetime]) -> Iterator[dt.datetime]:
    """Each of the times, with the length before or after it."""
    assert said.shift is not None
    length, sign = said.shift
    for wall in walls:
        day = shifted(wall.date(), Length(sign * length.months, sign * length.days))
        for moment in moments_of(dt.datetime.combine(day, wall.time()), _zone(now)):
            yield later(moment, sign * float(length.seconds))


def _first_after(now: dt.datetime, moments: Iterable[dt.datetime], text: str, fixed: bool = True) -> Moment:
    all_of = sorted(moments, key=lambda one: one.astimezone(dt.UTC))
    for moment in all_of:
        if seconds_between(now, moment) > 0:
            return Moment(moment)
    raise TimeIsOver(text, all_of[-1]) if fixed and all_of else AnswerError(f"{text!r} does not come", WHEN)
