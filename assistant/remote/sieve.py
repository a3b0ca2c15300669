"""Sorts what a model wrote into words for the person, calls of tools, and thoughts, which nobody is shown.

Pure. Servers pass on what their models write, and many do not know what their model writes: thoughts come as `<think>`
and its relatives, calls as `<tool_call>`, as JSON or as XML, and marks of the chat format stand in between. Law: for
every way of cutting the text, the same pieces come out. Text that is certainly words goes on at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from assistant.contracts import BadCall
from assistant.remote.calls import Schemas, WrittenCall, calls_in_json, calls_in_python, names_tool, read_calls
from assistant.remote.marks import BEGINS, LONGEST_TAG, WORDS, half_tag, look

LONGEST_CALL = 65536  # characters
LONGEST_WAIT = 1000
"""Characters of words that are held: a thought may be longer, but so long nobody waits for a reply."""
UNREAD = "it is not a call that can be read"
Piece: TypeAlias = "str | WrittenCall | BadCall"


class Sieve:
    """Feed it a reply in pieces of any size.

    schemas  the parameters of the declared tools by name; without any, bare JSON is words
    hold     words wait for the end of the reply, as long as anybody waits, or for a thought that opens in sight: this
             model closes thoughts that it never opened, or may
    """

    def __init__(self, schemas: Schemas, hold: bool = False) -> None:
        self.orphan = False
        """Whether a thought ended that had not begun: all before it was that thought."""
        self._schemas, self._hold = schemas, hold
        self._held: list[Piece] = []
        self._buffer = ""
        self._last = ""
        """The last character of the words so far."""
        self._said = 0
        self._behind = False
        """Whether something was left out since: white space around it counts once."""
        self._mark = WORDS
        self._fence = self._quote = ""
        self._depth = self._from = 0
        self._step: Callable[[list[Piece]], bool] = self._words

    def feed(self, text: str) -> list[Piece]:
        """The words and calls that are certain by now."""
        self._buffer += text
        found: list[Piece] = []
        while self._step(found):
            pass
        return self._out(found)

    def finish(self) -> list[Piece]:
        """The pieces that are left when the reply is over."""
        found: list[Piece] = []
        if self._step == self._thought:
            found = self._of_thought(self._buffer)
        elif self._step == self._written_call:
            found = self._sort_text(self._buffer)
        elif self._step == self._json:
            found = [BadCall(self._buffer, "the reply ended inside the call")]
        elif not half_tag(self._buffer):
            self._pass_on(self._buffer, found)
        self._buffer, self._step, self._hold = "", self._words, False
        return self._out(found)

    def release(self) -> None:
        """Words need not wait any more."""
        self._hold = False

    @property
    def spoke(self) -> bool:
        """Whether there were words."""
        return bool(self._last)

    def _out(self, found: list[Piece]) -> list[Piece]:
        self._held += found
        if self._hold:
            return []
        out, self._held = self._held, []
        return joined(out)

    # -------------------------------------------------------------------- one step each; False: more text is needed

    def _words(self, found: list[Piece]) -> bool:
        begins = BEGINS.search(self._buffer)
        self._pass_on(self._cut(len(self._buffer) if begins is None else begins.start()), found)
        mark = None if begins is None else look(self._buffer, self._last, self._schemas)
        if mark is None:
            return False
        if mark.kind == "words":
            self._pass_on(self._cut(mark.size), found)
            return True
        if mark.kind == "thought_end":
            self._unthink(found)
        if mark.kind == "thought":
            self._hold = False  # a model that opens its thoughts closes no others
        self._behind = self._behind or mark.kind != "json"
        self._fence = self._cut(mark.skip)
        self._mark, self._depth, self._quote, self._from = mark, 0, "", 0
        if mark.whole:
            self._from = mark.size
        else:
            self._cut(mark.size)
        steps = {"thought": self._thought, "call": self._written_call, "json": self._json}
        self._step = steps.get(mark.kind, self._words)
        return True

    def _thought(self, found: list[Piece]) -> bool:
        """Inside a thought, which may hold others."""
        pattern = re.compile(f"(?P<open>{self._mark.opens or '(?!)'})|{self._mark.closes}", re.IGNORECASE)
        while (at := pattern.search(self._buffer, self._from)) is not None:
            self._from = at.end()
            if at.lastgroup == "open":
                self._depth += 1
            elif self._depth:
                self._depth -= 1
            else:
                self._cut(at.end())
                self._step = self._words
                return True
        self._from = max(self._from, len(self._buffer) - LONGEST_TAG)
        return False

    def _written_call(self, found: list[Piece]) -> bool:
        closes = re.compile(self._mark.closes or "(?!)", re.IGNORECASE)
        at = closes.search(self._buffer, self._from)
        if at is None:
            self._refuse_length(found)
            return False
        found += self._sort_text(self._buffer[: at.end() if self._mark.whole else at.start()])
        self._cut(at.end())
        self._step = self._fence_end if self._fence else self._words
        return True

    def _json(self, found: list[Piece]) -> bool:
        """Inside JSON, up to the bracket that ends it."""
        for at in range(self._from, len(self._buffer)):
            character = self._buffer[at]
            if len(self._quote) > 1:  # behind a backslash
                self._quote = self._quote[0]
            elif self._quote:
                self._quote = {"\\": self._quote + "\\", self._quote: ""}.get(character, self._quote)
            elif character in "\"'":
                self._quote = character
            elif character in "{[(":
                self._depth += 1
            elif character in "}])":
                self._depth -= 1
                if self._depth == 0:
                    self._json_end(self._cut(at + 1), found)
                    return True
        self._from = len(self._buffer)
        self._refuse_length(found)
        return False

    def _json_end(self, text: str, found: list[Piece]) -> None:
        calls = calls_in_json(text, self._schemas) or calls_in_python(text, self._schemas)
        if calls or names_tool(text, self._schemas):
            found += calls or [BadCall(text, UNREAD)]
            self._behind = True
            self._step = self._fence_end
        else:
            self._pass_on(self._fence + text, found)
            self._step = self._words

    def _fence_end(self, found: list[Piece]) -> bool:
        """Behind a call: the end of the fence around it is left out with it."""
        rest = self._buffer.lstrip()
        if rest != "```" and "```".startswith(rest):
            return False
        if rest.startswith("```") and self._fence:
            self._cut(len(self._buffer) - len(rest) + 3)
        self._step = self._words
        return True

    # ------------------------------------------------------------------------------------------------ helpers

    def _cut(self, size: int) -> str:
        gone, self._buffer = self._buffer[:size], self._buffer[size:]
        return gone

    def _pass_on(self, text: str, found: list[Piece]) -> None:
        if not self._last or (self._behind and self._last.isspace()):
            text = text.lstrip()
        if text:
            self._last, self._behind = text[-1], False
            self._said += len(text)
            self._hold = self._hold and self._said <= LONGEST_WAIT
            found.append(text)

    def _unthink(self, found: list[Piece]) -> None:
        """All so far was a thought, as far as it is still here."""
        self.orphan = True
        if self._hold:
            found.clear()
            self._held.clear()
            self._last, self._said = "", 0

    def _refuse_length(self, found: list[Piece]) -> None:
        if len(self._buffer) > LONGEST_CALL:
            found.append(BadCall(self._buffer[:200], f"it is longer than {LONGEST_CALL} characters"))
            self._buffer, self._from = "", 0

    def _sort_text(self, text: str) -> list[Piece]:
        calls = read_calls(f"{self._mark.name}\n{text}", self._schemas)
        return [*calls] if calls else [BadCall(text.strip(), UNREAD)]

    def _of_thought(self, text: str) -> list[Piece]:
        """Pieces of a thought that never ended: those behind the last end in it, else the calls that are marked."""
        ends = [at.end() for at in re.finditer(self._mark.closes, text, re.IGNORECASE)]
        inside = Sieve(self._schemas)
        pieces = inside.feed(text[ends[-1] if ends else 0 :]) + inside.finish()
        return pieces if ends else [piece for piece in pieces if isinstance(piece, WrittenCall)]


def joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring words made one."""
    out: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece)
    return out
