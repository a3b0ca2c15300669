"""Lists and notes: things that were said are found again by their bare noun, in any case."""

from __future__ import annotations

import json
import re
from typing import Final

from assistant.tools import answers
from assistant.tools.errors import AnswerError
from assistant.tools.kept import Kept
from assistant.tools.rows import LIST, NOTES, Thing

SHOPPING: Final = "shopping"
ONE_THING: Final = (
    "mac and cheese", "macaroni and cheese", "salt and pepper", "fish and chips", "bread and butter", "oil and vinegar",
    "ham and cheese", "peanut butter and jelly", "peanut butter and jam", "half and half", "cookies and cream",
    "rice and beans", "bacon and eggs", "gin and tonic", "cheese and crackers", "strawberries and cream",
    "sweet and sour", "black and white", "nuts and bolts", "bed and breakfast",
)  # fmt: skip
"""Pairs that are bought as one. Whether another pair is one thing, no list can say; commas and semicolons part it."""
_AND: Final = re.compile(r"(?:,\s*)?\band\b", re.IGNORECASE)
_PAIRS: Final = re.compile(rf"\b(?:{'|'.join(ONE_THING)})\b", re.IGNORECASE)
_SMALL_WORDS: Final = frozenset(["a", "an", "the", "some", "my", "our", "of", "any", "more"])


class ListTools:
    """`kept` is the talk's view of the store."""

    kept: Kept

    async def list_add(self, items: str, list: str = SHOPPING) -> str:
        "Put things on a list; several are separated by semicolons."
        things = things_in(items)
        self.kept.add(LIST + list.lower(), *things)
        return ", ".join(things)

    async def list_remove(self, items: str, list: str = SHOPPING) -> str:
        "Take things off a list; several are separated by semicolons."
        slot = LIST + list.lower()
        found: dict[int, Thing] = {}
        for thing in self._wanted(items, self.kept.things(slot)):
            rows = [row for row in found_things(thing, self.kept.things(slot)) if row.serial not in found]
            if not rows:
                return f"{thing} is not on the list"
            if len({row.text.lower() for row in rows}) > 1:
                shown = " or ".join(row.text for row in rows)
                raise AnswerError(f"several things fit {thing!r}: {shown}", f"Which one: {shown}?")
            found[rows[-1].serial] = rows[-1]
        self.kept.remove(slot, *found.values())
        return ", ".join(row.text for row in found.values())

    async def list_read(self, list: str = SHOPPING) -> str:
        "Read what is on a list."
        return ", ".join(row.text for row in self.kept.things(LIST + list.lower())) or "empty"

    async def list_clear(self, list: str = SHOPPING) -> str:
        "Empty a list."
        self.kept.remove(LIST + list.lower(), *self.kept.things(LIST + list.lower()))
        return "cleared"

    async def note_add(self, text: str) -> str:
        "Take a note."
        self.kept.add(self.kept.notes(), text)
        return "noted"

    async def note_read(self) -> str:
        "All notes."
        slots = dict.fromkeys((NOTES, self.kept.notes()))
        return answers.listed([row.text for slot in slots for row in self.kept.things(slot)], "no notes")

    def _wanted(self, items: str, rows: list[Thing]) -> list[str]:
        """The things to remove; a text that is on the list as it stands is one thing, whatever words are in it."""
        return [items] if found_things(items, rows, exactly=True) else things_in(items)


def things_in(items: str) -> list[str]:
    """`milk, eggs and mac and cheese` → milk, eggs, mac and cheese. A JSON list and semicolons part things exactly."""
    if items.lstrip().startswith("["):
        try:
            listed = json.loads(items)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return _some([str(item) for item in listed])
    if ";" in items or "\n" in items:
        return _some(re.split(r"[;\n]", items))
    return _some([thing for part in items.split(",") for thing in _parted(part)])


def _parted(text: str) -> list[str]:
    """At each `and` that is not inside a pair."""
    pairs = [match.span() for match in _PAIRS.finditer(text)]
    cuts = [m.span() for m in _AND.finditer(text) if not any(a <= m.start() < b for a, b in pairs)]
    edges = [0, *(edge for cut in cuts for edge in cut), len(text)]
    return [text[begin:end] for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def _some(things: list[str]) -> list[str]:
    found = [thing.strip(" .,") for thing in things if thing.strip(" .,")]
    if not found:
        raise AnswerError("there is nothing to put down", "What shall I put down?")
    return found


def found_things(thing: str, rows: list[Thing], *, exactly: bool = False) -> list[Thing]:
    """The rows of this text; else those that hold all of its words: `the milk` finds `two litres of milk`."""
    same = [row for row in rows if _bare(row.text) == _bare(thing)]
    if same or exactly:
        return same
    return [row for row in rows if _bare(thing) and set(_bare(thing)) <= set(_bare(row.text))]


def _bare(text: str) -> list[str]:
    """Words without articles, in one case and number: `The Eggs` → egg."""
    words = [word.casefold().removesuffix("s") for word in re.findall(r"[^\W_]+(?:'[^\W_]+)?", text)]
    return [word for word in words if word not in _SMALL_WORDS]
