"""Cuts a reply that is still being written into pieces that can be spoken on their own.

The pieces tile the text: each begins where the one before ended. The first is as short as sounds natural, so that
sound starts early; later ones are sentences, so that they sound whole. A piece never ends inside a number, an
abbreviation or a control tag, because it ends only where white space is seen after its last word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FIRST_CLAUSE_CHARS = 12
"""A comma ends the first piece from this length on."""
FIRST_LIMIT_CHARS = 60
"""Without any punctuation the first piece ends at a word from this length on."""
CLAUSE_CHARS = 100
"""A comma ends a later piece from this length on."""
LIMIT_CHARS = 220
"""Any later piece ends at a word from this length on."""

_SENTENCE_END = re.compile(r"""[.!?…][)\]"'”’*_]*$""")
_CLAUSE_END = re.compile(r"""[,;:–—][)\]"'”’*_]*$""")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|dr|mr|mrs|ms|prof|st|no|vs|etc|approx|inc|ltd|jr|sr|fig|e\.g|i\.e|cf|jan|feb|mar|apr|"
    r"jun|jul|aug|sep|sept|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)\.$",
    re.IGNORECASE,
)
_ENUMERATOR = re.compile(r"(?:^|\n)\s*\d+[.)]$")
_OPEN_TAG = re.compile(r"<\|[^>]*$")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """`text` is the reply's characters [start, end)."""

    start: int
    end: int
    text: str


class Segmenter:
    """Feed the reply's text as it comes; take the pieces that are certain."""

    def __init__(self) -> None:
        self._waiting = ""
        self._start = 0
        self._first = True

    def feed(self, text: str) -> list[TextSpan]:
        """More text; returns the pieces that it completes."""
        self._waiting += text
        spans = []
        while (end := self._end_of_piece()) is not None:
            spans.append(self._take(end))
        return spans

    def finish(self) -> list[TextSpan]:
        """The text is over: what is left is the last piece."""
        return [self._take(len(self._waiting))] if self._waiting.strip() else []

    def _take(self, end: int) -> TextSpan:
        span = TextSpan(self._start, self._start + end, self._waiting[:end])
        self._waiting = self._waiting[end:]
        self._start = span.end
        self._first = False
        return span

    def _end_of_piece(self) -> int | None:
        """Where the first piece of the waiting text ends, behind its white space; None while that is open."""
        for gap in re.finditer(r"\s+(?=\S)", self._waiting):
            head = self._waiting[: gap.start()]
            if head.strip() and self._ends_here(head, gap.group(), self._waiting[gap.end()]):
                return gap.end()
        return None

    def _ends_here(self, head: str, gap: str, following: str) -> bool:
        if _OPEN_TAG.search(head):
            return False
        length = len(head.strip())
        if "\n" in gap and not _ENUMERATOR.search(head):
            return True
        abbreviated = _ABBREVIATION.search(head) or (head.endswith(".") and following.islower())
        if _SENTENCE_END.search(head) and not abbreviated and not _ENUMERATOR.search(head):
            return True
        if _CLAUSE_END.search(head) and length >= (FIRST_CLAUSE_CHARS if self._first else CLAUSE_CHARS):
            return True
        return length >= (FIRST_LIMIT_CHARS if self._first else LIMIT_CHARS)
