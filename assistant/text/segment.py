"""Cuts a reply that is still being written into pieces that can be spoken on their own.

The pieces tile the text: each begins where the one before ended. The first is as short as sounds natural, so that
sound starts early; later ones are sentences, so that they sound whole. A piece never ends inside a number, an
abbreviation, a control tag, a link, code or a formula, because it ends only where white space is seen after its last
word; only a word without an end is cut.

Each piece knows what is said of it: its words without Markdown (`tts_engine.reading.blocks` has the grammar). A block
for the eye is one piece a line, and nothing is said of it but, where it begins, an announcement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from tts_engine.reading.alignment import Aloud, aloud
from tts_engine.reading.blocks import COMMENT, Blocks, LineStart
from tts_engine.reading.inline import is_marked, is_open, words
from tts_engine.text import line_words

FIRST_CLAUSE_CHARS = 12
"""A comma ends the first piece from this length on."""
FIRST_LIMIT_CHARS = 60
"""Without any punctuation the first piece ends at a word from this length on."""
CLAUSE_CHARS = 100
"""A comma ends a later piece from this length on."""
LIMIT_CHARS = 220
"""Any later piece ends at a word from this length on."""
HARD_LIMIT_CHARS = 400
"""A word that is longer is cut."""
SHOWN = MappingProxyType(
    {
        "code": "I put the code on the screen.",
        "table": "I put the table on the screen.",
        "formula": "I put the formula on the screen.",
        "footnote": "There is a footnote on the screen.",
    }
)
"""Said once a reply for each kind of block that is for the eye."""

_SENTENCE_END = re.compile(r"""[.!?…。！？][)\]"'”’*_`」』]*$""")
_CLAUSE_END = re.compile(r"""[,;:–—][)\]"'”’*_`]*$""")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|dr|mr|mrs|ms|prof|st|no|vs|etc|approx|inc|ltd|jr|sr|fig|e\.g|i\.e|cf|jan|feb|mar|apr|"
    r"jun|jul|aug|sep|sept|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|ave|blvd|rd|mt|gen|sen|capt|lt|pp|vol|tbsp|tsp|oz|tues|thurs|pop|"
    r"ft|pt|ste|rev|gov|rep|sgt|hon|hwy|rte|univ|dept|max|min|avg|"
    r"(?![ap]\.m)[a-z](?:\.[a-z])+)\.$",
    re.IGNORECASE,
)
_ENUMERATOR = re.compile(r"(?:^|\n)\s*\d+[.)]$")
_OPEN_TAG = re.compile(r"<\|[^>]*$")
_GAP = re.compile(r"[^\S\n]*\n|[^\S\n]+(?=\S)|(?<=[。！？])(?=[^\s。！？」』”’)])|" + COMMENT)
"""Ends of pieces: behind a line, between words, behind a Chinese or Japanese sentence, before a comment."""
_BEGUN_COMMENT = re.compile(r"<(?:!-?)?\Z")


@dataclass(frozen=True)
class TextSpan:
    """`text` is the reply's characters [start, end), and `said` what is said of them."""

    start: int
    end: int
    text: str
    said: str

    def written(self, char: int) -> int:
        """The character of `text` that the character `char` of `said` stands for."""
        return char if self.text.startswith(self.said) else self._alignment.raw(char)

    @cached_property
    def _alignment(self) -> Aloud:
        return aloud(self.text, lambda _: self.said)


class Segmenter:
    """Feed the reply's text as it comes; take the pieces that are certain. `shown` are the announcements."""

    def __init__(self, shown: Mapping[str, str] = SHOWN) -> None:
        self._shown = dict(shown)
        self._blocks = Blocks()
        self._line: LineStart | None = None
        self._waiting = ""
        self._start = 0
        self._first = True

    @property
    def fed_chars(self) -> int:
        """Characters of text so far, those of a piece that is still open too."""
        return self._start + len(self._waiting)

    def feed(self, text: str) -> list[TextSpan]:
        """More text; returns the pieces that it completes."""
        self._waiting += text
        return self._certain(over=False)

    def finish(self) -> list[TextSpan]:
        """The text is over: what is left is the last piece."""
        return self._certain(over=True)

    def _certain(self, *, over: bool) -> list[TextSpan]:
        spans = []
        while (span := self._next_span(over)) is not None:
            spans.append(span)
        return spans

    def _next_span(self, over: bool) -> TextSpan | None:
        """The first piece of the waiting text; None while that is open."""
        if self._line is None:
            line = self._blocks.line(self._waiting, over=over)
            if line is None:
                return None
            if line.end is not None:
                return self._span_upto(line.end, words(line.said) or self._shown.pop(line.shown, ""))
            self._line = line
        line, end = self._line, self._end_of_piece(over)
        if end is None:
            if not over or not self._waiting.strip():
                return None
            end = len(self._waiting)
        lines = end == len(self._waiting) or self._waiting[end - 1] == "\n" or self._waiting.startswith("<!--", end)
        said = line.lead + line_words(self._waiting[line.words : end], line.stop and lines)
        self._line = None if lines else LineStart(stop=line.stop)
        return self._span_upto(end, said)

    def _span_upto(self, end: int, said: str) -> TextSpan:
        span = TextSpan(self._start, self._start + end, self._waiting[:end], said)
        self._waiting = self._waiting[end:]
        self._start = span.end
        self._first = self._first and not said.strip()
        return span

    def _end_of_piece(self, over: bool) -> int | None:
        """The end of the first piece of the waiting line, behind its white space; None while that is open."""
        begin = self._line.words if self._line else 0
        begun = None if over else _BEGUN_COMMENT.search(self._waiting)
        known = begun.start() if begun else len(self._waiting)
        for gap in _GAP.finditer(self._waiting, begin, known):
            if gap.start() - begin > HARD_LIMIT_CHARS:
                break
            head = self._waiting[: gap.start()]
            if head.strip() and self._ends_here(head, gap.group(), self._waiting[gap.end() : gap.end() + 1]):
                return gap.end()
        limit = begin + HARD_LIMIT_CHARS
        return limit if self._waiting[limit : min(limit + 1, known)].strip() else None

    def _ends_here(self, head: str, gap: str, following: str) -> bool:
        if _OPEN_TAG.search(head):
            return False
        if "\n" in gap:
            return not _ENUMERATOR.search(head)
        if not gap and following == "<":
            return True
        length = len(head.strip())
        if is_open(head):
            return length >= LIMIT_CHARS
        abbreviated = _ABBREVIATION.search(head) or (head.endswith(".") and following.islower())
        if _SENTENCE_END.search(head) and not abbreviated and not _ENUMERATOR.search(head):
            return True
        if is_marked(head):
            return length >= LIMIT_CHARS
        if _CLAUSE_END.search(head) and length >= (FIRST_CLAUSE_CHARS if self._first else CLAUSE_CHARS):
            return True
        return length >= (FIRST_LIMIT_CHARS if self._first else LIMIT_CHARS)
