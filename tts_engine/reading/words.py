"""Numbers spelled out, by Unicode CLDR's rules for English."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from unicode_rbnf import RbnfEngine

Said: TypeAlias = "str | Callable[[re.Match[str]], str]"
Rules: TypeAlias = "tuple[tuple[re.Pattern[str], Said], ...]"
"""Patterns and what is said for each; they run in order."""

WHOLE = r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)"
NUMBER = rf"(?<![\w.])(?P<sign>[-−])?(?:{WHOLE}|(?=\.\d+(?!\.?\d)))(?:\.(?P<part>\d+))?"
_NEW_SENTENCE = re.compile(r"[\"')]*(?:\s*\Z|[ \t]*\n|\s+[A-Z][a-z']*(?:\s|[,.]|\Z))")
_ENGLISH = RbnfEngine.for_language("en")


def cardinal(value: int) -> str:
    """12345 -> "twelve thousand three hundred and forty-five". Numbers beyond words are said digit by digit."""
    if abs(value) >= 10**15:
        return ("minus " if value < 0 else "") + digits(str(abs(value)))
    return ("minus " if value < 0 else "") + _spelt(abs(value), "spellout-cardinal-verbose")


def ordinal(value: int) -> str:
    """21 -> "twenty-first"."""
    return _spelt(value, "spellout-ordinal-verbose")


def _spelt(value: int, rules: str) -> str:
    """Without CLDR's commas, which would be pauses."""
    return _ENGLISH.format_number(value, ruleset_names=[rules]).text.replace(",", "")


def digits(figures: str) -> str:
    """ "407" -> "four zero seven"."""
    return " ".join(cardinal(int(figure)) for figure in figures)


def year(value: int) -> str:
    """1984 -> "nineteen eighty-four", 2005 -> "two thousand and five", 1900 -> "nineteen hundred"."""
    if not 1100 <= value <= 2099 or 2000 <= value <= 2009:
        return cardinal(value)
    return in_pairs(value)


def in_pairs(value: int) -> str:
    """1428 -> "fourteen twenty-eight", 505 -> "five oh five", 1500 -> "fifteen hundred"."""
    hundreds, rest = divmod(value, 100)
    if rest == 0:
        return f"{cardinal(hundreds)} hundred"
    return f"{cardinal(hundreds)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def decimal(whole: str | None, part: str | None, sign: str | None = None) -> str:
    """("3", "14", "-") -> "minus three point one four", (None, "5") -> "point five". A long or zero-led figure is
    said digit by digit."""
    plain = (whole or "").replace(",", "")
    spelled = len(plain) > 15 or (len(plain) > 1 and plain.startswith("0"))
    said = digits(plain) if spelled or not plain else cardinal(int(plain))
    return " ".join(filter(None, ("minus" if sign else "", said, f"point {digits(part)}" if part else "")))


def alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def ends_sentence(match: re.Match[str]) -> bool:
    """The full stop of the match ends the sentence, too: nothing, or a new sentence, follows."""
    return match.group().endswith(".") and _NEW_SENTENCE.match(match.string, match.end()) is not None
