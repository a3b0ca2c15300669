"""Dates, times of day, years and decades."""

from __future__ import annotations

import re

from tts_engine.reading.amounts import counted
from tts_engine.reading.tables import MONTH, MONTHS, SHORT_MONTHS
from tts_engine.reading.words import Rules, cardinal, digits, ends_sentence, ordinal, year


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
    """2026-11-20T15:45:00Z -> "November twentieth twenty twenty-six at 15:45 UTC", whose time a later rule says."""
    month, day = int(match["month"]), int(match["day"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return " ".join(digits(part) for part in re.split(r"\D", match["date"])) + (match["time"] or "")
    said = f"{MONTHS[month - 1]} {ordinal(day)} {year(int(match['year']))}"
    if not match["time"]:
        return said
    zone = match["zone"] or ""
    shift = "" if zone in ("", "Z") else f" {'minus' if zone[0] == '-' else 'plus'} {int(zone[1:3])}"
    return f"{said} at {match['time']}{' UTC' if zone else ''}{shift}"


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


def _half(match: re.Match[str]) -> str:
    half = match["half"]
    return f" {half[0].lower()} m{'.' if ends_sentence(match) else ''}" if half else ""


def _time(match: re.Match[str]) -> str:
    hour, minute, half = int(match["hour"]), int(match["minute"]), match["half"]
    if hour > 24 or minute > 59:
        return match.group()
    if minute:
        said = f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    else:
        said = cardinal(hour) if half else f"{cardinal(hour)} o'clock" if hour <= 12 else f"{cardinal(hour)} hundred"
    if match["second"]:
        said += f" and {counted(str(int(match['second'])), None, 'second')}"
    return said + _half(match)


def _hour(match: re.Match[str]) -> str:
    return cardinal(int(match["hour"])) + _half(match)


def _decade(match: re.Match[str]) -> str:
    tens = int(match["tens"])
    if match["century"] == "20" and not tens:
        return "two thousands"
    word = {0: "hundreds", 10: "tens"}.get(tens) or cardinal(tens)[:-1] + "ies"
    return f"{cardinal(int(match['century'])) + ' ' if match['century'] else ''}{word}"


_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1\d{3}|20\d{2})"
_BEFORE_YEARS = "[Ii]n|[Ss]ince|[Uu]ntil|[Bb]efore|[Aa]fter|[Yy]ear|[Ff]rom|[Bb]y|circa|born|died|et al\\.|and others"
_HALF = r"(?P<half>[AaPp]\.[Mm]\.|[AaPp][Mm]\b)"

DATES: Rules = (
    (re.compile(r"\b(?P<date>(?P<year>\d{4})([-/])(?P<month>\d{2})\3(?P<day>\d{2}))"
                r"(?:[T ](?P<time>\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?)?(?![\w/-])"),
     _iso_date),
    (re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b"), _slash_date),
    (re.compile(rf"\b{MONTH} (?P<a>\d\d?)[-–](?P<b>\d\d?)\b|"
                rf"\b(?P<c>\d\d?)[-–](?P<d>\d\d?) {MONTH.replace('month', 'after')}\b"), _days),
    (re.compile(rf"\b(?:[Tt]he )?{_DAY}(?: of)? {MONTH},?(?: {_YEAR})?\b"), _date),
    (re.compile(rf"\b{MONTH} {_DAY}(?:,? {_YEAR})?\b"), _date),
    (re.compile(rf"\b{MONTH},? {_YEAR}\b"), lambda m: f"{_month(m['month'])} {year(int(m['year']))}"),
)  # fmt: skip
SPANS: Rules = (
    (re.compile(r"(?<=[\d:])(?: ?[AaPp]\.?[Mm]\b\.?)? ?[-–] ?(?=\d{1,2}(?::\d\d| ?[AaPp]\.?[Mm]\b)|noon|midnight)"),
     lambda m: f"{m.group().rstrip(' -–')} to "),
    (re.compile(rf"\b{MONTH}[-–]{MONTH.replace('month', 'last')}(?! ?\d\d?\b)"),
     lambda m: f"{_month(m['month'])} to {_month(m['last'])}{'.' if ends_sentence(m) else ''}"),
    (re.compile(r"\b([QH][1-4])[-–](?=[QH][1-4]\b)"), r"\1 to "),
)  # fmt: skip
"""9-5pm, 9am-5pm, 10:30-11:45, Jan-Mar, Q1-Q3."""
TIMES: Rules = (
    (re.compile(r"\b(\d{1,2})\.(\d\d)(?= ?[AaPp]\.?[Mm]\b)"), r"\1:\2"),
    (re.compile(r"\b([01]?\d|2[0-3])h([0-5]\d)\b"), r"\1:\2"),
    (re.compile(rf"\b(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?::(?P<second>\d{{2}}))?(?!\d)(?: ?{_HALF})?"), _time),
    (re.compile(rf"\b(?P<hour>1[0-2]|[1-9]) ?{_HALF}"), _hour),
)
DECADES: Rules = (
    (re.compile(r"(?:\b(?P<century>\d\d)|['’]|(?<=[Tt]he )|(?<=his )|(?<=her )|(?<=their )|(?<=my )|(?<=your )|"
                r"(?<=early )|(?<=late )|(?<=mid-))(?P<tens>\d0)['’]?s\b"), _decade),
)  # fmt: skip
YEARS: Rules = (
    (re.compile(r"\b((?:19|20)\d\d)[/–](\d\d)\b(?![/\d])"), lambda m: f"{year(int(m[1]))} to {cardinal(int(m[2]))}"),
    (re.compile(rf"\b(?P<lead>{_BEFORE_YEARS}) {_YEAR}\b(?![.,]\d)"), lambda m: f"{m['lead']} {year(int(m['year']))}"),
    (re.compile(r"(?<=\()((?:19|20)\d\d)(?=\))|(?<=Q [1-4] )((?:19|20)\d\d)\b"), lambda m: year(int(m.group()))),
)
