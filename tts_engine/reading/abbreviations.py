"""Abbreviations by what stands beside them, initials, and words in capitals: stressed, or said by letters."""

from __future__ import annotations

import re

from tts_engine.reading.tables import (
    ABBREVIATIONS,
    BEFORE_NUMBERS,
    CROWNED,
    DAYS,
    LAST_IN_SENTENCES,
    LETTERS_AS_WORDS,
    NUMBERED,
    PLACES,
    PLAIN_WORDS,
    ROMAN,
    SPELLED,
    STREETS,
)
from tts_engine.reading.words import Rules, alternatives, cardinal, ends_sentence, in_pairs, ordinal


def _short(match: re.Match[str]) -> str:
    """An abbreviation; its full stop may be the sentence's as well."""
    last = match.group() in LAST_IN_SENTENCES and ends_sentence(match)
    return ABBREVIATIONS[match.group()] + ("." if last else "")


_STREET_BEFORE = re.compile(
    r"\b\d+(?:st|nd|rd|th) $|\b\d+[A-Za-z]? (?:[NSEW]\.? )?(?:[A-Z0-9][\w']* ){1,3}$"
)
"""A house number and a name, or a numbered street."""


def _placed(match: re.Match[str]) -> str:
    """Dr. and St. behind a street's name or before a person's: "12 Oak Dr." and "Dr. Oak"."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    titled = re.match(r" +[A-Z]", after) is not None
    street = _STREET_BEFORE.search(before) is not None
    if not street and (titled or not re.search(r"\b[A-Z][\w']* $", before)):
        return "Doctor" if match[1] == "Dr" else "Saint" if titled else "Street"
    return ("Drive" if match[1] == "Dr" else "Street") + ("." if ends_sentence(match) else "")


def _initials(match: re.Match[str]) -> str:
    """U.S. -> "U S"; it ends a sentence only at the end, or before a word with which sentences begin."""
    behind = match.string[match.end() :]
    last = re.match(r"[\"')]*(?:\s*\Z|\s+(?:The|It|We|He|She|They|I|This|That|But|And|In|You|There)\b)", behind)
    return " ".join(re.findall("[A-Z]", match.group())) + ("." if last and match.group().endswith(".") else "")


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


def _day(match: re.Match[str]) -> str:
    return DAYS[match.group().rstrip(".").capitalize()]


def _days(match: re.Match[str]) -> str:
    """Mon-Fri, Sat/Sun -> "Monday to Friday, Saturday or Sunday"."""
    said = re.sub(rf"\b(?:{_DAY})\b\.?", _day, match.group(), flags=re.IGNORECASE)
    return re.sub(r" ?[-–~] ?", " to ", said) + ("." if ends_sentence(match) else "")


_DAY = alternatives(DAYS)
_ANY_DAY = rf"(?:{_DAY}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b\.?"
_CAPITALS = re.compile(r"[A-Z][A-Z'’]*")
_LOUD = re.compile(r"\b[A-Z][A-Z'’]+\b")
_PRONOUNCEABLE = re.compile(
    r"(?:[BCDFGKPST][LR]|[STW]H|CH|PH|QU|S[CKLMNPTW]|SC?H?[RTPL]R?|TW|KN|WR|[B-DF-HJ-NP-TV-Z])?[AEIOUY]+"
    r"(?:(?:[B-DF-HJ-NP-TV-XZ]{1,3})[AEIOUY]+)*"
    r"(?:[B-DF-HJ-NPR-TVWXZ]|[LNR][CDGKPT]|[NRLMS][ST]|S[KMPT]|[FLPRSTZ]{2}|C?KS?|[TSCP]H|N[GK]S?|MP|[FPX]T|[DLMNPRT]S|"
    r"R[LMN]|TTS|GHT)?"
)
"""A word of English sounds, roughly: what can begin one, and what can end it."""


def _can_be_said(word: str) -> bool:
    return word not in SPELLED and (word.lower() in PLAIN_WORDS or _PRONOUNCEABLE.fullmatch(word) is not None)


def _shouted(match: re.Match[str]) -> str:
    """A sentence of capitals is said as words; only what cannot be a word is left for letters."""
    sentence = match.group()
    words = [word for word in re.findall(r"[A-Za-z'’]+", sentence) if word not in ("I", "A")]
    capitals = [word for word in words if _CAPITALS.fullmatch(word) and len(word) > 1]
    plain = [word for word in capitals if word.lower() in PLAIN_WORDS or "'" in word or len(word) > 4]
    if 2 * len(plain) < max(1, len(capitals)) or len(capitals) < 0.6 * len(words) or (len(capitals) == 1 < len(words)):
        return sentence
    return _LOUD.sub(_lowered, sentence)


def _constant(match: re.Match[str]) -> str:
    """MAX_RETRY_COUNT -> "Max retry count", API_KEY -> "API key": its capitals say nothing about its words."""
    return _LOUD.sub(_lowered, match.group().replace("_", " "))


def _lowered(match: re.Match[str]) -> str:
    word = match.group().replace("’", "'")
    known = word not in LETTERS_AS_WORDS and ("'" in word or word == "AM" or _can_be_said(word))
    if not known and not (len(word) > 4 and set(word) & set("AEIOUY") and word not in LETTERS_AS_WORDS):
        return match.group()
    starts = not match.string[: match.start()].strip(" \"'(")
    return word.capitalize() if starts else word.lower()


def _spell(match: re.Match[str]) -> str:
    """HTTP -> "H T T P", URLs -> "U R L s". Words in capitals that are said as words stay; stressed ones are small."""
    word, tail = match.group(1), match.group(2)
    if word in LETTERS_AS_WORDS or (len(word) > 4 and set(word) & set("AEIOUY") and word not in SPELLED):
        return match.group()
    before, after = match.string[: match.start()], match.string[match.end() :]
    named = after.startswith("&") or (word == "WHO" and before.endswith("he "))
    if word.lower() in PLAIN_WORDS and word not in SPELLED and not tail and not named:
        return word.lower()
    return ("a m" if word == "AM" else " ".join(word)) + ("'s" if tail else "")


SHOUTS: Rules = (
    (re.compile(r"\b[A-Z][A-Z\d]*(?:_[A-Z\d]+)+\b"), _constant),
    (re.compile(r"[^.!?\n]+[.!?]*"), _shouted),
)
"""Before anything else is said: later words are small already."""
SHORT: Rules = (
    (re.compile(rf"\b{_ANY_DAY}(?:(?: ?[-–~/&] ?|,? (?:and|or|to) |, ){_ANY_DAY})+"), _days),
    (re.compile(rf"\b(?:{_DAY})[-–](?:{_DAY})\b", re.IGNORECASE), _days),
    (re.compile(rf"\b(?:(?:{_DAY})\b\.?(?= \d)|(?:Mon|Tues?|Thu(?:rs?)?|Fri)\b(?!-| [A-Z][a-z])\.?|Wed\.)"), _days),
    (re.compile(rf"(?<!\d )\b({alternatives(PLACES)})\.? (?=[A-Z][a-z])"), lambda m: f"{PLACES[m[1]]} "),
    (re.compile(r"\bca?\. (?=(?:1\d|20)\d\d\b)"), "circa "),
    (re.compile(r"\b(Dr|St)\."), _placed),
    (re.compile(rf"\b(\d{{3,4}})(?= (?:[NSEW]\.? )?(?:[A-Z][\w']* ){{1,2}}(?:{STREETS})\b)"),
     lambda m: in_pairs(int(m[1]))),
    (re.compile(rf"(?<!\w)(?:{alternatives(ABBREVIATIONS)})(?!\w)"), _short),
    (re.compile(r"\b(?:[A-Z]\.){2,}"), _initials),
    (re.compile(rf"(?<!\w)(?<!\d )({alternatives(BEFORE_NUMBERS)}) ?(?=\d)"), lambda m: f"{BEFORE_NUMBERS[m[1]]} "),
)  # fmt: skip
ROMANS: Rules = (
    (re.compile(rf"\b(?:(?P<what>{NUMBERED})|(?P<name>{CROWNED})) "
                rf"(?P<numeral>[IVX]{{2,6}}|[VX]|I(?=[.,:;)!?]|$))(?!\w)"), _roman),
)  # fmt: skip
LETTERS: Rules = ((re.compile(r"\b([A-Z]{2,})(s)?\b"), _spell),)
