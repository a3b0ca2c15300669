"""The blocks of running Markdown, line by line, decided as the text comes.

Grammar. A reader cannot take back what was said, so each thing is decided at the earliest place and stays decided:

- A block is decided at its first line, by what it begins with behind `>`, list markers and task boxes. A line that
  begins with a word is words at once; a line that begins with a mark is waited for as far as the mark needs it.
- These blocks are for the eye and are not said: fenced code (it ends at its own fence wherever that stands, otherwise
  with the text), indented code (four spaces behind a blank line, outside lists), `<!-- comments -->`, `<pre>`,
  `<script>`, `<style>`, `<svg>`, tables, footnotes, link definitions, rules and underlines of headings. `shown` names
  those worth a word: code, table, formula, footnote.
- A table begins with a line `|...|` and its `|---|` and is said if it has at most FEW_CELLS. A formula between `$$` or
  `\\[ \\]` is said if it closes within FORMULA_CHARS and `maths` can read it.
- A heading and a list item are sentences, whatever they end with; an item's number is said.
- Marks within a line are decided in `inline`, within one sentence. Later definitions change nothing: `[text][id]`
  says its text, whatever `id` is.

This differs from CommonMark where that asks for a look ahead: a fence in a list does not end with the list, an
underline does not make the paragraph above it a heading (it is said alike), a comment that is never closed hides the
rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tts_engine.reading.maths import formula

COMMENT = r"(?<!`)(?=<!--)"
"""The beginning of a comment within a line; behind a backtick it is code."""
FEW_CELLS = 4
FORMULA_CHARS = 240

_BLANK = re.compile(r"(?:[ \t]*\n)*")
_MARKER = re.compile(r"[ \t]*(?:>[ \t]?|(?:[-*+•]|(?P<number>\d{1,3})[.)])[ \t]+(?=\S)(?:\[[ xX]\][ \t]+(?=\S))?)")
_UNDECIDED = re.compile(
    r"[ \t]*(?:\d{1,3}(?:[.)][ \t]*)?|[-*+•][ \t]*|\[(?:[ xX](?:\][ \t]*)?)?|#{1,6}[ \t]*|`{1,2}|~{1,2}|"
    r"\$|\\|<!?-?|</?[A-Za-z]*)?"
)
_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})[^\n]*$")
_DISPLAY = re.compile(r"\$\$|\\\[")
_RAW = re.compile(r"<(script|style|pre|svg|table|textarea)\b", re.I)
_RAW_SHOWN = {"pre": "code", "table": "table"}
_HEADING = re.compile(r"#{1,6}[ \t]+")
_RULE = re.compile(r"(?:(?:[-*_][ \t]*){3,}|=+|-+)[ \t]*$")
_COLUMNS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:")
_DEFINITION = re.compile(r"\[[^\]]+\]:[ \t]*<?\S+>?(?:[ \t]+(?:\"[^\"]*\"|'[^']*'|\([^)]*\)))?[ \t]*$")
_INDENTED = re.compile(r"(?: {4}|\t| {1,3}\t)")


@dataclass(frozen=True, slots=True)
class LineStart:
    """The start of a text: a line of words, or a part that is for the eye.

    words  where its words begin, behind the markers
    lead   said before them: an item's number
    stop   it is a sentence of its own
    end    None for words, which go to the end of the line; else where the part that is for the eye ends
    shown  what such a part begins to show: "code", "table", "formula", "footnote" or ""
    said   what is said of it nevertheless
    """

    words: int = 0
    lead: str = ""
    stop: bool = False
    end: int | None = None
    shown: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class _Silent:
    """A block for the eye that goes on: to the line with `last`, or as long as lines match `while_`."""

    last: re.Pattern[str] | None = None
    while_: re.Pattern[str] | None = None


class Blocks:
    """Ask for the `line` at the start of what is not read yet, again and again."""

    def __init__(self) -> None:
        self._silent: _Silent | None = None
        self._in_list = False
        self._in_paragraph = False

    def line(self, text: str, *, over: bool) -> LineStart | None:
        """Read the start of `text`, which begins a line. `over`: nothing will follow it. None: it is not certain yet,
        or nothing is left but white space."""
        start = _end(_BLANK, text)
        if start == len(text) or not text[start:].strip():
            return None
        if self._silent is not None:
            if not over and "\n" not in text[start:] and not self._closes(text):
                return None
            if (line := self._more(text, start)) is not None:
                return line
        found = self._opening(text, start, over)
        if found is not None:
            self._in_paragraph = found.end is None and not found.stop
        return found

    def _closes(self, text: str) -> bool:
        """A comment ends before its line does."""
        return self._silent is not None and self._silent.last is _COMMENT_END and "-->" in text

    def _more(self, text: str, start: int) -> LineStart | None:
        """The next line of the open block; None: it ended before this one."""
        silent, end = self._silent, _line_end(text, start)
        assert silent is not None
        if silent.while_ is not None:
            if silent.while_.match(text, start, end) and not (start and silent.while_ is _ROW):
                return LineStart(end=end)
            self._silent = None
            return None
        assert silent.last is not None
        if (close := silent.last.search(text, start, end)) is not None:
            self._silent = None
            return LineStart(end=close.end() if silent.last is _COMMENT_END else end)
        return LineStart(end=end)

    def _opening(self, text: str, start: int, over: bool) -> LineStart | None:
        indented = _INDENTED.match(text, start) is not None
        if (start or not self._in_paragraph) and not self._in_list and indented:
            return self._open_block(text, start, over, "code", while_=_INDENTED)
        body, number, item = start, "", False
        while (marker := _MARKER.match(text, body)) is not None:
            item = item or ">" not in marker.group()
            number = marker["number"] or number
            body = marker.end()
        if not over and _UNDECIDED.fullmatch(text, body):
            return None
        self._in_list = item or (self._in_list and (indented or not start))
        body += len(text[body:]) - len(text[body:].lstrip(" \t"))
        found = self._block(text, body, over)
        if found is None:
            return None
        if found.end is None:
            return LineStart(found.words, f"{number}: " if number else "", item or found.stop)
        return found

    def _block(self, text: str, at: int, over: bool) -> LineStart | None:
        """A block that its first mark announces; words otherwise."""
        words, first = LineStart(at), text[at : at + 1]
        whole = over or "\n" in text[at:]
        end = _line_end(text, at)
        row = text[at:end].rstrip("\n")
        if text.startswith("<!--", at):
            if not whole and "-->" not in text[at:]:
                return None
            self._silent = _Silent(last=_COMMENT_END)
            return self._more(text, at)
        if first == "#" and (heading := _HEADING.match(text, at)):
            return LineStart(heading.end(), stop=True)
        if not first or first not in "`~$\\<|[-*_=:" or (first == "\\" and not text.startswith("\\[", at)):
            return words
        if not whole:
            return None if _may_open_block(row) else words
        if fence := _FENCE.match(row):
            return self._open_block(text, at, over, "code", last=_closing(fence[1] or fence[2]))
        if (display := _DISPLAY.match(row)) is not None:
            return self._formula(text, at, display.group(), over)
        if (raw := _RAW.match(row)) is not None:
            return self._raw(text, at, raw[1].lower())
        if _RULE.match(row):
            return LineStart(end=end)
        if "|" in row and _COLUMNS.match(row):
            return self._open_block(text, at, over, "table", while_=_ROW)
        if first == "|":
            return self._table(text, at, over)
        if _FOOTNOTE.match(row):
            return self._open_block(text, at, over, "footnote", while_=_INDENTED)
        return LineStart(end=end) if _DEFINITION.match(row) else words

    def _open_block(
        self, text: str, at: int, over: bool, shown: str,
        last: re.Pattern[str] | None = None, while_: re.Pattern[str] | None = None,
    ) -> LineStart | None:  # fmt: skip
        """The first line of a block for the eye."""
        if not over and "\n" not in text[at:]:
            return None
        self._silent = _Silent(last, while_)
        return LineStart(end=_line_end(text, at), shown=shown)

    def _raw(self, text: str, at: int, tag: str) -> LineStart:
        last = re.compile(rf"</{tag}\s*>", re.I)
        end = _line_end(text, at)
        self._silent = None if last.search(text, at, end) else _Silent(last)
        return LineStart(end=end, shown=_RAW_SHOWN.get(tag, ""))

    def _formula(self, text: str, at: int, mark: str, over: bool) -> LineStart | None:
        """Said where it is short and simple; on one line it is words."""
        close = "$$" if mark == "$$" else "\\]"
        found = text.find(close, at + 2, at + FORMULA_CHARS)
        if 0 <= found < _line_end(text, at):
            return LineStart(at)
        if found < 0 and len(text) - at < FORMULA_CHARS and not over:
            return None
        last = re.compile(re.escape(close))
        if found < 0:
            return self._open_block(text, at, True, "formula", last=last)
        if not over and "\n" not in text[found:]:
            return None
        said = formula(text[at + 2 : found])
        return LineStart(end=_line_end(text, found), said=f"{said}." if said else "", shown="" if said else "formula")

    def _table(self, text: str, at: int, over: bool) -> LineStart | None:
        """Said where it has few cells, else shown; a row of pipes alone is words."""
        rows: list[list[str]] = []
        end = at
        while end < len(text):
            begin, end = end, _line_end(text, end)
            if text[end - 1] != "\n" and not over:
                return None
            row = text[begin:end].strip()
            if len(rows) == 1 and not _COLUMNS.match(row):
                return LineStart(at)
            if len(rows) > 1 and not _ROW.match(row):
                end = begin
                break
            rows.append(_cells(row))
            if sum(map(len, rows[:1] + rows[2:])) > FEW_CELLS and len(rows) > 1:
                return self._open_block(text, at, True, "table", while_=_ROW)
        else:
            if not over:
                return None
        if len(rows) < 2:
            return LineStart(at)
        return LineStart(end=end, said=", ".join(cell for row in rows[:1] + rows[2:] for cell in row if cell))


_COMMENT_END = re.compile("-->")
_ROW = re.compile(r"[^\n]*\|")


def _may_open_block(row: str) -> bool:
    """The unfinished row may still become something else than words."""
    if row.startswith(("```", "~~~", "$$", "\\[", "|")) or _RAW.match(row) or not row.strip("-=*_:| \t"):
        return True
    return row.startswith("[") and bool(re.fullmatch(r"\[[^\]]{0,80}(?:\](?::.*)?)?", row))


def _closing(fence: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t>]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.M)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def _line_end(text: str, at: int) -> int:
    """Behind the newline of the line in which `at` stands."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _end(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0
