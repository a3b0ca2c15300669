"""The built-in tools' answers as pure functions of plain values: the moment is passed in, nothing is stored.

Results are phrases that can be spoken as they are. The small model was trained on exactly these, so changing a phrase
changes its training data. The code that stores timers, lists and notes calls these functions for the wording.
"""

from __future__ import annotations

import ast
import datetime as dt
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Final

from assistant.base.days import DAYS, MONTHS
from assistant.base.units import SCALES, find_unit
from assistant.tools import durations, moments
from assistant.tools.errors import AnswerError
from assistant.tools.repeats import Repeat
from assistant.tools.rows import ALARMS, TIMERS, Promise
from assistant.tools.wall import seconds_between

seconds_of: Final = durations.seconds_of
find_time: Final = moments.find_time
"""How the texts that the small model was trained on read lengths and times."""


# ------------------------------------------------------------------------------------------- time and date


def clock(moment: dt.datetime | dt.time) -> str:
    """3:45 pm"""
    return f"{moment.hour % 12 or 12}:{moment.minute:02d} {'am' if moment.hour < 12 else 'pm'}"


def date(day: dt.date) -> str:
    """Friday, November 20, 2026"""
    return f"{DAYS[day.weekday()].capitalize()}, {MONTHS[day.month - 1].capitalize()} {day.day}, {day.year}"


def find_day(name: str, today: dt.date) -> dt.date:
    """The day that a word means: today, tomorrow, the next such weekday or feast, `July 4`. Raises AnswerError."""
    text = _WHOLE.get(name.lower().strip(), name)
    if text.lower() in MONTHS:
        text = f"{text} 1"
    if (day := moments.read_day(text, today)) is None:
        raise AnswerError(f"I do not know the day {name!r}", "Which day is that?")
    return day


_WHOLE: Final = {"": "today", "now": "today"} | dict.fromkeys(("weekend", "the weekend", "this weekend"), "saturday")


def days_until(name: str, today: dt.date) -> str:
    """35 days"""
    days = (find_day(name, today) - today).days
    return "1 day" if days == 1 else f"{days} days"


# ------------------------------------------------------------------------------------------------ durations


def duration(seconds: float) -> str:
    """1 hour 30 minutes"""
    left = max(0, round(seconds))
    parts = []
    for unit, size in (("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}" + ("" if count == 1 else "s"))
    return " ".join(parts) or "0 seconds"


def day_of(moment: dt.datetime, now: dt.datetime) -> str:
    """`` for today, `tomorrow`, `Monday`, `Friday, December 4`, with the year if it is another one."""
    days = (moment.date() - now.date()).days
    name = DAYS[moment.weekday()].capitalize()
    if days in (0, 1):
        return "tomorrow" if days else ""
    if 1 < days < 7:
        return name
    year = "" if moment.year == now.year else f", {moment.year}"
    return f"{name}, {MONTHS[moment.month - 1].capitalize()} {moment.day}{year}"


def short_clock(moment: dt.datetime | dt.time) -> str:
    """5 pm, 5:30 pm, noon"""
    return "noon" if (moment.hour, moment.minute) == (12, 0) else clock(moment).replace(":00", "")


def when(moment: dt.datetime, now: dt.datetime, repeat: Repeat | None = None) -> str:
    """`at 5 pm`, `tomorrow at 8:30 am`, `on Friday at noon`, `every weekday at 8 am`."""
    if repeat is not None and repeat.time is not None:
        return f"{repeat} at {short_clock(repeat.time)}"
    if repeat is not None:
        return f"{repeat}, first {when(moment, now)}"
    day = day_of(moment, now)
    at = f"at {short_clock(moment)}"
    return at if not day else f"{day} {at}" if day == "tomorrow" else f"on {day} {at}"


def alarm(moment: dt.datetime, now: dt.datetime, repeat: Repeat | None = None) -> str:
    """`7:30 am, tomorrow`, `8:00 am, every weekday`"""
    if repeat is not None:
        time = moment if repeat.time is None else repeat.time
        return f"{clock(time)}, {repeat}"
    day = day_of(moment, now)
    return f"{clock(moment)}, {day}" if day else clock(moment)


def skipped(meant: dt.time | None, at: dt.datetime) -> str:
    """The words that are added where clocks skip the time that was meant."""
    return "" if meant is None else f"; there is no {clock(meant)} on that day, so it rings first at {clock(at)}"


def announcement(slot: str, row: Promise, now: dt.datetime) -> str:
    """The words for a promise that is due, and how late it is, if it is late."""
    late = seconds_between(row.at, now)
    if slot == TIMERS:
        name = f"{row.label} timer" if row.label else "timer"
        said = f"Your {name} is done."
    elif slot == ALARMS:
        said = f"It is {clock(now)}." if late < LATE_S else f"Your alarm was set for {clock(row.at)}."
    else:
        said = f"Remember: {row.text}."
    if late < LATE_S:
        return said
    day = day_of(row.at, now)
    return f"{said} That was due {f'on {day} ' if day else ''}at {clock(row.at)}, {roughly(late)} ago."


LATE_S: Final = 60
"""From here on it is said how late something is."""


def roughly(seconds: float) -> str:
    """2 hours, 25 minutes: the largest unit alone, from two of it on."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size or (unit == "minute"):
            count = round(seconds / size)
            return f"{count} {unit}" + ("" if count == 1 else "s")
    raise AssertionError("minutes end the list")


def timer(length: str, label: str = "") -> str:
    """pasta, 5 minutes"""
    return f"{label}, {length}" if label else length


def entry(text: str, when: str) -> str:
    """call Anna, at 5 pm"""
    return f"{text}, {when}"


# ---------------------------------------------------------------------------------------------- arithmetic

_BINARY: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def number(value: float) -> str:
    """96, 3.33, 0.00125: with as many digits as a person would say."""
    if not math.isfinite(value) or abs(value) >= 1e15:
        raise AnswerError("that number is too large for me")
    text = f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"
    if "e" in text:
        text = f"{value:.12f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def calculate(expression: str) -> str:
    """The value of `12 * 8`, `15% of 80`, `sqrt(81)` or `5^2`. Raises AnswerError."""
    text = re.sub(r"(\d+(?:\.\d+)?)\s*% of\s*", r"\1/100*", expression.lower())
    text = re.sub(r"(\d+(?:\.\d+)?)\s*%", r"(\1/100)", text).replace("^", "**").replace(",", "")
    if len(text) > 200:
        raise AnswerError("that is too long for me to calculate")
    try:
        return number(_value(ast.parse(text.strip(), mode="eval").body))
    except ZeroDivisionError:
        raise AnswerError("nothing can be divided by zero") from None
    except OverflowError:
        raise AnswerError("that number is too large for me") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
        if isinstance(error, AnswerError):
            raise
        raise AnswerError(f"I cannot calculate {expression}") from None


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and (abs(right) > 100 or (left < 0 and right != int(right))):
            raise AnswerError("that number is too large for me")
        return float(_BINARY[type(node.op)](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.func.id, len(node.args)) == ("sqrt", 1):
        inside = _value(node.args[0])
        if inside < 0:
            raise AnswerError("a negative number has no real square root")
        return math.sqrt(inside)
    raise ValueError(ast.dump(node))


# ---------------------------------------------------------------------------------------- units and letters

def _unit(name: str) -> tuple[str, str]:
    try:
        return find_unit(name)
    except LookupError:
        raise AnswerError(f"I do not know the unit {name}") from None


def convert(value: str, unit: str, to: str) -> str:
    """10 miles is 16.09 kilometers. Raises AnswerError for units that are unknown or do not match."""
    (kind, source), (other, target) = _unit(unit), _unit(to)
    if kind != other:
        raise AnswerError(f"{source} cannot be turned into {target}")
    try:
        amount = float(value.replace(",", ""))
    except ValueError:
        raise AnswerError(f"{value!r} is not a number") from None
    if kind == "temperature":
        if source == target:
            result = amount
        else:
            result = amount * 9 / 5 + 32 if source == "celsius" else (amount - 32) * 5 / 9
        return f"{number(amount)} degrees {source} is {number(result)} degrees {target}"
    result = amount * SCALES[kind][source] / SCALES[kind][target]
    return f"{_counted(amount, source)} is {_counted(result, target)}"


def _counted(amount: float, unit: str) -> str:
    singular = {"feet": "foot", "inches": "inch"}
    text = number(amount)
    if text != "1":
        return f"{text} {unit}"
    return f"1 {singular.get(unit) or unit.replace('s per', ' per').removesuffix('s' if 'per' not in unit else '')}"


def spell(word: str) -> str:
    """C, A, T"""
    letters = [letter.upper() for letter in word if letter.isalnum()]
    if not letters:
        raise AnswerError("there is no word to spell")
    return ", ".join(letters)


def joined(things: Sequence[str]) -> str:
    """milk, eggs and bread"""
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)


def counted(what: str, rows: Sequence[str]) -> str:
    """You have two timers: 5 minutes; and tea, 3 minutes."""
    if len(rows) == 1:
        return f"You have one {what}: {rows[0]}."
    number = {2: "two", 3: "three", 4: "four"}.get(len(rows), str(len(rows)))
    return f"You have {number} {what}s: {'; '.join(rows[:-1])}; and {rows[-1]}."


def listed(things: Sequence[str], none: str) -> str:
    """`milk, eggs`-like rows joined for reading aloud, or the text for an empty list."""
    return "; ".join(things) or none
