"""What the tools that a small model knows by heart may be called with, by the words that were said.

Pure: what was said, called and told in, schemas out. The small model knows sums, units, timers, alarms and lists well;
but which of two numbers was wrong, what a result was and what stands last on a list it gets wrong every tenth time,
and now and then it takes a number from long ago. Where the words leave one way, or a few, no other is written. A larger
model knows better and is left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from assistant.base.days import AROUND_EASTER, DAYS, FEASTS, MONTHS, NTH_WEEKDAYS
from assistant.base.units import SCALES, find_unit, unit_names_in, units_in
from assistant.contracts import Line, ToolCall
from assistant.llm.tool_retrieval import words_of
from llm_engine.toolcalls import Schemas

RECKONS = words_of(
    "add cubed divide divided double doubled doubling fifth fourth half halfway halve halved halving itself minus "
    "multiplied multiply pair percent plus power quarter reverse root round split square squared squaring subtract "
    "tenth third times treble triple twice way"
)
"""Of what is calculated with one number, or the last result."""
PUTS_RIGHT = words_of(
    "actually again change correct instead make mean meant no not oops rather replace rid said say should sorry swap "
    "than wrong"
)
"""With one of these a line may put right what came before."""
COUNTS = words_of("answer away each left many more much share total")
"""… and beside what was told: `i got 48 more`."""
MORE = words_of("less more off take")
"""A line with one of these adds or takes away, whatever else it says."""
OF_ALARMS = words_of("alarm awake clock up wake waking")
OF_TIMERS = words_of("clock countdown hour minute second time timer timing")
OF_DICE, OF_COINS = (
    words_of("d6 dice die dots number pip roll rolled shake side sided sider throw"),
    words_of("coin flip head tail toss"),
)
ORDERS: Final = re.compile(
    r"(?:(?:and|can|could|go|hey|now|okay|please|quickly|so|well|will|would|you) )*"
    r"(?:activate|charge|click|close|connect|cook|flick|hire|lock(?! this)|mute|open|power|print|recharge|serve|shut"
    r"|unlock)\b"
)
"""What is asked of a machine or a person, and nothing that the assistant does."""
OF_SPELLING = words_of("d f l letter m n p r spell spelled spelling spelt spill word write written")
SPELLED: Final = re.compile(
    r"\bspell(?: out)? (?:(?:the (?:name|word)|an?|the) )*(?!(?:it|me|that|them|this|word)\b)([a-z][a-z'-]*)"
    r"(?=(?: (?:again|for me|please|to me))*[.?!]*$)"
)
"""One word to be spelled, without the article that an "uh" before it is heard as."""
OF_TIMES = words_of("clock hour late time")
OF_DATES = words_of(
    "calendar date day friday monday month saturday sunday thursday today tomorrow tuesday wednesday week weekday "
    "weekend year yesterday"
)
LATELY = 4
"""Exchanges back to which a request may reach without saying so."""
TIMES = {"triple": 3, "treble": 3, "thrice": 3, "quadruple": 4}
PARTS = {"third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10}
LAST, NTH = words_of("bottom end final last"), ("first", "second", "third", "fourth", "fifth")
KEEPS, SHOPPING = words_of("bar but except just keep leave only"), "shopping"
READ_OUT: Final = re.compile(r"^On your (.+) list: (.+)\.$")
"""How a reply says what is on a list (`recipes/texts/scenes_tools.py`)."""

_NUMBER: Final = r"\d+(?:\.\d+)?"
_NUMBERS: Final = re.compile(r"(?<![\d.:])\d{1,2}:\d{2}(?!\d)|-?(?<![\d.:])\d+(?:\.\d+)?(?![\d:])")
_TELLS: Final = re.compile(
    r"(?:i|i'm|i've|my|our|we|we're|we've) (?!(?:just )?(?:forg[eo]t|like|must|need|want|wish|would))"
)
_CANCELS: Final = re.compile(
    r"(?:(?:and|no|oh|okay|please|so|then) )*(?:cancel|get rid of|scrap)\b(?!.*\b(?:instead|make|set)\b)"
)
_ANOTHER: Final = re.compile(r"\b(?:another|as well|(?:a|one) (?:new|second) (?:one|timer))\b")
_ELSEWHERE: Final = re.compile(r"\btime\b.*\bin (?!(?:English|it|words)\b)[A-Z]")
_DATE: Final = re.compile(rf"\b(?:{'|'.join(MONTHS)}) \d{{1,2}}\b", re.IGNORECASE)
_SUM: Final = re.compile(rf"(?<![\d.])-?{_NUMBER}(?:\^{_NUMBER}|%?(?: (?:[-+*/^]|of) {_NUMBER})+)(?![\d.%])")
_TURNED: Final = re.compile(rf"^({_NUMBER}) ([-+*/]) ({_NUMBER})$")
_DOUBLED: Final = re.compile(rf"\b(?:double|twice) ({_NUMBER})(?! [-+*/^])")
_FROM: Final = re.compile(
    rf"\b(?:deduct|subtract|take)(?: ({_NUMBER})(?: (?:away|off))?\b| (?:it|that|this)\b)? from ({_NUMBER})(?! [-+*/^])"
)
_ARTICLE: Final = re.compile(r"^(?:a|an|her|his|my|our|some|the|their|your) ")
_INSTEAD: Final = re.compile(
    r"^(?:(?:actually|i (?:mean|meant|said)|it's|make (?:it|that)|no|oh|oops|sorry|that's|wait) )*(.+?)(?: and| but)? "
    r"(?:instead of|not|rather than) (.+)$"
)
_DAY: Final = re.compile(
    rf"\b(?:(?:the )?day after tomorrow|tomorrow|yesterday|{'|'.join((*DAYS, *AROUND_EASTER, *NTH_WEEKDAYS))}"
    rf"|{'|'.join(sorted(FEASTS, key=len, reverse=True))}|(?:{'|'.join(MONTHS)})(?: \d{{1,2}})?)\b",
    re.IGNORECASE,
)
_DURATION: Final = re.compile(
    rf"{_NUMBER} hours?(?: {_NUMBER} minutes?)?(?: {_NUMBER} seconds?)?|{_NUMBER} minutes?(?: {_NUMBER} seconds?)?"
    rf"|{_NUMBER} seconds?"
)
_TIME: Final = re.compile(r"(?<![\d:])(?:\d{1,2}:\d{2}(?: [ap]m)?|\d{1,2} [ap]m)\b")
_IS_IT: Final = re.compile(r"\b(?:is it|it's|isn't|today|now|right)\b")
_ALL_BUT: Final = re.compile(r"\b(?:all|everything) (?:bar|but|except)\b")
_REST_STAYS: Final = re.compile(r"\b(?:keep|leave|want) the (?:others?|rest)\b")
_NTH: Final = re.compile(rf"\b({'|'.join(NTH)}) (?:entry|item|one|thing)\b")


def unsaid(lines: Sequence[Line]) -> frozenset[str]:
    """Of the tools that it knows by heart those that need words which were not said: in the last exchanges
    two units to convert, two numbers to calculate with, an alarm or a timer to take back, a die to roll. What is
    measured otherwise than in time is no timer: `15 meters`. Who asks for the time asks for no date, who cancels sets
    nothing, and another timer leaves the first as it is."""
    users = [at for at, line in enumerate(lines) if line.role == "user"]
    last, lately = _exchanges(lines, 2), _exchanges(lines, LATELY)
    asked = lines[users[-1]].text if users else ""
    words, around, numbers = words_of(asked), words_of(lately), _numbers(asked)
    anew = bool(lines) and lines[-1].role == "user"  # nothing was done about it yet
    kinds = {find_unit(unit)[0] for unit in units_in(asked)}
    tells = _TELLS.match(asked) is not None and len(numbers) < 2 and not words & (PUTS_RIGHT | COUNTS)
    tells = tells and "%" not in asked
    few = tells or not numbers or len(_numbers(lately)) < 2
    bars = {
        ("convert",): _kinds_of_units(lately if kinds or (numbers and len(words) < 5) else last) < 2,
        ("set_timer", "change_timer"): bool(kinds) and "time" not in kinds and words.isdisjoint({"timer", "countdown"}),
        ("calculate",): few and words.isdisjoint(RECKONS),
        ("cancel_alarm", "list_alarms"): around.isdisjoint(OF_ALARMS),
        ("change_timer", "cancel_timer"): around.isdisjoint(OF_TIMERS),
        ("roll_die",): around.isdisjoint(OF_DICE),
        ("spell",): around.isdisjoint(OF_SPELLING),
        ("flip_coin",): around.isdisjoint(OF_COINS),
        ("list_add", "list_remove"): ORDERS.match(asked.lower()) is not None and "list" not in words,
        ("get_time",): _ELSEWHERE.search(asked) is not None,
        ("get_date",): bool(words & OF_TIMES) and not words & OF_DATES,
        ("set_alarm", "set_timer"): anew and _CANCELS.match(asked) is not None,
        ("change_timer",): _ANOTHER.search(asked) is not None,
    }
    return frozenset(tool for tools, bar in bars.items() if bar for tool in tools)


def _exchanges(lines: Sequence[Line], count: int) -> str:
    """All that was said, called and told in the last exchanges, a line each."""
    users = [at for at, line in enumerate(lines) if line.role == "user"]
    last = lines[users[-count] if len(users) >= count else 0 :]
    return "\n".join(text for line in last for text in (line.text, *(call.arguments for call in line.calls)))


def as_said(declared: Schemas, lines: Sequence[Line]) -> Schemas:
    """The tools with the values that may be given, where what was said leaves only these."""
    at = max((at for at, line in enumerate(lines) if line.role == "user"), default=None)
    if at is None:
        return declared
    asked, before = lines[at].text, lines[:at]
    found = {name: _VALUES[name](asked, before) for name in declared.keys() & _VALUES.keys()}
    return {name: _with(takes, found.get(name, {})) for name, takes in declared.items()}


def _with(takes: Mapping[str, object], values: Mapping[str, Sequence[str]]) -> Mapping[str, object]:
    properties = takes.get("properties")
    if not isinstance(properties, Mapping):
        return takes
    given = {
        key: {**properties[key], "enum": [*listed]} for key, listed in values.items() if listed and key in properties
    }
    required = [*_listed_in(takes.get("required")), *given.keys() & {"day", "label"}]  # said, they are not left out
    return {**takes, "properties": {**properties, **given}, "required": required} if given else takes


def _listed_in(names: object) -> Sequence[str]:
    """A client's schema may hold anything."""
    return names if isinstance(names, Sequence) and not isinstance(names, str) else ()


Values = Mapping[str, Sequence[str]]


def _spelled(asked: str, before: Sequence[Line]) -> Values:
    return {"word": SPELLED.findall(asked.lower())}


def _sums(asked: str, before: Sequence[Line]) -> Values:
    """A sum that was said whole; else one with the last result, or the last sum with another number."""
    name, given = _last_call(before)
    last = given.get("expression", "") if name == "calculate" else ""
    numbers, words = _numbers(asked), words_of(asked)
    whole, rest = _SUM.findall(asked), _FROM.search(asked)
    if len(whole) == 1 and len(_numbers(whole[0])) == len(numbers) and not PUTS_RIGHT & words - {"make"}:
        return {"expression": whole}
    if rest and rest[1] and len(numbers) == 2:
        return {"expression": [f"{rest[2]} - {rest[1]}"]}
    if len(numbers) == 1 and (doubled := _DOUBLED.findall(asked)):
        return {"expression": [f"2 * {doubled[0]}"]}
    if whole or len(numbers) > 2:
        return {}
    if len(numbers) == 2:
        puts_right = words & PUTS_RIGHT or len(words) < 5
        return {"expression": _put_right(last, asked) if puts_right and not words & RECKONS else []}
    results = _result(before) + _asked_on(before)
    if not results and not numbers:
        return {}
    if rest and results and numbers:
        return {"expression": [f"{numbers[0]} - {results[0]}"]}
    places = [found.span() for found in _NUMBERS.finditer(last)]
    anew = [f"{last[:begin]}{n}{last[end:]}" for n in numbers for begin, end in places]
    signs = [re.sub(" [-+*/] ", f" {sign} ", last) for sign in "+-*/" if last]
    signs += [
        _TURNED.sub(r"\3 \2 \1", last),
        *(way for n in _NUMBERS.findall(last) for way in (f"{n}^2", f"sqrt({n})")),
    ]
    if anew and words & PUTS_RIGHT - {"make"} and not words & (RECKONS | MORE) and "%" not in asked:
        return {"expression": [*dict.fromkeys(anew)]}
    alone = [way for n in (*results, *numbers) for way in (f"{n} / 2", f"2 * {n}", f"{n}^2", f"sqrt({n})")]
    both = [way for r in results for n in numbers for sign in "+-*/" for way in (f"{r} {sign} {n}", f"{n} {sign} {r}")]
    shares = [f"{n}% of {r}" for r in results for n in numbers]
    parts = [f"{n} / {part}" for n in (*results, *numbers) for word, part in PARTS.items() if word in words]
    parts += [f"{n} * {times}" for n in (*results, *numbers) for word, times in TIMES.items() if word in words]
    parts += [f"{n} - {r}" for r in results for n in _NUMBERS.findall(last)]
    return {"expression": [*filter(None, dict.fromkeys([*alone, *both, *shares, *parts, *anew, *signs]))]}


def _asked_on(lines: Sequence[Line]) -> list[str]:
    """The numbers of a request that was answered with a question: `160 plus what?`"""
    answers = bool(lines) and lines[-1].role == "assistant" and lines[-1].text.endswith("?")
    users = [line.text for line in lines if line.role == "user"]
    return _NUMBERS.findall(users[-1]) if answers and users else []


def _result(lines: Sequence[Line]) -> list[str]:
    """The number that a tool told last: what a sum makes, what a measure is in other units, days, a throw."""
    told = next((line.text for line in reversed(lines) if line.role == "tool"), "")
    return [number for number in _NUMBERS.findall(told.rpartition(" is ")[2]) if ":" not in number][:1]


def _units(asked: str, before: Sequence[Line]) -> Values:
    """The measure and the units that were said, in this line or the last exchange."""
    name, given = _last_call(before)
    numbers = _NUMBERS.findall(asked)
    here = _units_meant(asked)
    if len({*map(find_unit, here)}) != 2 or not numbers:
        here = _units_meant("\n".join((asked, _exchanges(before, LATELY - 1))))
    found: dict[str, Sequence[str]] = {"unit": here, "to": here}
    if name == "convert" and (right := _put_right(given.get("value", ""), asked)):
        found["value"] = right
    elif len(numbers) == 1 and not _asked_on(before):
        found["value"] = numbers
    return found


def _units_meant(text: str) -> list[str]:
    """The units that a text names as they are written in a call, without `degrees`, and by their own names; with one
    scale of temperature the other, for there are two."""
    names = [name.removeprefix("degrees ") for name in unit_names_in(text)]
    own = [find_unit(name) for name in names]
    scales = [unit for kind, _ in own if kind == "temperature" for unit in SCALES[kind]]
    return [*dict.fromkeys((*names, *(unit for _, unit in own), *scales))]


def _kinds_of_units(text: str) -> int:
    return len({*map(find_unit, _units_meant(text))})


def _durations(asked: str, before: Sequence[Line]) -> Values:
    """The one that was said, or the last one with another number."""
    _, given = _last_call(before)
    held = _NUMBERS.findall(given.get("duration", ""))
    found = [*dict.fromkeys(_DURATION.findall(asked))]
    others = {number for number in _NUMBERS.findall(asked) if number not in held} - {*_NUMBERS.findall(" ".join(found))}
    if len(found) == 1 and not others:
        return {"duration": found}
    return {"duration": _put_right(given["duration"], asked)} if held and not found else {}


def _labels(asked: str, before: Sequence[Line]) -> Values:
    """Which of the timers: one of those that were given a name here."""
    given = (_arguments(call).get("label", "") for line in before for call in line.calls if call.name == "set_timer")
    return {"label": [*dict.fromkeys(label for label in given if label and words_of(label) <= words_of(asked))]}


def _times(asked: str, before: Sequence[Line]) -> Values:
    """The one that was said, in the half of the day that was said before."""
    found = [*dict.fromkeys(_TIME.findall(asked))]
    if not len(found) == len(_NUMBERS.findall(asked)) == 1 or ":" not in found[0]:
        return {}
    half = _last_call(before)[1].get("time", "").rpartition(" ")[2]
    return {"time": [*found, f"{found[0]} {half}"] if half in ("am", "pm") and " " not in found[0] else found}


def _taken_off(asked: str, before: Sequence[Line]) -> Values:
    """What was said of what is on the list, or stands where it was said to; or all else: `keep plums, not the rest`."""
    items = _on_list(asked, before)
    low, words = f" {asked.lower()} ", words_of(asked)
    places = {item: at for item in items if (at := low.find(f" {item.lower()} ")) >= 0}
    said = sorted(places, key=lambda item: places[item]) or _placed(asked, words, items)
    others = words & words_of("other rest") or _ALL_BUT.search(asked)
    if said and others and not _REST_STAYS.search(asked):
        rest = [item for item in items if item not in said]
        return {"items": [", ".join(rest)] if rest else []}
    return {"items": said} if len(said) == 1 and (not words & KEEPS or _REST_STAYS.search(asked)) else {}


def _placed(asked: str, words: frozenset[str], items: Sequence[str]) -> list[str]:
    """What stands on a list where it was said to: `the last one`, `the second thing`, `the middle one`."""
    if (nth := _NTH.search(asked)) and (place := NTH.index(nth[1])) < len(items):
        return [items[place]]
    if words & LAST and not _NUMBERS.search(asked) and not words & {*NTH}:
        return [*items[-1:]]
    return [items[len(items) // 2]] if "middle" in words and len(items) % 2 else []


def _days(asked: str, before: Sequence[Line]) -> Values:
    found = [*dict.fromkeys(day.removeprefix("the ") for day in _DAY.findall(asked))]
    return {"day": found} if len(found) == 1 and not _numbers(asked) else {}


def _dates(asked: str, before: Sequence[Line]) -> Values:
    """Which day's date; `is it Friday today` asks for today's."""
    return {} if _IS_IT.search(asked) else _days(asked, before)


def _reminded(asked: str, before: Sequence[Line]) -> Values:
    """The last one with what was put right of it: `the doctor not the dentist`, `9 not 8`."""
    name, given = _last_call(before)
    if name != "set_reminder":
        return {}
    text, time = given.get("text", ""), given.get("time", "")
    half = re.search(r"\d [ap]m\b", asked)
    if not half and not words_of(asked) & OF_DATES and (right := _put_right(time, asked)):
        return {"time": right, "text": [text]}
    return {"text": other, "time": [time]} if (other := _said_instead(text, asked)) else {}


def _noted(asked: str, before: Sequence[Line]) -> Values:
    name, given = _last_call(before)
    text = given.get("text", "") if name == "note_add" else ""
    return {"text": _said_instead(text, asked) or _put_right(text, asked)}


_VALUES: Final[Mapping[str, Callable[[str, Sequence[Line]], Values]]] = {
    "calculate": _sums,
    "convert": _units,
    "set_timer": _durations,
    "change_timer": _durations,
    "cancel_timer": _labels,
    "set_alarm": _times,
    "list_remove": _taken_off,
    "get_date": _dates,
    "days_until": _days,
    "set_reminder": _reminded,
    "note_add": _noted,
    "spell": _spelled,
}


def _last_call(lines: Sequence[Line]) -> tuple[str, dict[str, str]]:
    """Name and arguments of the last call; no name where there was none."""
    for line in reversed(lines):
        for call in reversed(line.calls):
            return call.name, _arguments(call)
    return "", {}


def _arguments(call: ToolCall) -> dict[str, str]:
    """None of a call that a client wrote otherwise."""
    try:
        given = json.loads(call.arguments)
    except ValueError:
        return {}
    return {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def _numbers(text: str) -> list[str]:
    """Those to reckon with: the 6 of `July 6` is none."""
    return _NUMBERS.findall(_DATE.sub("", text))


def _put_right(value: str, asked: str) -> list[str]:
    """A value in which one of the numbers is another: `12 * 8`, `not 8 9`, `12 * 9`. None if it does not say which."""
    held, said = _NUMBERS.findall(value), [*dict.fromkeys(_NUMBERS.findall(asked))]
    if len(said) == 2 and not any(":" in number for number in said):  # `9 not 8` of `8:00 pm`
        said = [f"{n}:00" if any(":" in number for number in held) else n for n in said]
    wrong, right = [n for n in said if n in held], [n for n in said if n not in held]
    if len(wrong) != 1 or len(right) != 1 or (":" in wrong[0]) != (":" in right[0]):
        return []
    places = [found.span() for found in _NUMBERS.finditer(value) if found[0] == wrong[0]]
    return [f"{value[:begin]}{right[0]}{value[end:]}" for begin, end in places]


def _said_instead(value: str, asked: str) -> list[str]:
    """A text in which some words are others: `call the dentist`, `the doctor not the dentist`, `call the doctor`."""
    if found := _INSTEAD.match(asked):
        right, wrong = (_ARTICLE.sub("", words) for words in found.groups())
        at = re.search(rf"\b{re.escape(wrong)}\b", value)
        if at and len(wrong.split()) < 4 and len(right.split()) <= len(wrong.split()) + 1:
            return [f"{value[: at.start()]}{right}{value[at.end() :]}"]
    return []


def _on_list(asked: str, lines: Sequence[Line]) -> list[str]:
    """What is on the list that is spoken of, the last one if none is named: as far as it was told."""
    lists: dict[str, list[str]] = {}
    name = SHOPPING
    for line in lines:
        if line.role == "assistant" and (read := READ_OUT.match(line.text)):
            name = read[1]
            lists[name] = read[2].split(", ")
        for call in line.calls:
            given = _arguments(call)
            name = given.get("list", SHOPPING) if call.name.startswith("list_") else name
            changed, items = given.get("items", "").split(", "), lists.get(name, [])
            if call.name == "list_add":
                lists[name] = [*items, *changed]
            elif call.name == "list_remove":
                lists[name] = [item for item in items if item not in changed]
            elif call.name == "list_clear":
                lists.pop(name, None)
    return lists.get(next((it for it in lists if f" {it} list" in f" {asked}"), name), [])
