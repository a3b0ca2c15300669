"""Spoken numbers, times and sums to digits: `set a timer for five minutes` becomes `set a timer for 5 minutes`.

Models copy digits far better than they count words, so transcripts pass through here before the language model.
English only. Words that are not numbers stay as they are, and so does text that already holds digits.

    digits("what is twelve times eight")            what is 12 * 8
    digits("wake me up at half past six")           wake me up at 6:30
    digits("an hour and a half")                    1 hour 30 minutes
    digits("fifteen percent of eighty")             15% of 80
"""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {
    w: i
    for i, w in enumerate(
        str.split(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        )
    )
}
_TENS: Final = {
    w: 10 * i for i, w in enumerate(str.split("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
_SCALES: Final = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_ORDINALS: Final = {
    w: i
    for i, w in enumerate(
        str.split(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
        ),
        start=1,
    )
} | {"thirtieth": 30}
_MONTHS: Final = str.split("january february march april may june july august september october november december")
_BEFORE_ONE: Final = frozenset(
    str.split(
        "plus minus times by is to at past from and number point equals over add subtract multiply divide "
        "convert count until about for in timer"
    )
)
_AFTER_ONE: Final = re.compile(
    r"(plus|minus|times|divided|multiplied|over|percent|point|hundred|thousand|million|o'clock|oh|am|pm|a|p|to|squared|"
    r"(second|minute|hour|day|week|month|year|mile|kilometer|meter|centimeter|pound|kilogram|gram|inch|foot|liter|"
    r"gallon|cup|degree|ounce|yard|dollar|euro|tablespoon|teaspoon|ton|pint|quart)s?|feet|inches)"
)
_MARKS: Final = ".,!?;:"


def digits(text: str) -> str:
    """The text with its spoken numbers, times of day, lengths of time and sums written in digits."""
    words = _split(text)
    words = _numbers(words)
    line = " ".join(words)
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return line


def _split(text: str) -> list[str]:
    """Words; a hyphenated number is split."""
    out: list[str] = []
    for word in text.split():
        parts = word.split("-")
        if len(parts) > 1 and all(_plain(part) in _UNITS | _TENS or part in ("hundred", "and") for part in parts):
            out += parts
        else:
            out.append(word)
    return out


def _plain(word: str) -> str:
    return word.rstrip(_MARKS).lower()


def _marks(word: str) -> str:
    return word[len(word.rstrip(_MARKS)) :]


def _numbers(words: list[str]) -> list[str]:
    """Every run of number words replaced by digits."""
    out: list[str] = []
    here = [_plain(word) for word in words]
    i = 0
    while i < len(words):
        found = _number(words, here, i, out)
        if found is None:
            out.append(words[i])
            i += 1
        else:
            text, i = found
            out.append(text + _marks(words[i - 1]))
    return out


def _number(words: list[str], here: list[str], i: int, before: list[str]) -> tuple[str, int] | None:
    """The number that starts at word i, and the word after it. `here`: the words without their marks."""
    previous = _plain(before[-1]) if before else ""
    following = here[i + 1] if i + 1 < len(here) else ""
    if here[i] in ("a", "an") and following in ("hundred", "thousand", "million", "dozen"):
        if following == "dozen":
            return "12", i + 2
        value, end = _cardinal(here, i + 1, words)
        return str(value), end
    if (month := _day_of_month(here, i, previous)) is not None:
        return month
    if here[i] not in _UNITS and here[i] not in _TENS and here[i] != "hundred":
        return None
    if here[i] == "hundred" or (here[i] == "one" and not _counts_as_one(here, i, previous)):
        return None
    value, end = _cardinal(here, i, words)
    if end < len(here) and not _marks(words[end - 1]):
        if here[end] == "point" and end + 1 < len(here) and here[end + 1] in _UNITS:
            return _decimal(here, value, end + 1)
        if value < 100 and (joined := _pair(here, words, value, end)) is not None:
            return joined
    return str(value), end


def _counts_as_one(here: list[str], i: int, previous: str) -> bool:
    """`one` is a number beside units, operators and other numbers; elsewhere (`another one`) it is a pronoun."""
    following = here[i + 1] if i + 1 < len(here) else ""
    if following in _UNITS or following in _TENS or _AFTER_ONE.fullmatch(following):
        return previous not in ("this", "that", "another", "which", "the") or following in ("hundred", "thousand")
    return previous in _BEFORE_ONE or bool(re.fullmatch(r"[\d.]+", previous))


def _cardinal(here: list[str], i: int, words: list[str]) -> tuple[int, int]:
    """A whole number: `two thousand three hundred and four`, or as much of one as there is."""
    total = group = 0
    last = 10**12  # what may follow must be smaller than the part before it
    start = i
    while i < len(here):
        word = here[i]
        if word in _UNITS and (last > 19 or (i > start and here[i - 1] == "and")):
            if last in range(20, 100) and _UNITS[word] not in range(1, 10):
                break
            group += _UNITS[word]
            last = 1 if _UNITS[word] < 10 else 10
        elif word in _TENS and last >= 100:
            group += _TENS[word]
            last = _TENS[word]
        elif word == "hundred" and (0 < group < 100 or i == start):
            group = max(group, 1) * 100
            last = 100
        elif word in _SCALES and (group or i == start):
            total += max(group, 1) * _SCALES[word]
            group = 0
            last = 1000
        elif word == "and" and last in (100, 1000) and here[i + 1 : i + 2] and here[i + 1] in _UNITS | _TENS:
            i += 1
            continue
        else:
            break
        i += 1
        if _marks(words[i - 1]):
            break
    return total + group, i


def _decimal(here: list[str], value: int, i: int) -> tuple[str, int]:
    text = f"{value}."
    while i < len(here) and here[i] in _UNITS and _UNITS[here[i]] < 10:
        text += str(_UNITS[here[i]])
        i += 1
    return text, i


def _pair(here: list[str], words: list[str], value: int, end: int) -> tuple[str, int] | None:
    """Two numbers side by side: a time of day (`seven thirty`, `nine oh five`) or a year (`nineteen eighty four`)."""
    if here[end] in ("oh", "o") and end + 1 < len(here) and 1 <= _UNITS.get(here[end + 1], 0) <= 9 and value <= 12:
        return f"{value}:0{_UNITS[here[end + 1]]}", end + 2
    if here[end] not in _TENS and _UNITS.get(here[end], 0) < 10:
        return None
    second, after = _cardinal(here, end, words)
    if not 10 <= second <= 99:
        return None
    if 1 <= value <= 16 and second < 60:
        return f"{value}:{second}", after
    if 17 <= value <= 20:
        return f"{value}{second}", after
    return None


def _day_of_month(here: list[str], i: int, previous: str) -> tuple[str, int] | None:
    """`november [the] twentieth`, or `[the] twentieth of november`: the number alone."""
    after_month = previous in _MONTHS or (previous == "the" and i >= 2 and here[i - 2] in _MONTHS)
    value, end = 0, i
    if here[i] in _ORDINALS:
        value, end = _ORDINALS[here[i]], i + 1
    elif here[i] in ("twenty", "thirty") and i + 1 < len(here) and _ORDINALS.get(here[i + 1], 99) < 10:
        value, end = _TENS[here[i]] + _ORDINALS[here[i + 1]], i + 2
    if not value:
        return None
    before_month = end + 1 < len(here) and here[end] == "of" and here[end + 1] in _MONTHS
    return (str(value), end) if after_month or before_month else None


def _clock(hour: str, minute: int) -> str:
    return f"{int(hour)}:{minute:02d}"


def _before(match: re.Match[str]) -> str:
    """`10 to 7` as a time of day: 6:50."""
    minute = 15 if "quarter" in match[1] else int(match[1])
    return _clock(str((int(match[2]) - 2) % 12 + 1), 60 - minute)


def _past(match: re.Match[str]) -> str:
    minute = {"half": 30, "quarter": 15, "a quarter": 15}.get(match[1]) or int(match[1])
    return _clock(match[2], minute)


def _half_day(match: re.Match[str]) -> str:
    hour, minute, part = int(match[1]), match[2] or ":00", match[3]
    late = part in ("afternoon", "evening") or (part == "night" and hour >= 6)
    return f"{hour}{minute} {'pm' if late else 'am'}"


def _one_and_half(match: re.Match[str]) -> str:
    count, unit = match[1], match[2]
    smaller = {"hour": "30 minutes", "minute": "30 seconds"}[unit]
    return f"{count} {unit}{'' if count == '1' else 's'} {smaller}"


_N = r"-?\d+(?:\.\d+)?"
_HOUR = r"(1[0-2]|[1-9])"
_OPERATORS: Final = {
    "plus": "+", "minus": "-", "times": "*", "multiplied by": "*", "divided by": "/", "over": "/",
}  # fmt: skip


def _operation(match: re.Match[str]) -> str:
    return f" {_OPERATORS[match[1]]} "


_RULES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        # lengths of time
        (r"\bhalf an hour\b", "30 minutes"),
        (r"\bhalf a minute\b", "30 seconds"),
        (r"\bthree quarters of an hour\b|\b3 quarters of an hour\b", "45 minutes"),
        (r"\b(?:a )?quarter of an hour\b|\ba quarter hour\b", "15 minutes"),
        (r"\b(?:an|a|1) (hour|minute) and a half\b", lambda m: _one_and_half(re.match(r"(1) (\w+)", "1 " + m[1]))),  # type: ignore[arg-type]
        (r"\b(\d+) and a half (hour|minute)s?\b", _one_and_half),
        (r"\b(\d+) (hour|minute)s? and a half\b", _one_and_half),
        (r"\b(\d+) and a half\b", r"\1.5"),
        (r"\ba couple of (second|minute|hour|day)s\b", r"2 \1s"),
        (r"(?<!wait )(?<!just )(?<!on )\ban? (second|minute|hour)\b(?! ago)", r"1 \1"),
        (r"\b(\d+ hours?),? and (\d+ (?:minute|second)s?)\b", r"\1 \2"),
        (r"\b(\d+ minutes?),? and (\d+ seconds?)\b", r"\1 \2"),
        # times of day
        (r"\bone(?= (?:in the (?:morning|afternoon|evening)|o'?clock|[ap] m)\b)", "1"),
        (rf"\b(half|a quarter|quarter|\d{{1,2}})(?: minutes?)? past {_HOUR}\b", _past),
        (rf"\b(a quarter|quarter)(?: minutes?)? (?:to|of) {_HOUR}\b", _before),
        (rf"(?<=\bat )(5|10|20|25)(?: minutes?)? to {_HOUR}\b", _before),
        (rf"(?<=\bby )(5|10|20|25)(?: minutes?)? to {_HOUR}\b", _before),
        (rf"\b(5|10|20|25) minutes to {_HOUR}\b", _before),
        (rf"\b{_HOUR} o'?clock\b", r"\1:00"),
        (r"\b(\d{1,2}(?::\d\d)?) ?(a|p) ?\.?m\b\.?", lambda m: f"{m[1]} {m[2].lower()}m"),
        (rf"(?<!:)\b{_HOUR} (am|pm)\b", r"\1:00 \2"),
        (rf"\b{_HOUR}(:\d\d)? in the (morning|afternoon|evening)\b", _half_day),
        (rf"\b{_HOUR}(:\d\d)? at (night)\b", _half_day),
        # dates
        (rf"\b({'|'.join(_MONTHS)}) the (\d{{1,2}})\b", r"\1 \2"),
        (rf"\b(?:the )?(\d{{1,2}}) of ({'|'.join(_MONTHS)})\b", r"\2 \1"),
        # sums
        (rf"(?<=\bis )minus ({_N})", r"-\1"),
        (rf"(?<=\bconvert )minus ({_N})", r"-\1"),
        (rf"(?<=\btimes )minus ({_N})", r"-\1"),
        (rf"(?<=\bplus )minus ({_N})", r"-\1"),
        (rf"({_N}) percent\b", r"\1%"),
        (rf"({_N}) squared\b", r"\1^2"),
        (rf"({_N}) cubed\b", r"\1^3"),
        (rf"({_N}) to the power of ({_N})", r"\1^\2"),
        (rf"(?<=\d) (plus|minus|times|multiplied by|divided by|over) (?={_N})", _operation),
    )
)
