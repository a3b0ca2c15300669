"""Write the ears' text in the form that the small language model learnt to read. Pure.

An engine writes as its subtitles did (`Um, set a timer for twenty-five minutes.`, `It's $150 at 7 p.m.`); the small
model knows lower-case words without marks, numbers in digits, American spelling, and the names it knows in capitals.
Larger models read the engine's text as it is. Text that has this form already stays unchanged.
"""

from __future__ import annotations

import re
from typing import Final

from assistant.text.hesitations import without_hesitations
from assistant.text.names import capitals
from assistant.text.numbers import digits

_UNITS: Final = {
    "km": "kilometers", "cm": "centimeters", "mm": "millimeters", "kg": "kilograms", "lb": "pounds", "lbs": "pounds",
    "oz": "ounces", "ft": "feet", "mi": "miles", "mph": "miles per hour", "hr": "hours", "hrs": "hours",
    "min": "minutes", "mins": "minutes", "sec": "seconds", "secs": "seconds", "ml": "milliliters",
    "°c": "degrees celsius", "°f": "degrees fahrenheit", "°": "degrees",
}  # fmt: skip
_MONEY: Final = {"$": ("dollar", "dollars"), "€": ("euro", "euros"), "£": ("pound", "pounds")}
_NTH: Final = str.split(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_SIGNS: Final = str.maketrans({"’": "'", "‘": "'", "“": " ", "”": " ", '"': " ", "×": "*", "÷": "/",
                               "−": "-", "–": " ", "—": " ", "²": "^2", "³": "^3", "[": " ", "]": " ", "(": " ",
                               ")": " ", "=": " equals "})  # fmt: skip
_N: Final = r"\d+(?:\.\d+)?"
_MARKS: Final = ".,!?;:…"


def for_small_model(text: str) -> str:
    """An engine's text -> words without marks, digits for numbers, capitals for known names."""
    line = without_hesitations(text.translate(_SIGNS)).strip(" ,.!?") or text
    line = line.lower().replace("♪", " ")
    for pattern, replacement in _BEFORE:
        line = pattern.sub(replacement, line)
    line = digits(line)
    line = " ".join(word for each in line.split() if (word := each.strip(_MARKS)))
    for pattern, replacement in _AFTER:
        line = pattern.sub(replacement, line)
    return capitals(digits(line))


def _money(match: re.Match[str]) -> str:
    one, many = _MONEY[match[1]]
    amount, scale = match[2], match[3] or ""
    return f"{amount}{scale} {one if amount == '1' and not scale else many}"


def _nth(match: re.Match[str]) -> str:
    number = int(match[1])
    if 1 <= number <= 20:
        return _NTH[number - 1]
    tens = {2: "twenty", 3: "thirty"}.get(number // 10)
    if tens is None or number % 10 == 0:
        return {30: "thirtieth"}.get(number, match[0])
    return f"{tens} {_NTH[number % 10 - 1]}"


def _unit(match: re.Match[str]) -> str:
    return f"{match[1]} {_UNITS[match[2]]}"


_BEFORE: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\d),(?=\d{3}\b)", ""),
        (rf"([$€£]) ?({_N})( (?:hundred|thousand|million|billion))?", _money),
        (r"\b(\d+)(?:st|nd|rd|th)\b", _nth),
        (rf"({_N}) ?({'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?![\w'])\.?", _unit),
        (rf"({_N}) %", r"\1%"),
        (r"\b([ap])\. ?m\b\.?", r"\1m"),
        (r"\bo[’']? ?clock\b", "o'clock"),
        (rf"(?<=\d) ?[x*] ?(?={_N})", " * "),
        (rf"(?<=\d) ?([+/]) ?(?={_N})", r" \1 "),
        (r"\b(mr|mrs|ms|dr|st)\.", r"\1"),
        (r"\bok\b", "okay"),
        (r"&", " and "),
        (r"\bto-(day|morrow|night)\b", r"to\1"),
        (r"\bper cent\b", "percent"),
        (r"\b(arm|behavi|col|fav|flav|harb|hon|hum|lab|neighb|rum)our(?=s?\b|ed\b|ful|hood|ing|ite)", r"\1or"),
        (r"\b((?:centi|kilo|milli)?met|cent|(?:milli)?lit|theat)re(?=s?\b)", r"\1er"),
        (r"\b(?:[a-z]\.){2,}", lambda m: m[0].replace(".", "")),
        (r"(?<=\d)-(?=\d|[a-z])", " "),
    )
)
"""On lower-case text with its marks: what engines write in signs."""
_AFTER: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=[a-z])[-/](?=[a-z])", " "),
        (r"\bkilo(s?)\b", r"kilogram\1"),
        (r"\b((?:kilomet|met)ers|miles) (?:an?|1) (hour|second)\b", r"\1 per \2"),
        (r"(?<=[a-z])[,.…]+(?=[a-z])", " "),
        (
            r"\b(at|by|until|till|from|for) (1[0-2]|[1-9])[ .]([0-5]\d)\b(?! (?:minutes|seconds|hours|percent))",
            r"\1 \2:\3",
        ),
        (r"\b((?:1[0-2]|[1-9])(?:[: ][0-5]\d)?) i(?:'| a)m(?= please| tomorrow|$)", r"\1 am"),  # sounds like `a m`
        (r"\b((?:1[0-2]|[1-9])) ([0-5]\d) ([ap]m)\b", r"\1:\2 \3"),
    )
)
