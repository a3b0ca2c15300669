"""A piece of a reply as it is spoken, and the way back from spoken characters to written ones.

The voice reports which character of the spoken text sounds when; a talk remembers written text. Words that both texts
share are anchors, found in order; between anchors a rewritten word ("5 pm", "five p m") maps in proportion.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Aloud:
    """`anchors`: (spoken character, written character) at the beginnings of words, both rising."""

    text: str
    anchors: tuple[tuple[int, int], ...]

    def raw(self, char: int) -> int:
        """The written character that the spoken character `char` stands for."""
        place = bisect_right(self.anchors, (char, 1 << 60)) - 1
        return self.anchors[place][1] if place >= 0 else 0


def aloud(text: str, spoken: Callable[[str], str]) -> Aloud:
    """`spoken` writes a text the way it is spoken; words that it leaves out are silent."""
    said = spoken(text).strip()
    return Aloud(said, tuple(_anchors(said, text)))


def _anchors(said: str, written: str) -> list[tuple[int, int]]:
    said_words = [(m.group(), m.start()) for m in _WORD.finditer(said)]
    written_words = [(m.group(), m.start()) for m in _WORD.finditer(written)]
    if not said_words or not written_words:
        return []
    matcher = SequenceMatcher(
        None, [_bare(word) for word, _ in said_words], [_bare(word) for word, _ in written_words], autojunk=False
    )
    anchors: list[tuple[int, int]] = []
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        if i1 == i2 or not written_words:
            continue
        span = max(1, j2 - j1)
        for i in range(i1, i2):
            j = min(j1 + (i - i1) * span // (i2 - i1), len(written_words) - 1)
            if not anchors or written_words[j][1] > anchors[-1][1]:
                anchors.append((said_words[i][1], written_words[j][1]))
    return anchors


def _bare(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum()) or word
