"""Moonshine's text pieces: numbers to text, text to numbers, and which numbers make up which word.

`tokenizer.bin` holds the pieces one after another: a length (one byte below 128, else the low seven bits with the top
bit set, then the rest), then that many bytes of UTF-8. A piece's number is its place; `▁` stands for a space. The
first three are unknown, begin and end; the next 256 are single bytes; the rest follow in the order they were merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.asr.agreement import bare

BEGIN, END = 1, 2
_FIRST_BYTE, _FIRST_PIECE = 3, 259
_SPACE = "▁".encode()


class Tokens:
    """The pieces of one model."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece.replace(_SPACE, b" ") for piece in pieces]
        self._numbers: dict[bytes, int] = {}
        for number in (*range(_FIRST_PIECE, len(pieces)), *range(_FIRST_BYTE, min(_FIRST_PIECE, len(pieces)))):
            self._numbers.setdefault(self._pieces[number], number)

    @classmethod
    def load(cls, path: Path) -> Tokens:
        data = path.read_bytes()
        pieces, at = [], 0
        while at < len(data):
            length, at = data[at], at + 1
            if length >= 128:
                length, at = length - 128 + 128 * data[at], at + 1
            pieces.append(data[at : at + length])
            at += length
        return cls(pieces)

    def text(self, numbers: Sequence[int]) -> str:
        """The text of these numbers; incomplete characters at the end are left out."""
        return b"".join(self._pieces[n] for n in numbers if n > END).decode("utf-8", "ignore").strip()

    def words(self, numbers: Sequence[int]) -> list[tuple[str, int]]:
        """Every word as written, and the number of tokens up to its end."""
        found: list[tuple[str, int]] = []
        start = 0
        for at in range(1, len(numbers) + 1):
            if at == len(numbers) or self._pieces[numbers[at]].startswith(b" "):
                if word := self.text(numbers[start:at]):
                    found.append((word, at))
                start = at
        return found

    def begins_word(self, number: int) -> bool:
        return self._pieces[number].startswith(b" ")

    def goes_on(self) -> NDArray[np.bool_]:
        """[V] whether a token goes on with a word that stands before it."""
        first = [piece[:1] for piece in self._pieces]
        return np.array([one.isalnum() or one >= b"\x80" for one in first]) & (np.arange(len(first)) > END)

    def without_marks(self, numbers: Sequence[int]) -> int:
        """How many of these tokens remain without the marks at the end."""
        count = len(numbers)
        while count and (mark := self.text(numbers[count - 1 : count])) and not bare(mark):
            count -= 1
        return count

    def of(self, text: str) -> list[int]:
        """The tokens of a word as it appears after a space. Merges follow the order of the pieces, earliest first."""
        parts = [bytes([b]) for b in f" {text}".encode()]
        while True:
            merged = [self._numbers.get(a + b) for a, b in pairwise(parts)]
            best = min((n for n in merged if n is not None), default=None)
            if best is None:
                return [self._numbers[part] for part in parts if part in self._numbers]
            at = merged.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
