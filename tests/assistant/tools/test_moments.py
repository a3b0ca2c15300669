"""The law of times: a text is used as a whole or refused, and the moment that is stored is the one that is meant."""

import datetime as dt
import random
from zoneinfo import ZoneInfo

import pytest

from assistant.tools.durations import read_length, seconds_of
from assistant.tools.errors import AnswerError
from assistant.tools.moments import TimeIsOver, read_moment
from assistant.tools.repeats import Repeat
from assistant.tools.wall import moments_of, naive, seconds_between
from tests.assistant.tools.time_cases import BLIND, FIELD, LATER, LENGTHS, OWN, STRANGERS

BERLIN = ZoneInfo("Europe/Berlin")
FRIDAY = dt.datetime(2026, 11, 20, 18, tzinfo=BERLIN)
ZONES = [
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns", "Africa/Casablanca",
    "Pacific/Apia", "Asia/Tehran", "America/Santiago", "UTC",
]  # fmt: skip


def meaning(text, now=FRIDAY, **how):
    try:
        found = read_moment(text, now, **how)
    except TimeIsOver:
        return "over"
    except AnswerError as error:
        assert error.say and error.say[0].isupper() and error.say[-1] in ".?" and repr(text) not in error.say
        return "?"
    return ("each " if found.repeat else "") + str(naive(found.at)).removesuffix(":00")


@pytest.mark.parametrize(("text", "meant"), FIELD + BLIND + LATER + STRANGERS + OWN, ids=lambda value: str(value)[:40])
def test_a_time_means_what_people_mean(text, meant):
    assert meaning(text) == meant


@pytest.mark.parametrize(("text", "seconds"), LENGTHS)
def test_a_length_is_read_whole_or_asked_about(text, seconds):
    if seconds is None:
        with pytest.raises(AnswerError) as asked:
            read_length(text)
        assert asked.value.say.endswith(("?", "."))
    else:
        assert seconds_of(text) == seconds


def test_a_bare_number_is_asked_about():
    with pytest.raises(AnswerError) as asked:
        seconds_of("10 timer")
    assert asked.value.say == "10 seconds, minutes or hours?"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("7", "2026-11-21 07:00"), ("9:15", "2026-11-21 09:15"), ("11", "2026-11-20 23:00"), ("4", "2026-11-21 04:00"),
     ("5 tomorrow", "2026-11-21 05:00"), ("3 tomorrow", "2026-11-21 15:00"), ("7 pm", "2026-11-20 19:00")],
)  # fmt: skip
def test_an_alarm_wakes_in_the_morning(text, meant):
    assert meaning(text, waking=True) == meant


def test_days_are_counted_from_the_day_on_which_it_is_said():
    monday = dt.datetime(2026, 11, 16, 9, tzinfo=BERLIN)
    assert meaning("on friday at 5 pm", monday) == meaning("this friday at 5 pm", monday) == "2026-11-20 17:00"
    assert meaning("next friday at 5 pm", monday) == "2026-11-27 17:00"
    assert meaning("in a month", dt.datetime(2027, 1, 31, 9, tzinfo=BERLIN)) == "2027-02-28 09:00"
    late = dt.datetime(2026, 11, 21, 0, 30, tzinfo=BERLIN)
    assert meaning("tonight at 1", late) == "2026-11-21 01:00"
    assert meaning("tonight at 8", late) == "2026-11-21 20:00"
    assert meaning("tonight", dt.datetime(2026, 11, 20, 21, tzinfo=BERLIN)) == "over"


# ------------------------------------------------------------------------------------ when clocks are moved


@pytest.mark.parametrize(
    ("now", "text", "rings", "meant"),
    [
        ((2026, 10, 24, 22), "7 am", "2026-10-25T07:00:00+01:00", None),
        ((2027, 3, 27, 22), "7 am", "2027-03-28T07:00:00+02:00", None),
        ((2027, 3, 27, 22), "2:30 am", "2027-03-28T03:30:00+02:00", dt.time(2, 30)),
        ((2026, 10, 24, 22), "2:30 am", "2026-10-25T02:30:00+02:00", None),
        ((2026, 10, 24, 22), "in 8 hours", "2026-10-25T05:00:00+01:00", None),
        ((2026, 10, 24, 22), "in a day", "2026-10-25T22:00:00+01:00", None),
        ((2027, 3, 27, 22), "30 minutes before 3 am", "2027-03-28T01:30:00+01:00", None),
        ((2027, 3, 27, 22), "every day at 2:30 am", "2027-03-28T03:30:00+02:00", dt.time(2, 30)),
    ],
)
def test_the_wall_clock_wins_when_clocks_are_moved(now, text, rings, meant):
    found = read_moment(text, dt.datetime(*now, tzinfo=BERLIN), waking=True)
    assert (found.at.isoformat(), found.meant) == (rings, meant)


def test_a_repeat_goes_on_at_its_own_time_behind_a_day_that_lacks_it():
    first = read_moment("every day at 2:30 am", dt.datetime(2027, 3, 27, 22, tzinfo=BERLIN))
    second = first.repeat.after(first.at, first.at)
    assert second.isoformat() == "2027-03-29T02:30:00+02:00"


@pytest.mark.parametrize("zone", ZONES)
def test_a_repeat_comes_on_each_of_its_days_for_three_years(zone):
    now = dt.datetime(2026, 3, 1, 12, tzinfo=ZoneInfo(zone))
    at = read_moment("every weekday at 2:15 am", now)
    rule = at.repeat
    assert Repeat.from_rule(rule.rule) == rule
    seen, last = [at.at], at.at
    while len(seen) < 780:
        last = rule.after(last, last)
        assert seconds_between(seen[-1], last) > 0
        seen.append(last)
    days = [moment.date() for moment in seen]
    wanted = [day for n in range(1100) if (day := days[0] + dt.timedelta(days=n)).weekday() < 5]
    assert days == wanted[:780]


# ------------------------------------------------------------------------------------------ random texts

LEADS = ["", "at ", "on ", "by "]
DAYS = ["today", "tomorrow", "on monday", "next friday", "this sunday", "on the 3rd", "on july 4", "in two weeks",
        "the day after tomorrow", "2027-02-28", "every weekday", "every day", "every monday and friday",
        ""]  # fmt: skip
TIMES = ["noon", "midnight", "7", "7 am", "11:45 pm", "half past six", "quarter to 12", "19 30", "836 pm",
         "seven thirty", "five o'clock", "02:30", "2:30 am", "20 minutes past 4 pm", ""]  # fmt: skip
PARTS = ["", "", "", "in the morning", "in the evening", "at night", "tonight"]
LONGS = ["in {n} minutes", "in half an hour", "{n} hours from now", "{n} minutes before 5 pm", "an hour after noon",
         "in 1 hour and {n} minutes", "every {n} hours", "{n} days from now"]  # fmt: skip
JUNK = ["not", "or", "dinner", "and", "maybe", "17", "no", "except", "purple", "of", "2", "at", "the", "until", "5:77"]


def random_text(rng):
    """A text that the grammar could have made, and in half the cases something done to it."""
    if rng.random() < 0.3:
        text = rng.choice(LONGS).format(n=rng.randint(1, 90))
    else:
        things = [rng.choice(DAYS), rng.choice(LEADS) + rng.choice(TIMES), rng.choice(PARTS)]
        rng.shuffle(things)
        text = " ".join(thing for thing in things if thing)
    words = text.split()
    for _ in range(rng.choice([0, 0, 1, 2])):
        place = rng.randrange(len(words) + 1)
        match rng.randrange(4):
            case 0:
                words.insert(place, rng.choice(JUNK))
            case 1 if words:
                del words[place % len(words)]
            case 2 if words:
                words[place % len(words)] = rng.choice(JUNK)
            case _:
                words.insert(place, "".join(rng.choice("abcxyz0159:.,-'") for _ in range(rng.randint(1, 5))))
    return " ".join(words)


@pytest.mark.parametrize("zone", ZONES)
def test_random_texts_are_used_as_a_whole_or_refused(zone):
    """2,000 texts over ten zones, at moments that jump through six years and over every change of clocks."""
    rng, read, zone_ = random.Random(zone), 0, ZoneInfo(zone)
    for _ in range(200):
        now = dt.datetime.fromtimestamp(rng.randrange(1_760_000_000, 1_950_000_000), zone_)
        text = random_text(rng)
        try:
            found = read_moment(text, now, waking=rng.random() < 0.5)
        except AnswerError as error:
            assert error.say
            continue
        read += 1
        assert seconds_between(now, found.at) > 0 and found.at.tzinfo is zone_, text
        assert found.at in moments_of(naive(found.at), zone_), (text, "clocks show it")
        for word in ("purple", "dinner", "not", "or", "except", "maybe", "until"):
            assert word not in text.split(), "a word that means something else was left over"
        with pytest.raises(AnswerError):
            read_moment(f"{text} zxqv", now)
        with pytest.raises(AnswerError):
            read_moment(f"zxqv {text}", now)
        if found.repeat is not None:
            assert Repeat.from_rule(found.repeat.rule) == found.repeat
            after = found.repeat.after(found.at, found.at)
            assert seconds_between(found.at, after) >= 60, text
    assert read > 60, "most of what is made can be read"
