"""The values that a request gives to the tools that the small model knows by heart.

Pure: what was said, called and told in, schemas out. The small model knows units, timers, alarms and lists well; but
which of two numbers was wrong, what a result was and what stands on a list it gets wrong every tenth time. If the
words leave one value, or a few, it writes no other. The tool that it calls stays its own choice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from assistant.base.days import AROUND_EASTER, DAYS, FEASTS, MONTHS, NTH_WEEKDAYS
from assistant.base.units import SCALES, find_unit, unit_names_in
from assistant.contracts import Line, ToolCall
from llm_engine.toolcalls import Schemas

READ_OUT: Final = re.compile(r"^On your (.+) list: (.+)\.$")
"""How a reply says what is on a list (`recipes/texts/scenes_tools.py`)."""

_NUMBER: Final = r"\d+(?:\.\d+)?"
_NUMBERS: Final = re.compile(r"(?<![\d.:])\d{1,2}:\d{2}(?!\d)|-?(?<![\d.:])\d+(?:\.\d+)?(?![\d:])")
_SUM: Final = re.compile(rf"(?<![\d.])-?{_NUMBER}(?:\^{_NUMBER}|%?(?: (?:[-+*/^]|of) {_NUMBER})+)(?![\d.%])")
DAY: Final = re.compile(
    rf"\b(?:(?:the )?day after tomorrow|tomorrow|yesterday|{'|'.join((*DAYS, *AROUND_EASTER, *NTH_WEEKDAYS))}"
    rf"|{'|'.join(sorted(FEASTS, key=len, reverse=True))}|(?:{'|'.join(MONTHS)})(?: \d{{1,2}})?)\b",
    re.IGNORECASE,
)
_DURATION: Final = re.compile(
    rf"{_NUMBER} hours?(?: {_NUMBER} minutes?)?(?: {_NUMBER} seconds?)?|{_NUMBER} minutes?(?: {_NUMBER} seconds?)?"
    rf"|{_NUMBER} seconds?"
)
_TIME: Final = re.compile(r"(?<![\d:])(?:\d{1,2}:\d{2}(?: [ap]m)?|\d{1,2} [ap]m)\b")
NTH: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4}
_PLACE: Final = re.compile(rf"\b(?:the|very) ({'|'.join(NTH)}|last|middle)\b")
_IS_IT: Final = re.compile(r"\b(?:is it|it's|isn't|today|now|right)\b")

Values: TypeAlias = Mapping[str, Sequence[str]]


def as_said(declared: Schemas, lines: Sequence[Line]) -> Schemas:
    """The tools with the values that may be given, where what was said leaves only these."""
    at = max((at for at, line in enumerate(lines) if line.role == "user"), default=None)
    if at is None:
        return declared
    asked, before = lines[at].text, lines[:at]
    again = _again(asked, before)
    said = {name: _VALUES[name](asked, before) if name in _VALUES else {} for name in declared}
    found = {name: {**again, **{key: listed for key, listed in said[name].items() if listed}} for name in declared}
    return {name: _with(takes, found[name]) for name, takes in declared.items()}


def _with(takes: Mapping[str, object], values: Values) -> Mapping[str, object]:
    properties = takes.get("properties")
    if not isinstance(properties, Mapping):
        return takes
    given = {
        key: {**properties[key], "enum": [*listed]} for key, listed in values.items() if key in properties
    }
    required = takes.get("required")  # a client's schema may hold anything
    named = required if isinstance(required, Sequence) and not isinstance(required, str) else ()
    return {**takes, "properties": {**properties, **given}, "required": [*named, *given.keys() & {"day"}]}


def _again(asked: str, before: Sequence[Line]) -> Values:
    """The values of the last call with another number."""
    return {key: right for key, value in _last_call(before).items() if (right := _put_right(value, asked))}


def _sums(asked: str, before: Sequence[Line]) -> Values:
    """The sum that was said whole."""
    whole, numbers = _SUM.findall(asked), _NUMBERS.findall(asked)
    return {"expression": whole} if len(whole) == 1 and len(_NUMBERS.findall(whole[0])) == len(numbers) else {}


def _units(asked: str, before: Sequence[Line]) -> Values:
    """The measure and the units that were said, in this line or the last exchanges."""
    numbers, here = _NUMBERS.findall(asked), _units_meant(asked)
    if len({*map(find_unit, here)}) != 2 or not numbers:
        here = _units_meant("\n".join((asked, *(line.text for line in before[-12:]))))
    return {"unit": here, "to": here, "value": numbers if len(numbers) == 1 else []}


def _units_meant(text: str) -> list[str]:
    """The units that a text names as they are written in a call, without `degrees`, and by their own names; with one
    scale of temperature the other, for there are two."""
    names = [name.removeprefix("degrees ") for name in unit_names_in(text)]
    own = [find_unit(name) for name in names]
    scales = [unit for kind, _ in own if kind == "temperature" for unit in SCALES[kind]]
    return [*dict.fromkeys((*names, *(unit for _, unit in own), *scales))]


def _durations(asked: str, before: Sequence[Line]) -> Values:
    """The one that was said; beside it may stand a number of the last one."""
    held, found = _last_call(before).get("duration", ""), [*dict.fromkeys(_DURATION.findall(asked))]
    others = {*_NUMBERS.findall(asked)} - {*_NUMBERS.findall(f"{held} {' '.join(found)}")}
    return {"duration": found} if len(found) == 1 and not others else {}


def _times(asked: str, before: Sequence[Line]) -> Values:
    """The one that was said, in the half of the day that was said before."""
    found = [*dict.fromkeys(_TIME.findall(asked))]
    if not len(found) == len(_NUMBERS.findall(asked)) == 1 or ":" not in found[0]:
        return {}
    half = _last_call(before).get("time", "").rpartition(" ")[2]
    return {"time": [*found, f"{found[0]} {half}"] if half in ("am", "pm") and " " not in found[0] else found}


def _days(asked: str, before: Sequence[Line]) -> Values:
    found = [*dict.fromkeys(day.removeprefix("the ") for day in DAY.findall(asked))]
    return {"day": found} if len(found) == 1 and {*_NUMBERS.findall(asked)} <= {*_NUMBERS.findall(found[0])} else {}


def _dates(asked: str, before: Sequence[Line]) -> Values:
    """Which day's date; `is it Friday today` asks for today's."""
    return {} if _IS_IT.search(asked) else _days(asked, before)


def _taken_off(asked: str, before: Sequence[Line]) -> Values:
    """The listed thing that was named, if it is one; otherwise the thing at the place that was named."""
    items = _on_list(asked, before)
    said = [item for item in items if f" {item.lower()} " in f" {asked.lower()} "]
    if not said and items and len(places := _PLACE.findall(asked.lower())) == 1:
        at = {"last": -1, "middle": len(items) // 2}.get(places[0], NTH.get(places[0], 0))
        said = [items[at]] if at < len(items) else []
    return {"items": said if len(said) == 1 else []}


_VALUES: Final[Mapping[str, Callable[[str, Sequence[Line]], Values]]] = {
    "calculate": _sums,
    "convert": _units,
    "set_timer": _durations,
    "change_timer": _durations,
    "set_alarm": _times,
    "list_remove": _taken_off,
    "get_date": _dates,
    "days_until": _days,
}


def _last_call(lines: Sequence[Line]) -> dict[str, str]:
    return next((_arguments(call) for line in reversed(lines) for call in reversed(line.calls)), {})


def _arguments(call: ToolCall) -> dict[str, str]:
    """None of a call that a client wrote otherwise."""
    try:
        given = json.loads(call.arguments)
    except ValueError:
        return {}
    return {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def _put_right(value: str, asked: str) -> list[str]:
    """A value in which one of the numbers is another: `12 * 8`, `not 8 9`, `12 * 9`. None if it does not say which."""
    held, said = _NUMBERS.findall(value), [*dict.fromkeys(_NUMBERS.findall(asked))]
    if len(said) == 2 and not any(":" in number for number in said):  # `9 not 8` of `8:00 pm`
        said = [f"{n}:00" if any(":" in number for number in held) else n for n in said]
    wrong, right = [n for n in said if n in held], [n for n in said if n not in held]
    if len(wrong) != 1 or len(right) != 1 or (":" in wrong[0]) != (":" in right[0]):
        return []
    if ":" in wrong[0] and re.search(r"\d [ap]m\b", asked):
        return []  # another half of the day: the whole time is another
    places = [found.span() for found in _NUMBERS.finditer(value) if found[0] == wrong[0]]
    return [f"{value[:begin]}{right[0]}{value[end:]}" for begin, end in places]


def _on_list(asked: str, lines: Sequence[Line]) -> list[str]:
    """The known items of the list that is spoken of; of the last list if none is named."""
    lists: dict[str, list[str]] = {}
    name = "shopping"
    for line in lines:
        if line.role == "assistant" and (read := READ_OUT.match(line.text)):
            name = read[1]
            lists[name] = read[2].split(", ")
        for call in line.calls:
            given = _arguments(call)
            name = given.get("list", "shopping") if call.name.startswith("list_") else name
            changed, items = given.get("items", "").split(", "), lists.get(name, [])
            if call.name == "list_add":
                lists[name] = [*items, *changed]
            elif call.name == "list_remove":
                lists[name] = [item for item in items if item not in changed]
            elif call.name == "list_clear":
                lists.pop(name, None)
    return lists.get(next((it for it in lists if f" {it} list" in f" {asked}"), name), [])
