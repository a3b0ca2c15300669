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

from assistant.base.days import AROUND_EASTER, DAYS, FEASTS, MONTHS, NTH_WEEKDAYS
from assistant.base.units import SCALES, find_unit


class AnswerError(ValueError):
    """The request cannot be answered; the text is a sentence for the user."""


# ------------------------------------------------------------------------------------------- time and date


def clock(moment: dt.datetime | dt.time) -> str:
    """3:45 pm"""
    return f"{moment.hour % 12 or 12}:{moment.minute:02d} {'am' if moment.hour < 12 else 'pm'}"


def date(day: dt.date) -> str:
    """Friday, November 20, 2026"""
    return f"{DAYS[day.weekday()].capitalize()}, {MONTHS[day.month - 1].capitalize()} {day.day}, {day.year}"


def find_day(name: str, today: dt.date) -> dt.date:
    """The day that a word means: today, tomorrow, the next such weekday or feast, `July 4`. Raises AnswerError."""
    words = re.sub(r"\b(the|next|this|on|of|day after)\b|,", " ", name.lower())
    text = " ".join(words.split())
    offsets = {"": 0, "today": 0, "now": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
    if "day after tomorrow" in name.lower():
        return today + dt.timedelta(days=2)
    if "day before yesterday" in name.lower():
        return today - dt.timedelta(days=2)
    if text in offsets:
        return today + dt.timedelta(days=offsets[text])
    if text in DAYS:
        return today + dt.timedelta(days=(DAYS.index(text) - today.weekday() - 1) % 7 + 1)
    if text == "weekend":
        return find_day("saturday", today)
    if text in FEASTS:
        return _next(today, *FEASTS[text])
    if text in AROUND_EASTER or text in NTH_WEEKDAYS:
        return next(day for year in (today.year, today.year + 1) if (day := _moving(text, year)) >= today)
    if match := re.fullmatch(r"([a-z]+)(?: (\d{1,2})(?:st|nd|rd|th)?)?", text):
        number = [i for i, month_name in enumerate(MONTHS, 1) if month_name == match[1]]
        if number:
            return _next(today, number[0], int(match[2] or 1))
    raise AnswerError(f"I do not know the day {name!r}")


def days_until(name: str, today: dt.date) -> str:
    """35 days"""
    days = (find_day(name, today) - today).days
    return "1 day" if days == 1 else f"{days} days"


def _next(today: dt.date, month: int, day: int) -> dt.date:
    for year in range(today.year, today.year + 9):
        try:
            found = dt.date(year, month, day)
        except ValueError:
            continue
        if found >= today:
            return found
    raise AnswerError(f"{MONTHS[month - 1].capitalize()} has no day {day}")


def _moving(feast: str, year: int) -> dt.date:
    if feast in AROUND_EASTER:
        return _easter(year) + dt.timedelta(days=AROUND_EASTER[feast])
    month, weekday, which = NTH_WEEKDAYS[feast]
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


_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm|a\.m\.|p\.m\.)?")


def find_time(text: str, now: dt.time | None = None) -> dt.time:
    """The time of day meant by `7:30 am`, `7`, `noon` or `19:30`. Without am or pm: the next such time after `now`
    (before noon if `now` is None). Raises AnswerError."""
    lower = text.lower().strip()
    if lower in ("noon", "midday"):
        return dt.time(12)
    if lower == "midnight":
        return dt.time(0)
    match = _TIME.search(lower)
    if not match or int(match[1]) > 23 or int(match[2] or 0) > 59:
        raise AnswerError(f"I do not know the time {text!r}")
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").replace(".", "")
    if half and hour <= 12:
        return dt.time(hour % 12 + (12 if half == "pm" else 0), minute)
    if "evening" in lower or "afternoon" in lower or "night" in lower:
        return dt.time(hour % 12 + 12, minute)
    if half or hour > 12 or hour == 0 or now is None or "morning" in lower:
        return dt.time(hour % 24, minute)
    early, late = dt.time(hour % 12, minute), dt.time(hour % 12 + 12, minute)
    return late if early <= now < late else early


# ------------------------------------------------------------------------------------------------ durations

_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(second|minute|hour|day|week|sec|min)s?\b")


def seconds_of(duration: str) -> float:
    """Seconds in `1 hour 30 minutes`. Raises AnswerError when no duration is found."""
    parts = _DURATION.findall(duration.lower())
    if not parts:
        raise AnswerError(f"{duration!r} is not a length of time; say for example 5 minutes")
    short = {"sec": "second", "min": "minute"}
    return sum(float(value) * _UNITS[short.get(unit, unit)] for value, unit in parts)


def duration(seconds: float) -> str:
    """1 hour 30 minutes"""
    left = max(0, round(seconds))
    parts = []
    for unit, size in (("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}" + ("" if count == 1 else "s"))
    return " ".join(parts) or "0 seconds"


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


def listed(things: Sequence[str], none: str) -> str:
    """`milk, eggs`-like rows joined for reading aloud, or the text for an empty list."""
    return "; ".join(things) or none
