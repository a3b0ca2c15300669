"""Written text to speech text: numbers, dates, times, money, units, addresses and markup as people say them.

    speech_text("On 3 May 2024 at 9:05, it cost $3.50.")
    -> "On the third of May twenty twenty-four at nine oh five, it cost three dollars and fifty cents."

What cannot be said is left out: code blocks, emoji, table rules, link targets. Pure. Control tags (`<|sfx:cough|>`)
pass through. English. Rules run in order, each over text that the earlier ones have already made sayable, so a rule
never sees a number inside an address.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from unicode_rbnf import RbnfEngine

from tts_engine.markup import CONTROL, strip_structure
from tts_engine.text_tables import (
    ABBREVIATIONS,
    CROWNED,
    CURRENCY,
    FILES,
    IRREGULAR,
    LAST_IN_SENTENCES,
    LETTERS_AS_WORDS,
    MONTH,
    MONTHS,
    NUMBERED,
    PER,
    ROMAN,
    SHORT_MONTHS,
    SIGNS,
    SYMBOLS,
    UNCOUNTED,
    UNITS,
    VERSIONED,
)

_ENGLISH = RbnfEngine.for_language("en")
_NUMBER = r"(?<![\w.])(?P<sign>[-−])?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<part>\d+))?"


def speech_text(text: str) -> str:
    """What a person would say, reading `text` aloud. Empty if nothing in it can be said."""
    text = strip_structure(unicodedata.normalize("NFC", text))
    parts = CONTROL.split(_no_markup(text))
    said = "".join(part if i % 2 else _say(part) for i, part in enumerate(parts))
    return _tidy(said)


def cardinal(value: int) -> str:
    """12345 -> "twelve thousand three hundred and forty-five". Numbers beyond words are said digit by digit."""
    if abs(value) >= 10**15:
        return ("minus " if value < 0 else "") + digits(str(abs(value)))
    return ("minus " if value < 0 else "") + _spelt(abs(value), "spellout-cardinal-verbose")


def ordinal(value: int) -> str:
    """21 -> "twenty-first"."""
    return _spelt(value, "spellout-ordinal-verbose")


def _spelt(value: int, rules: str) -> str:
    """By Unicode CLDR's rules for English; their commas would be pauses."""
    return _ENGLISH.format_number(value, ruleset_names=[rules]).text.replace(",", "")


def digits(figures: str) -> str:
    """ "407" -> "four zero seven"."""
    return " ".join(cardinal(int(figure)) for figure in figures)


def year(value: int) -> str:
    """1984 -> "nineteen eighty-four", 2005 -> "two thousand and five", 1900 -> "nineteen hundred"."""
    century, rest = divmod(value, 100)
    if not 1100 <= value <= 2099 or 2000 <= value <= 2009:
        return cardinal(value)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def decimal(whole: str, part: str | None, sign: str | None = None) -> str:
    """("3", "14", "-") -> "minus three point one four". A long or zero-led figure is said digit by digit."""
    plain = whole.replace(",", "")
    spelled = len(plain) > 15 or (len(plain) > 1 and plain.startswith("0"))
    said = digits(plain) if spelled else cardinal(int(plain))
    return ("minus " if sign else "") + said + (f" point {digits(part)}" if part else "")


def _no_markup(text: str) -> str:
    """Markdown and HTML go, their text stays; code blocks and images go with their text."""
    text = re.sub(r"(?<=\d)\*\*(?=\d)", " to the power of ", text)
    text = re.sub(r"(?<=[\w)]) \* (?=[\w(])|(?<=\d)\*(?=\d)", " × ", text)  # before it could pass for emphasis
    text = re.sub(r"```.*?(```|\Z)|~~~.*?(~~~|\Z)", " ", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", " ", text, flags=re.S)
    text = re.sub(r"</?[A-Za-z][^<>|]*>", " ", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\[\^?\d+\]", "", text)  # footnote marks
    text = re.sub(r"^[ \t]*(?:[-*_][ \t]*){3,}$", " ", text, flags=re.M)  # rules
    text = re.sub(r"^[ \t]*\|?[ \t]*:?-{2,}[-| :\t]*$", " ", text, flags=re.M)  # table heads
    text = re.sub(r"^[ \t]{0,3}#{1,6}[ \t]+(.*?)[ \t#]*$", r"\1.", text, flags=re.M)
    text = re.sub(r"^[ \t]*>[ \t]?", "", text, flags=re.M)
    text = re.sub(r"^[ \t]*[-*+•][ \t]+(?:\[[ xX]\][ \t]+)?(.*?)[ \t]*$", _item, text, flags=re.M)
    text = re.sub(r"^[ \t]*(\d{1,3})[.)][ \t]+(.*?)[ \t]*$", _item, text, flags=re.M)
    text = re.sub(r"(\*\*\*|\*\*|\*|___|__|~~)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<!\w)_(?=\S)(.+?)(?<=\S)_(?!\w)", r"\1", text)
    return re.sub(r"`([^`\n]*)`", r"\1", text)


def _item(match: re.Match[str]) -> str:
    """A list item is a sentence; a number before it is said."""
    body = match.group(match.lastindex or 1)
    said = body if not body or body[-1] in ".,;:!?" else f"{body}."
    return f"{match.group(1)}: {said}" if match.lastindex == 2 else said


def _say(text: str) -> str:
    for pattern, said in _RULES:
        text = pattern.sub(said, text)
    return "".join(_symbol(c) for c in text)


def _symbol(char: str) -> str:
    if char in SYMBOLS:
        return f" {SYMBOLS[char]} "
    kind = unicodedata.category(char)
    if kind in ("So", "Sk", "Cs", "Co", "Cn", "Cf", "Mn", "Me") or "\ufe00" <= char <= "\ufe0f":
        return " " if kind != "Mn" else char if char != "\u20e3" else " "
    return {"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "…": "..."}.get(char, char)


def _address(match: re.Match[str]) -> str:
    """https://www.example.com/a/b?c -> "example dot com": the host is worth saying, the rest is not."""
    host = re.sub(r"^(?:[a-z]+://)?(?:www\.)?", "", match.group(), flags=re.I)
    host = re.split(r"[/?#:]", host, maxsplit=1)[0].rstrip(".")
    end = "." if match.group().endswith(".") else ""
    return host.replace("-", " dash ").replace(".", " dot ") + end


def _mail(match: re.Match[str]) -> str:
    return match.group().replace("@", " at ").replace(".", " dot ").replace("_", " underscore ").replace("-", " dash ")


def _month(name: str) -> str:
    return SHORT_MONTHS[name[:3].lower()]


def _date(match: re.Match[str]) -> str:
    """Day and month in either order, with or without a year."""
    found = match.groupdict()
    day = f"the {ordinal(int(found['day']))} of " if match.start("day") < match.start("month") else ""
    said = f"{day}{_month(found['month'])}"
    if not day:
        said += f" {ordinal(int(found['day']))}"
    return said + (f" {year(int(found['year']))}" if found.get("year") else "")


def _iso_date(match: re.Match[str]) -> str:
    month, day = int(match["month"]), int(match["day"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return " ".join(digits(part) for part in re.split(r"\D", match.group()))
    return f"{MONTHS[month - 1]} {ordinal(day)} {year(int(match['year']))}"


def _slash_date(match: re.Match[str]) -> str:
    """Day and month where one of them tells which it is; else the figures as they stand."""
    first, second, said = int(match[1]), int(match[2]), year(int(match[3]))
    day, month = (first, second) if first > 12 else (second, first)
    if day > 31 or month > 12 or day <= 12:
        return f"{cardinal(first)} {cardinal(second)} {said}"
    return f"{MONTHS[month - 1]} {ordinal(day)} {said}"


def _days(match: re.Match[str]) -> str:
    """May 3-5, 3-5 May."""
    if match["month"]:
        return f"{_month(match['month'])} {ordinal(int(match['a']))} to {ordinal(int(match['b']))}"
    return f"the {ordinal(int(match['c']))} to the {ordinal(int(match['d']))} of {_month(match['after'])}"


def _short(match: re.Match[str]) -> str:
    """An abbreviation; its full stop may be the sentence's as well."""
    return ABBREVIATIONS[match.group()] + (_stop(match) if match.group() in LAST_IN_SENTENCES else "")


def _stop(match: re.Match[str]) -> str:
    ends = match.group().endswith(".") and re.match(r"[\"')]*(?:\s*\Z|\s+[A-Z])", match.string[match.end() :])
    return "." if ends else ""


def _half(match: re.Match[str]) -> str:
    return f" {match['half'][0].lower()} m{_stop(match)}" if match["half"] else ""


def _time(match: re.Match[str]) -> str:
    hour, minute, half = int(match["hour"]), int(match["minute"]), match["half"]
    if hour > 24 or minute > 59:
        return match.group()
    if minute:
        said = f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    else:
        said = cardinal(hour) if half else f"{cardinal(hour)} o'clock" if hour <= 12 else f"{cardinal(hour)} hundred"
    if match["second"]:
        said += f" and {_counted(str(int(match['second'])), None, 'second')}"
    return said + _half(match)


def _hour(match: re.Match[str]) -> str:
    return cardinal(int(match["hour"])) + _half(match)


def _money(match: re.Match[str]) -> str:
    unit, small = CURRENCY[match["unit"]]
    whole, part, scale = match["whole"], match["part"], match["scale"]
    sign = match["sign"]
    if scale:
        word = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion"}.get(scale.lower(), scale.lower())
        return f"{decimal(whole, part, sign)} {word} {_plural(unit, 2)}"
    amount = int(whole.replace(",", "")[:16])
    said = f"{decimal(whole, None, sign)} {_plural(unit, amount)}"
    if part and small and len(part) == 2:
        cents = int(part)
        if not cents:
            return said
        tail = f"{cardinal(cents)} {_plural(small, cents)}"
        return tail if not amount else f"{said} and {tail}"
    return said if not part else f"{decimal(whole, part, sign)} {_plural(unit, 2)}"


def _plural(noun: str, count: float) -> str:
    if count == 1 or noun in UNCOUNTED:
        return noun
    head, *rest = noun.split(" ")
    if head in ("square", "cubic", "kilowatt", "milliamp"):
        return f"{head} {_plural(' '.join(rest), count)}"
    return " ".join([IRREGULAR.get(head, head + "s"), *rest])


def _counted(whole: str, part: str | None, noun: str, sign: str | None = None) -> str:
    return f"{decimal(whole, part, sign)} {_plural(noun, 1 if whole == '1' and not part else 2)}"


def _unit(match: re.Match[str]) -> str:
    return _counted(match["whole"], match["part"], UNITS[match["unit"]], match["sign"])


def _range(match: re.Match[str]) -> str:
    """10-15 -> "10 to 15", for later rules to say; a span of years is said here."""
    ends = match.group(1), match.group(2)
    if all(len(end) == 4 and end.isdigit() and 1100 <= int(end) <= 2099 for end in ends):
        return " to ".join(year(int(end)) for end in ends)
    return " to ".join(ends)


def _year_alone(match: re.Match[str]) -> str:
    return f"{match['lead']} {year(int(match['year']))}"


def _decade(match: re.Match[str]) -> str:
    tens = int(match["tens"])
    if match["century"] == "20" and not tens:
        return "two thousands"
    word = {0: "hundreds", 10: "tens"}.get(tens) or cardinal(tens)[:-1] + "ies"
    return f"{cardinal(int(match['century'])) + ' ' if match['century'] else ''}{word}"


def _ordinal(match: re.Match[str]) -> str:
    return ordinal(int(match.group(1).replace(",", "")))


def _fraction(match: re.Match[str]) -> str:
    over, under = int(match["over"]), int(match["under"])
    if (over, under) == (24, 7):
        return "twenty-four seven"
    if not over < under <= 100:
        return f"{cardinal(over)} divided by {cardinal(under)}"
    name = {2: "half", 4: "quarter"}.get(under) or ordinal(under)
    mixed = "and " if re.search(r"\d $", match.string[: match.start()]) else ""
    return f"{mixed}{cardinal(over)} {name if over == 1 else 'halves' if under == 2 else name + 's'}"


def _phone(match: re.Match[str]) -> str:
    groups = re.findall(r"\d+", match.group())
    return ("plus " if match.group().startswith("+") else "") + ", ".join(digits(group) for group in groups)


def _internet_address(match: re.Match[str]) -> str:
    return " dot ".join(digits(part) for part in match.group().split("."))


def _roman(match: re.Match[str]) -> str:
    """Chapter IV -> "Chapter four", Henry VIII -> "Henry the eighth"; only after words that make it safe."""
    value, rest = 0, match["numeral"]
    for numeral, worth in ROMAN.items():
        while rest.startswith(numeral):
            value, rest = value + worth, rest.removeprefix(numeral)
    if rest:
        return match.group()
    said = f"the {ordinal(value)}" if match["name"] else cardinal(value)
    return f"{match['name'] or match['what']} {said}"


def _picture_lines(match: re.Match[str]) -> str:
    """1080p -> "ten eighty p"."""
    above, below = divmod(int(match.group(1)), 100)
    return f"{cardinal(above)} {cardinal(below)} p"


def _named_version(match: re.Match[str]) -> str:
    return f"{match[1]} {' point '.join(cardinal(int(part)) for part in match[2].split('.'))}"


def _version(match: re.Match[str]) -> str:
    return " " + " point ".join(decimal(part, None) for part in match.group().split("."))


def _spell(match: re.Match[str]) -> str:
    """HTTP -> "H T T P", URLs -> "U R L s". Words in capitals that are said as words stay."""
    word, tail = match.group(1), match.group(2)
    if word in LETTERS_AS_WORDS or (len(word) > 4 and set(word) & set("AEIOUY")):
        return match.group()
    return " ".join(word) + ("'s" if tail else "")


def _plain_number(match: re.Match[str]) -> str:
    return decimal(match["whole"], match["part"], match["sign"])


def _alternatives(words: Any) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1\d{3}|20\d{2})"
_BEFORE_YEARS = "[Ii]n|[Ss]ince|[Uu]ntil|[Bb]efore|[Aa]fter|[Yy]ear|[Ff]rom|[Bb]y"
_HALF = r"(?P<half>[AaPp]\.[Mm]\.|[AaPp][Mm]\b)"
_RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"), _mail),
    (re.compile(r"\b(?:https?://|ftp://|www\.)[^\s<>()\[\]\"]+", re.I), _address),
    (re.compile(r"\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|ai|edu|gov|uk|de|fr)(?:/[^\s<>()\"]*)?\b", re.I), _address),
    (re.compile(rf"(?<=\w)\.(?=(?:{FILES})\b)"), " dot "),
    (re.compile(_alternatives(SIGNS)), lambda m: SIGNS[m.group()]),
    (re.compile(r"(?<=[\d:])[-–](?=\d{1,2}(?::\d\d| ?[AaPp]\.?[Mm]\b))"), " to "),
    (re.compile(rf"(?<!\w)(?:{_alternatives(ABBREVIATIONS)})(?!\w)"), _short),
    (re.compile(r"\bNo\. ?(?=\d)"), "number "),
    (re.compile(r"(?<=[a-z] )St\.(?! [A-Z])"), "Street"),
    (re.compile(r"\bSt\.(?= [A-Z])"), "Saint"),
    (re.compile(r"#(?=[A-Za-z])"), "hashtag "),
    (
        re.compile(
            rf"\b(?:(?P<what>{NUMBERED})|(?P<name>{CROWNED})) (?P<numeral>[IVX]{{2,6}}|[VX]|I(?=[.,:;)!?]|$))(?!\w)"
        ),
        _roman,
    ),
    (re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"), _iso_date),
    (re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b"), _slash_date),
    (
        re.compile(
            rf"\b{MONTH} (?P<a>\d\d?)[-–](?P<b>\d\d?)\b|"
            rf"\b(?P<c>\d\d?)[-–](?P<d>\d\d?) {MONTH.replace('month', 'after')}\b"
        ),
        _days,
    ),
    (re.compile(rf"\b(?:[Tt]he )?{_DAY}(?: of)? {MONTH},?(?: {_YEAR})?\b"), _date),
    (re.compile(rf"\b{MONTH} {_DAY}(?:,? {_YEAR})?\b"), _date),
    (re.compile(rf"\b{MONTH},? {_YEAR}\b"), lambda m: f"{_month(m['month'])} {year(int(m['year']))}"),
    (re.compile(rf"\b(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?::(?P<second>\d{{2}}))?(?!\d)(?: ?{_HALF})?"), _time),
    (re.compile(rf"\b(?P<hour>1[0-2]|[1-9]) ?{_HALF}"), _hour),
    (re.compile(r"(?<=\d):(?=\d)"), " to "),
    (
        re.compile(
            r"(?<!\w)\+\d{1,3}(?:[ -]\d{2,4}){2,5}\b|(?<!\w)\(\d{3}\) \d{3}-\d{4}\b|"
            r"\b(?:\d-)?\d{3}-\d{3,4}(?:-\d{4})?\b|(?:(?<=[Cc]all )|(?<=[Dd]ial )|(?<=PIN )|(?<=code ))\d{3,8}\b"
        ),
        _phone,
    ),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), _internet_address),
    (re.compile(rf"(\d[\d.,]*(?: ?[a-zA-Z%]{{0,8}}))/(?=(?:{PER})\b)"), r"\1 per "),
    (
        re.compile(
            r"(?P<sign>[-−])?(?P<unit>[$€£¥₹]) ?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<part>\d+))?"
            r"(?: ?(?P<scale>thousand|million|billion|trillion|bn|[kKmMbB]))?(?!\w)"
        ),
        _money,
    ),
    (
        re.compile(
            r"(?<![\w.])(?P<sign>[-−])?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<part>\d+))? ?(?P<unit>[€£¥₹])"
            r"(?P<scale>)(?!\w)"
        ),
        _money,
    ),
    (re.compile(r"\b(\d+(?:\.\d+)?)(?:-| ?– ?)(\d+(?:\.\d+)?)(?=\b(?!-))"), _range),
    (
        re.compile(
            r"(?:\b(?P<century>\d\d)|['’]|(?<=[Tt]he )|(?<=his )|(?<=her )|(?<=their )|(?<=my )|(?<=your )|(?<=early )|"
            r"(?<=late )|(?<=mid-))(?P<tens>\d0)['’]?s\b"
        ),
        _decade,
    ),
    (re.compile(rf"\b({VERSIONED}) ?(\d+(?:\.\d+)+)\b"), _named_version),
    (re.compile(r"\b(720|1080|1440|2160)p\b"), _picture_lines),
    (re.compile(r"(?<=\d)[eE]\+?(?=-?\d)"), " times ten to the power of "),
    (re.compile(r"(?<=\d) ?in(?=[.,;:)!?]|$| (?:long|wide|tall|high|thick|deep|by|x)\b)"), " inches"),
    (re.compile(r"(?<=\d) ?(?=[½¼¾⅓⅔⅛])"), " and "),
    (re.compile(r"\b(\d)['′](\d{1,2})(?:[\"″]|(?!\w))"), lambda m: f"{cardinal(int(m[1]))} foot {cardinal(int(m[2]))}"),
    (re.compile(rf"{_NUMBER} ?(?P<unit>{_alternatives(UNITS)})(?![\w²³/])"), _unit),
    (re.compile(rf"\b(?P<lead>{_BEFORE_YEARS}) {_YEAR}\b(?![.,]\d)"), _year_alone),
    (re.compile(r"\b(\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:st|nd|rd|th)\b"), _ordinal),
    (re.compile(r"(?<![\w/.])(?P<over>\d{1,3})/(?P<under>\d{1,3})(?![\w/])"), _fraction),
    (re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}\b"), _version),
    (re.compile(r"(?<=\d)x(?=\d)"), " by "),
    (re.compile(r"(?<=[\w)])(?: × |×)(?=[\w(])|(?<=\d) x (?=\d)"), " times "),
    (re.compile(r"(?<=\d) [-−] (?=\d)"), " minus "),
    (re.compile(r"(?<=\d) ?/ ?(?=\d)"), " divided by "),
    (re.compile(r"\b([A-Z]{2,})(s)?\b"), _spell),
    (re.compile(r"(?<=[A-Za-z])-(?=\d)|(?<=\d)(?=[A-Za-z])"), " "),
    (re.compile(_NUMBER), _plain_number),
    (re.compile(r"\d+"), lambda m: f" {digits(m.group())} "),
    (re.compile(r"(?<=\w)/(?=\w)"), " or "),
    (re.compile(r"(?<=\s)[-–—]+(?=\s)"), ","),
    (re.compile(r"[—–]"), ", "),
)  # fmt: skip


def _tidy(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" +([.,;:!?])", r"\1", text)
    text = re.sub(r"([.,;:!?])(?:[,;:](?=\s|$))+", r"\1", text)
    text = re.sub(r"\(\s*\)|\"\s*\"", "", text)
    text = re.sub(r"([!?])\1{2,}", r"\1", text)
    text = re.sub(r"^[\s,;:.!?]+|[\s,;:]+$", "", text)
    return text.strip() if re.search(r"\w", text) else ""
