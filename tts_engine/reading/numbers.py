"""Plain numbers, ranges, scores, fractions, telephone numbers and sums."""

from __future__ import annotations

import re
import unicodedata

from tts_engine.reading.maths import fraction
from tts_engine.reading.tables import FLATS, MONTHS
from tts_engine.reading.words import NUMBER, Rules, cardinal, decimal, digits, ordinal, year


def _range(match: re.Match[str]) -> str:
    """10-15 -> "10 to 15", for later rules to say; a span of years is said here."""
    ends = match.group(1), match.group(2)
    if all(len(end) == 4 and end.isdigit() and 1100 <= int(end) <= 2099 for end in ends):
        return " to ".join(year(int(end)) for end in ends)
    return " to ".join(ends)


def _score(match: re.Match[str]) -> str:
    return f"{match['lead']}{cardinal(int(match['a']))} {cardinal(int(match['b']))}"


def _fraction(match: re.Match[str]) -> str:
    """A fraction, a score, a date or an event: the size of the figures and the words beside them tell."""
    over, under = int(match["over"]), int(match["under"])
    before, after = match.string[: match.start()], match.string[match.end() :]
    if (over, under) in ((24, 7), (9, 11)) or over == under == 50:
        return f"{cardinal(over)} {cardinal(under)}"
    if _DATED.search(before) and 1 <= over <= 12 and 1 <= under <= 31 and not re.match(r"\s+of\b", after):
        return f"{MONTHS[over - 1]} {ordinal(under)}"
    if (under in (10, 100) and not re.match(r"\s+(?:of|cup|inch|mile)", after)) or (over == under and under > 1):
        return f"{cardinal(over)} out of {cardinal(under)}"
    if not over < under <= 100:
        return f"{cardinal(over)} divided by {cardinal(under)}"
    if (over, under) == (1, 2) and re.match(r"\s+(?:an?|the)\b", after):
        return "half"
    if re.search(r"\d[ -]$", before):
        return _and_part(over, under)
    return fraction(over, under)


def _and_part(over: int, under: int) -> str:
    """(1, 8) -> "and an eighth", behind a whole number."""
    return "and " + re.sub("^one( e)?", lambda m: f"an{m[1]}" if m[1] else "a", fraction(over, under))


def _fraction_sign(match: re.Match[str]) -> str:
    over, under = map(int, unicodedata.normalize("NFKC", match["sign"]).split("⁄"))
    return fraction(over, under) if match["behind"] is None else f" {_and_part(over, under)}"


def _phone(match: re.Match[str]) -> str:
    groups = re.findall(r"\d+", match.group())
    return ("plus " if match.group().startswith("+") else "") + ", ".join(digits(group) for group in groups)


def _magnitude(match: re.Match[str]) -> str:
    """2.1M, 3B; a flat 4B has a letter."""
    if _FLAT.search(match.string[: match.start()]):
        return f" {match.group()}"
    return " million" if match[1] else " billion"


_FLAT = re.compile(rf"\b(?:{FLATS}) \d{{1,4}}$", re.IGNORECASE)
_NO_THOUSANDS = r"(?:video|screen|display|monitor|resolution|footage|run|race|walk|is|and|or)\b"
"""4K is a picture, 5K a race."""
_CALLED = r"(?:[Cc]all|[Dd]ial|[Rr]ing|Text|text) (?:\w+ (?:at|on) )?"
_NAMED = r"(?:[Cc]all|[Dd]ial|[Pp]hone|[Tt]el|[Tt]elephone|[Ff]ax|[Tt]ext|[Rr]ing|[Nn]umber)\b[^.!?\d]{0,20}"
"""A telephone number is called, dialled or named as one, or has an area code."""
_PHONES = (
    r"(?<!\w)\+\d{1,3}(?:[ -]?\(?\d{2,4}\)?){2,5}\b|(?<!\w)\(\d{3}\) ?\d{3}[-. ]\d{4}\b|"
    r"\b0\d{2,4}(?: \d{3,4}){1,3}\b|(?<![\w-])(?:1-)?\d{3}([-.])\d{3}\1\d{4}\b(?![-\d])|(?<![\w-])555-\d{4}\b"
)
_PLAIN_PHONE = re.compile(rf"(?P<lead>{_NAMED})(?P<figures>\d{{3}}-\d{{3,4}}|\d{{7,8}})\b(?![-/.]\d)")
_SHORT_PHONE = re.compile(rf"(?P<lead>{_CALLED})(?P<figures>\d{{3,6}})\b(?![-/.,:]\d| (?:times|people|more))")
_CODE = re.compile(r"(?:(?<=PIN )|(?<=[Cc]ode ))\d{3,8}\b")
_SCORED = r"(?:w[io]ns?|lost|loses?|beat|ended|ends|led|leads?|leading|finished|score[ds]?|drew|tied|trailing|trail)"
_DATED = re.compile(r"\b(?:[Oo]n|[Bb]y|[Uu]ntil|[Bb]efore|[Aa]fter|[Ss]ince) $")
_END = r"(\d[\d,]*(?:\.\d+)?)"

PHONES: Rules = (
    (re.compile(_PHONES), _phone),
    (_PLAIN_PHONE, lambda m: m["lead"] + ", ".join(digits(part) for part in m["figures"].split("-"))),
    (_SHORT_PHONE, lambda m: m["lead"] + digits(m["figures"])),
    (_CODE, lambda m: digits(m.group())),
)
RATIOS: Rules = ((re.compile(r"(?<=\d):(?=\d)"), " to "),)
RANGES: Rules = (
    (re.compile(r"(?<=\d)[-–−](?=\d+(?:\.\d+)? ?=)"), " minus "),
    (re.compile(rf"(?P<lead>\b{_SCORED}(?: \w+)? )(?P<a>\d{{1,2}})[-–](?P<b>\d{{1,2}})\b(?![-–%])"), _score),
    (re.compile(r"(?<![\d-])(\d+)-(?=\d+/10\b)"), r"\1 to "),
    (re.compile(r"(?<![\d-])(\d+)-(?=\d+/\d+\b)"), r"\1 "),
    (re.compile(rf"(?<![\w.-]){_END}(?:-| ?– ?| ?~ ?| - (?=\d+ [a-z])){_END}(?=\b(?!-\d|,\d))"), _range),
)  # fmt: skip
ORDINALS: Rules = (
    (re.compile(r"\b(\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:st|nd|rd|th)\b"),
     lambda m: ordinal(int(m.group(1).replace(",", "")))),
)  # fmt: skip
FRACTIONS: Rules = (
    (re.compile(r"(?P<behind>(?<=\d) ?)?(?P<sign>[¼½¾⅐-⅞])"), _fraction_sign),
    (re.compile(r"(?<![\w/.])(?P<over>\d{1,3})/(?P<under>\d{1,3})(?![\w/])"), _fraction),
)
SIZES: Rules = (
    (re.compile(r"(?<=\d) ?[x×] ?(?=\d+(?:\.\d+)?(?:[- ]?(?:inch|in|cm|mm|m|km|ft|foot|feet|px|pixels?|pan|baking|"
                r"grid|board|matrix)\b|[\"″]))"), " by "),
    (re.compile(r"(?<=\d)x(?=\d)"), " by "),
    (re.compile(r"(?<=\d)x(?=\s+[a-z]|[.,!?]|$)"), " times"),
)  # fmt: skip
SUMS: Rules = (
    (re.compile(r"(?<=[\w)])(?: × |×)(?=[\w(])|(?<=\d) x (?=\d)"), " times "),
    (re.compile(r"(?<=\d) [-−] (?=\d)"), " minus "),
    (re.compile(r"(?<=\d) ?/ ?(?=\d)"), " divided by "),
)
POWERS: Rules = (
    (re.compile(r"(?<=\d)[eE]\+?(?=-?\d)"), " times ten to the power of "),
    (re.compile(r"(?<=[\w)])\^([23])(?![\d.^])"), lambda m: " squared " if m[1] == "2" else " cubed "),
)
GROUPED: Rules = (
    (re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:\.\d{3}){2}(?![.,]?\d|\.\w)"), lambda m: m.group().replace(".", "")),
)
"""1.250.000 is a number in groups: a version's parts, which were said before, have seldom three figures twice."""
MAGNITUDES: Rules = (
    (re.compile(r"(?<=\d)(?:(M)|(bn|B))\b(?=\s+[a-z]|[).,;]|$)"), _magnitude),
    (re.compile(rf"(?<=\d)K(?= (?!{_NO_THOUSANDS})[a-z])"), " thousand"),
)
PLAIN: Rules = (
    (re.compile(NUMBER), lambda m: decimal(m["whole"], m["part"], m["sign"])),
    (re.compile(r"\d+"), lambda m: f" {digits(m.group())} "),
)
