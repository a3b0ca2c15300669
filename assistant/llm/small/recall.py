"""The line that tells what is asked for, by the words that both share. For a model too small to find it alone.

Pure: what was said in, a line out. The small model hears that something told is asked for and knows how one answers;
which of ten lines it was, it takes for another every fifth time. A larger model knows better and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from assistant.contracts import Line
from assistant.llm.small.by_heart import DAY
from assistant.llm.small.slots import COMMON, spoken, stem, words_of

SAID, TOLD, NOT_YET = "You said:", "Your", "You have not told me yet."
"""How the shipped model begins to repeat a line and to say what it was told, and says that it was not told."""
KEPT = "I will remember that."
"""Its reply to a statement."""
ASKS = words_of("how know recall remember remind what when where which who whose")
"""A line that begins with one of these asks for something …"""
OF_QUESTIONS = COMMON | ASKS | words_of("again call called color date day kind mine name number place sort")
"""… and these need not have been said where the answer was told: `which day`."""
OF_WORDS = words_of("ask asked first hear last opening repeat said say")
"""A question with one of these may be about any line, not only those that told something."""
LEAST = 1 / 2  # the share of the words of a question that a line must hold to be what is asked for
WHEN = rf"(?i:\d|{DAY.pattern}|\b(?:first|second|third|\w{{3,}}th|noon|\w*night|morning|evening|\w*today)\b)"
ANSWERS = (
    (r"\b(?:when|what time|(?:what|which) (?:day|date|month|year)|how (?:many|much|old|far))\b", WHEN),
    (r"\b(?:who|whose|name|named|called)\b", r"[A-Z]|'s\b|\b(?:name|named|called)\b"),
)
"""How one asks for a number, a day or a name, and what a line must hold to answer that."""


@dataclass(frozen=True, slots=True)
class Recall:
    """The told lines that may be repeated.

    said     the user's lines that may be meant, as the model repeats them
    nearest  the one that tells what is asked for, if any does
    """

    said: tuple[str, ...] = ()
    nearest: str = ""


def what_was_told(lines: Sequence[Line]) -> Recall:
    """By the last line, if it is the user's."""
    if not lines or lines[-1].role != "user":
        return Recall()
    asked = lines[-1].text
    before = [line.text for line in lines[:-1] if line.role == "user"]
    told = [line.text for line, reply in pairwise(lines) if line.role == "user" and _tells(line.text, reply)]
    answers = [text for text in told if all(re.search(it, text) or not re.search(asks, asked) for asks, it in ANSWERS)]
    nearest = _nearest(words_of(asked), answers)
    said = before if words_of(asked) & OF_WORDS or not told else told
    return Recall(tuple(dict.fromkeys(map(_repeated, said))), _repeated(nearest) if nearest else "")


def _tells(text: str, reply: Line) -> bool:
    """Whether a line told something: it was kept, or neither done nor a question."""
    first = words_of(" ".join(spoken(text)[:1]))
    return reply.text == KEPT or not (first & ASKS or any(call.name != "note_add" for call in reply.calls))


def _repeated(text: str) -> str:
    return f"{SAID} {text.rstrip('.?!')}."


def _nearest(asked: frozenset[str], told: Sequence[str]) -> str:
    """The line that tells most of what is asked for, the last of equal ones; empty if none tells enough."""
    wanted = {*map(stem, asked - OF_QUESTIONS)}
    if not wanted:
        return ""
    shares = [len(wanted & {*map(stem, words_of(text))}) / len(wanted) for text in told]
    most = max(shares, default=0.0)
    return told[len(shares) - 1 - shares[::-1].index(most)] if most >= LEAST else ""
