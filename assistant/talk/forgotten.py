"""A remembered sentence taken out of a talk: the exchanges that stored it and asked to forget it, and all of its words
wherever a question and its answer, or either alone, have them together.

Pure. A mark stands in place of words that were taken out, so the talk keeps its order and its ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from assistant.events import AudioPart, FunctionCall, FunctionOutput, Message, TextPart, WordsForgotten
from assistant.talk.conversation import Entry, item_text
from assistant.tools.memory import serial_of
from assistant.tools.rows import MEMORY

MARK = "[forgotten]"
SMALL = frozenset(
    ["i", "you", "he", "she", "it", "we", "they", "me", "my", "your", "his", "her", "our", "their", "is", "are", "am",
     "was", "were", "be", "a", "an", "the", "to", "of", "that", "and", "in", "at", "on", "has", "have"]
)  # fmt: skip


def without_fact(entries: Iterable[Entry], fact: str) -> list[Entry]:
    """The same entries in their order; those that hold nothing of the sentence are the very same."""
    found = list(entries)
    key = f"{MEMORY} {serial_of(fact)}"
    wanted = _words(fact)
    stored = {at for at, entry in enumerate(found) if key in entry.changes or _forgets(entry, wanted)}
    told = {at for at in range(len(found)) for place in stored if _exchange(found, at) == _exchange(found, place)}
    words = [_words(_text(entry)) for entry in found]
    for begin, end in _asked_and_answered(found):
        if wanted <= frozenset().union(*words[begin:end]):
            told.update(at for at in range(begin, end) if wanted & words[at])
    return [_marked(entry, key) if at in told else entry for at, entry in enumerate(found)]


def told_as_forgotten(entries: Iterable[Entry]) -> WordsForgotten:
    """Report the entries that hold the mark now."""
    found = list(entries)
    responses = dict.fromkeys(entry.response_id for entry in found if entry.response_id is not None)
    return WordsForgotten(tuple(entry.item.id for entry in found if not entry.hidden), tuple(responses), MARK)


def tells(text: str, fact: str) -> bool:
    """Whether all words that carry the sentence are among these."""
    return _words(fact) <= _words(text)


def _asked_and_answered(entries: list[Entry]) -> Iterator[tuple[int, int]]:
    """Begin and end of the stretches from one's words to the end of the other's: `what is my code`, `it is 4711`."""
    said = [at for at, entry in enumerate(entries) if isinstance(entry.item, Message) or at == 0]
    ends = [*said[2:], len(entries), len(entries)]
    yield from zip(said, ends[: len(said)], strict=True)


def _exchange(entries: list[Entry], at: int) -> int:
    """The place of the last words of the user up to here."""
    while at > 0 and not (isinstance(item := entries[at].item, Message) and item.role == "user"):
        at -= 1
    return at


def _words(text: str) -> frozenset[str]:
    """The words that carry it: "you like tea" tells as much as "I like tea"."""
    found = frozenset(re.findall(r"\w+", text.casefold()))
    return found - SMALL or found


def _forgets(entry: Entry, wanted: frozenset[str]) -> bool:
    item = entry.item
    if not isinstance(item, FunctionCall) or item.name != "forget":
        return False
    return bool(_words(item.arguments) & wanted)


def _text(entry: Entry) -> str:
    item = entry.item
    match item:
        case Message():
            unheard = (piece.text for piece in entry.pieces)  # a message that was cut keeps them
            return " ".join((item_text(item), *unheard))
        case FunctionCall():
            return item.arguments
        case FunctionOutput():
            return item.output


def _marked(entry: Entry, key: str) -> Entry:
    item = entry.item
    changes = {name: change for name, change in entry.changes.items() if name != key}
    match item:
        case Message():
            parts = [AudioPart(MARK) if isinstance(part, AudioPart) else TextPart(MARK) for part in item.content][:1]
            return replace(entry, item=replace(item, content=tuple(parts)), pieces=(), changes=changes)
        case FunctionCall():
            return replace(entry, item=replace(item, arguments="{}"), changes=changes)
        case FunctionOutput():
            return replace(entry, item=replace(item, output=MARK), changes=changes)
