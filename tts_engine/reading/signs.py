"""Symbols and emoticons: those with a word get it, the rest is silent."""

from __future__ import annotations

import re
import unicodedata

from tts_engine.reading.tables import SIGNS, SYMBOLS
from tts_engine.reading.words import Rules, alternatives

_ALIKE = {"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u202f": " ", "…": "..."}
_SILENT = frozenset(["So", "Sk", "Cs", "Co", "Cn", "Cf", "Me", "Cc"])


def symbol(char: str) -> str:
    """One character as it is said."""
    if char in SYMBOLS:
        return f" {SYMBOLS[char]} "
    if unicodedata.category(char) in _SILENT or "\ufe00" <= char <= "\ufe0f" or char == "\u20e3":
        return " "
    return _ALIKE.get(char, char)


def tidy(text: str) -> str:
    """One space between words, one mark between clauses; empty if there is no word."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r" +([.,;:!?])", r"\1", text)
    text = re.sub(r"([.,;:!?])(?:[,;:](?=\s|$))+", r"\1", text)
    text = re.sub(r"\(\s*\)|\"\s*\"", "", text)
    text = re.sub(r"([!?])\1{2,}", r"\1", text)
    text = re.sub(r"^[\s,;:.!?]+|[\s,;:]+$", "", text)
    return text.strip() if re.search(r"\w", text) else ""


EMOTICONS: Rules = (
    (re.compile(r"(?<=\w )<3(?= \w)"), "love"),
    (re.compile(r"(?<!\S)(?:</?3+|[:;=]['’]?-?[)(DPp/\\|*oO]+|[xX]D+|\^_?\^)(?=[\s.,!?]|$)"), " "),
    (re.compile(r"(?<!\S)(?=\S*[()])(?=\S*[^\x00-\x7f])[^\sA-Za-z0-9]*(?:[^\s\x00-\x7f][^\sA-Za-z0-9]*)+(?!\S)"), " "),
)
"""`<3` between words is said; ¯\\_(ツ)_/¯ is a face."""
WRITTEN_SIGNS: Rules = ((re.compile(alternatives(SIGNS)), lambda m: SIGNS[m.group()]),)
GAPS: Rules = (
    (re.compile(r"(?<=[A-Za-z])-(?=\d)|(?<=\d)(?=[A-Za-z])"), " "),
    (re.compile(r"(?<=\d)-(?=[A-Za-z\d])"), " "),
)
DASHES: Rules = (
    (re.compile(r"(?<=[Aa]round )~|(?<=[Aa]bout )~"), ""),
    (re.compile(r"(?<=\w)/(?=\w)"), " or "),
    (re.compile(r"(?<=\s)[-–—]+(?=\s)"), ","),
    (re.compile(r"[—–]"), ", "),
)
