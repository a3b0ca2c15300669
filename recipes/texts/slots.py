"""Values as people say them: lengths of time, times of day, sums, things to buy, things to do."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

import datetime as dt
from typing import Final

from assistant.tools import answers
from recipes.texts.scene import Scene, Unusable


def duration(s: Scene) -> str:
    """A length of time as people say it."""
    if s.chance(0.12):
        return s.rng.choice(
            ["an hour", "half an hour", "an hour and a half", "a minute", "a quarter of an hour", "two and a half hours",
             "one hour", "one minute", "two and a half minutes", "three quarters of an hour"]
        )  # fmt: skip
    unit = s.value("unit_time")
    n = (
        s.whole(2, 12)
        if unit == "hours"
        else s.rng.choice([s.whole(2, 20), s.whole(2, 59), 5 * s.whole(1, 12), s.whole(2, 99)])
    )
    text = f"{s.number(n)} {unit}"
    if unit == "hours" and s.chance(0.3):
        text += f" and {s.number(s.whole(2, 59))} minutes"
    elif unit == "minutes" and s.chance(0.1):
        text += f" and {s.number(s.whole(2, 59))} seconds"
    return text


def short_duration(s: Scene) -> str:
    """A length of time as it stands before a noun: `thirty minute`, `one hour`."""
    unit = s.rng.choice(["second", "minute", "minute", "minute", "hour"])
    n = s.whole(1, 12) if unit == "hour" else s.rng.choice([s.whole(1, 20), s.whole(2, 99), 5 * s.whole(1, 12)])
    return f"{s.number(n)} {unit}"


def time_of_day(s: Scene) -> str:
    """A time of day as people say it."""
    hour = s.number(s.whole(1, 12))
    minute = s.rng.choice([15, 30, 45, s.whole(10, 59)])
    half = s.rng.choice([" a m", " p m", " in the morning", " in the evening", "", ""])
    shape = s.rng.random()
    if shape < 0.2:
        return f"{hour} o'clock" + s.rng.choice(["", half])
    if shape < 0.35:
        return f"half past {hour}"
    if shape < 0.5:
        return s.rng.choice(["quarter past", "quarter to", "a quarter past"]) + f" {hour}"
    if shape < 0.55:
        return s.rng.choice(["noon", "midnight"])
    if shape < 0.7 and half:
        return hour + half
    if shape < 0.75:
        return f"{hour} oh {s.number(s.whole(1, 9))}{half}"
    return f"{hour} {s.number(minute)}{half}"


def when(s: Scene) -> str:
    """When to be reminded."""
    return s.rng.choice(
        [f"at {time_of_day(s)}", f"in {duration(s)}", "tomorrow", f"tomorrow at {time_of_day(s)}", f"on {s.value('day')}",
         f"on {s.value('day')} at {time_of_day(s)}", "tonight", f"tomorrow {s.value('part')}", f"at {time_of_day(s)} {s.rng.choice(['tomorrow', 'today'])}"]
    )  # fmt: skip


def relative_day(s: Scene) -> str:
    """A day that is not today."""
    return s.rng.choice(
        [
            "tomorrow",
            "tomorrow",
            "yesterday",
            "the day after tomorrow",
            s.value("day"),
            f"on {s.value('day')}",
            f"next {s.value('day')}",
        ]
    )


def some_day(s: Scene) -> dt.date:
    return dt.date(2026, 1, 1) + dt.timedelta(days=s.rng.randrange(1500))


OPERATORS: Final = {"plus": "+", "minus": "-", "times": "*", "divided by": "/"}


def spoken_sum(s: Scene) -> str:
    """`twelve times eight`, sometimes longer or with a point."""
    big = s.rng.choice([20, 100, 100, 1000])
    words = (
        s.number(s.whole(0, big))
        if not s.chance(0.05)
        else f"{s.number(s.whole(1, 99))} point {s.number(s.whole(1, 9))}"
    )
    for _ in range(1 if s.chance(0.9) else 2):
        operator = s.rng.choice(list(OPERATORS))
        words += f" {operator} {s.number(s.whole(1, 100 if s.chance(0.7) else 12))}"
    return words


def said_sum(expression: str) -> str:
    """`12 * 8` in words for a reply: `12 times 8`."""
    for word, sign in OPERATORS.items():
        expression = expression.replace(f" {sign} ", f" {word} ")
    return expression


def said_time(s: Scene, time: str) -> str:
    """The time that the clock understands in a request, at some moment of the day."""
    try:
        return answers.clock(answers.find_time(time, dt.time(s.rng.randrange(24), s.rng.randrange(60))))
    except answers.AnswerError as error:
        raise Unusable(time) from error


YOURS: Final = {"my": "your", "me": "you", "i": "you", "us": "you", "our": "your"}


def turned(text: str) -> str:
    """`call my mother` → `call your mother`."""
    return " ".join(YOURS.get(word, word) for word in text.split())


def task(s: Scene) -> str:
    """Something to be reminded of."""
    if s.chance(0.25):
        return f"{s.rng.choice(['call', 'meet', 'visit', 'write to', 'pick up', 'thank'])} {s.value('name')}"
    if s.chance(0.2):
        return f"{s.rng.choice(['buy', 'get', 'order'])} {s.value('item')}"
    return s.value("task")


def items(s: Scene) -> list[str]:
    """One to three things to buy. Three at once are single words, or their borders would be unclear."""

    def one() -> str:
        return s.word() if s.chance(0.2) else s.value("item")

    count = s.rng.choice([1, 1, 1, 2, 2, 3])
    out: list[str] = []
    while len(out) < count:
        item = one()
        if item not in out and (count < 3 or " " not in item):
            out.append(item)
    return out


def shown(things: list[str]) -> str:
    """`milk, eggs and bread`."""
    return things[0] if len(things) == 1 else ", ".join(things[:-1]) + f" and {things[-1]}"


def digits(s: Scene) -> str:
    """A code as people say it: `four two seven`, sometimes in pairs: `twenty two sixty`."""
    said = [s.number(s.rng.randrange(10)) for _ in range(s.rng.choice([2, 2, 3, 3, 4, 4, 4, 5, 6, 7]))]
    if s.chance(0.15):
        said = [s.number(s.whole(10, 99)) for _ in said[:3]]
    return " ".join(said)


def noted(s: Scene) -> str:
    """Something to write down, of any words."""
    if s.chance(0.15):
        whose = s.rng.choice(["the", "the", "my", f"my {s.value('relative')}'s", f"{s.value('name')}'s"])
        return f"{whose} {s.value('code')} {s.rng.choice(['is', 'is', 'is', 'is now', 'has changed to', 'was'])} {digits(s)}"
    who = s.rng.choice([s.value("name"), f"my {s.value('relative')}", f"the {s.word()}", f"the {s.value('item')}"])
    does = s.rng.choice(
        [f"needs {s.word()}", f"likes {s.value('item')}", f"is {s.word()}", f"comes on {s.value('day')}", f"costs {s.number(s.whole(2, 90))}",
         f"is in the {s.word()}", f"wants {s.word()} and {s.word()}", f"has a {s.word()}", f"starts at {s.number(s.whole(1, 12))}"]
    )  # fmt: skip
    return s.value("note") if s.chance(0.2) else f"{who} {does}"
