"""Kinds of tools that a client may declare: how each is called, described and asked for, and their domains.

A kind is a shape of tool with holes: `{t}` is the thing that it is about (`declared.txt` has them, by domain), every
other hole is a parameter. Whole domains are held out, by hash: their tools are never trained on.
"""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from recipes.texts.phrases import sections, split_phrases
from recipes.texts.words import Split, held_out


@dataclass(frozen=True, slots=True)
class Hole:
    """A parameter of a kind: its possible names, the source of its values, whether a tool may lack it."""

    names: tuple[str, ...]
    source: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ToolShape:
    """A shape of tool. `lines` are requests; the holes in one are the values it states. `looks`: it reports
    something."""

    names: tuple[str, ...]
    tells: tuple[str, ...]
    lines: tuple[str, ...]
    holes: dict[str, Hole]
    looks: bool = False

    def groups(self) -> dict[frozenset[str], tuple[str, ...]]:
        """The lines, grouped by the parameters that they state."""
        found: dict[frozenset[str], list[str]] = {}
        for line in self.lines:
            found.setdefault(frozenset(self.holes) & {*re.findall(r"{(\w+)}", line)}, []).append(line)
        return {said: tuple(lines) for said, lines in found.items()}


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A line of a domain: a kind, the things, and the fillings of its holes."""

    kind: str
    things: tuple[str, ...]
    more: tuple[tuple[str, ...], ...] = ()


def _row(line: str) -> ToolRow:
    kind, _, rest = line.partition(": ")
    things, *more = (tuple(part.strip() for part in each.split(",")) for each in rest.split(" = "))
    return ToolRow(kind, things, tuple(more))


DOMAINS: Final = {name: tuple(map(_row, lines)) for name, lines in sections("declared.txt").items()}
ALWAYS_HELD: Final = ("lights", "laundry")
"""Held out by name, not by hash: what people try first, and a domain about the house."""


@cache
def domains(split: Split) -> tuple[str, ...]:
    """The domains that a split may use: a fifth, by hash, is for scoring only."""
    kept = (
        name
        for name in DOMAINS
        if (name in ALWAYS_HELD or held_out(f"domain {name}") or held_out(f"of {name}")) == (split == "test")
    )
    return tuple(kept)


PLACES: Final = (
    "kitchen", "bedroom", "hall", "bathroom", "cellar", "attic", "garden", "office", "garage", "nursery", "balcony",
    "library", "lobby", "basement", "studio", "terrace", "pantry", "living room", "dining room", "guest room",
    "first floor", "back yard",
)  # fmt: skip

_PLACE: Final = Hole(("room", "place", "location", "zone", "area", "site"), "place", optional=True)


def _lines(text: str) -> tuple[str, ...]:
    return split_phrases(";".join(line.strip() for line in text.strip().splitlines()))


KINDS: Final[dict[str, ToolShape]] = {
    "switch": ToolShape(
        ("set_{t}", "switch_{t}", "turn_{t}", "{t}_switch", "control_{t}", "{t}_power", "{t}", "toggle_{t}"),
        ("switch the {t} on or off", "turn a {t} on or off", "{t} on or off", "controls the {t}", "power of the {t}", "set the {t} on or off", "switches the {t}"),
        _lines("""
        ~turn {state} the {t}; ~switch the {t} {state}; ~turn the {t} {state}; {t} {state}; i want the {t} {state}; the {t} [should be|has to be|must be] {state}
        ~put the {t} {state}; ~switch {state} the {t}; ~get the {t} {state}; can we have the {t} {state}; ~make the {t} go {state}
        ~turn {state} the {t} in the {place}; ~switch the {t} in the {place} {state}; ~switch {state} the {place} {t}; {place} {t} {state}
        i want the {t} in the {place} {state}; ~turn the {place} {t} {state}; in the {place} the {t} {state}; ~put the {t} in the {place} {state}
        the {t} in the {place} [should|must] be {state}; ~switch the {place} {t} {state}; {state} with the {t} in the {place}
        ~change the {t} in the {place}; [do|change] something about the {t} in the {place}; the {t} in the {place} [please|again]; ~switch the {t} in the {place}
        ~switch the {t}; ~change the {t}; the {t} please; do something with the {t}
        """),
        {"state": Hole(("state", "power", "on", "action", "status", "switch"), "onoff"), "place": _PLACE},
    ),
    "level": ToolShape(
        ("set_{t}_{p}", "{t}_{p}", "set_{p}", "change_{t}", "set_{t}", "adjust_{t}", "{t}_level"),
        ("set the {p} of the {t}", "{p} of the {t}", "change the {t}", "how high the {t} is", "adjusts the {p} of a {t}", "sets the {t}", "the {t} up or down"),
        _lines("""
        ~set the {t} to {n} {u}; ~turn the {t} to {n} {u}; {t} to {n} {u}; ~put the {t} [on|at] {n} {u}; i want the {t} at {n} {u}; the {t} should be at {n} {u}
        ~set the {p} of the {t} to {n}; ~change the {t} to {n}; {t} {p} {n}; ~make the {t} {n} {u}; ~bring the {t} to {n} {u}; {n} {u} for the {t}
        ~set the {t} in the {place} to {n} {u}; ~turn the {place} {t} to {n} {u}; {place} {t} to {n} {u}; ~put the {t} in the {place} [on|at] {n} {u}
        i want the {t} in the {place} at {n} {u}; ~change the {place} {t} to {n}; in the {place} the {t} at {n} {u}; {n} {u} for the {t} in the {place}
        ~change the {t}; ~set the {t}; ~adjust the {t}; ~change the {p} of the {t}; i want another {p} for the {t}; ~adjust the {p} of the {t}
        ~change the {t} in the {place}; ~adjust the {place} {t}; ~set the {t} in the {place}; i want another {p} for the {t} in the {place}
        """),
        {"n": Hole((), "number"), "place": _PLACE},
    ),
    "choose": ToolShape(
        ("set_{t}_{p}", "{t}_{p}", "choose_{p}", "select_{p}", "set_{p}", "change_{t}", "pick_{p}"),
        ("set the {p} of the {t}", "{p} of the {t}", "choose a {p} for the {t}", "changes the {t}", "select the {t} {p}", "which {p} the {t} has"),
        _lines("""
        ~set the {t} to {value}; ~change the {t} to {value}; ~make the {t} {value}; {t} {value}; i want the {t} on {value}; ~put the {t} on {value}
        ~switch the {t} to {value}; ~set the {p} of the {t} to {value}; the {t} should be on {value}; ~select {value} for the {t}; {p} {value} for the {t}; i would like {value} on the {t}
        ~set the {t} in the {place} to {value}; ~change the {place} {t} to {value}; {place} {t} {value}; ~make the {t} in the {place} {value}
        i want {value} for the {t} in the {place}; ~switch the {t} in the {place} to {value}; ~put the {place} {t} on {value}; in the {place} the {t} on {value}
        ~change the {p} of the {t}; ~set the {t}; i want another {p} on the {t}; ~change the {t}; ~choose another {p} for the {t}; a new {p} for the {t} please
        ~change the {t} in the {place}; ~change the {p} of the {t} in the {place}; another {p} for the {place} {t}; ~set the {place} {t}
        """),
        {"value": Hole((), "listed"), "place": _PLACE},
    ),
    "act": ToolShape(
        ("{t}_control", "control_{t}", "move_{t}", "operate_{t}", "set_{t}", "{t}", "{t}_action"),
        ("{acts} the {t}", "{acts} a {t}", "to {acts} the {t}", "controls the {t}", "moves the {t}", "what to do with the {t}"),
        _lines("""
        ~{act} the {t}; {act} the {t} please; i want you to {act} the {t}; ~{act} that {t}; it is time to {act} the {t}; can we {act} the {t}
        somebody should {act} the {t}; would you {act} the {t}; let us {act} the {t}; {me} {act} the {t}
        ~{act} the {t} in the {place}; ~{act} the {place} {t}; in the {place} {act} the {t}; i want you to {act} the {t} in the {place}; it is time to {act} the {place} {t}
        would you {act} the {t} in the {place}; can we {act} the {place} {t}
        ~do something with the {t}; the {t} please; ~see to the {t}; what about the {t}
        ~do something with the {t} in the {place}; the {place} {t} please; ~see to the {t} in the {place}; the {t} in the {place} please
        """),
        {"act": Hole(("action", "command", "move", "verb", "order"), "acts"), "place": _PLACE},
    ),
    "play": ToolShape(
        ("play_{t}", "play", "start_{t}", "{t}_player", "put_on_{t}", "find_{t}"),
        ("play a {t}", "plays the {t} of that name", "put on a {t}", "start a {t}", "finds a {t} and plays it"),
        _lines("""
        ~play the {t} {text}; ~put on the {t} {text}; ~play {text}; i want to hear the {t} {text}; ~start the {t} {text}; the {t} {text} please; i would like the {t} {text}
        ~play me the {t} {text}; can we have the {t} {text}; i feel like the {t} {text}; let us hear {text}
        ~play the {t} {text} in the {place}; ~put on the {t} {text} in the {place}; in the {place} play the {t} {text}; i want the {t} {text} in the {place}; ~start the {t} {text} in the {place}
        ~play a {t}; ~play me some {t}; ~put on a {t}; i want a {t}; ~start a {t}; a {t} please
        ~play a {t} in the {place}; a {t} in the {place} please; ~put on a {t} in the {place}; i want a {t} in the {place}
        """),
        {"text": Hole(("title", "name", "query", "search", "track"), "words"), "place": _PLACE},
    ),
    "send": ToolShape(
        ("send_{t}", "write_{t}", "{t}_send", "new_{t}", "post_{t}", "deliver_{t}"),
        ("send a {t} to somebody", "write somebody a {t}", "sends a {t}", "a {t} to a person", "writes and sends a {t}"),
        _lines("""
        ~send {who} a {t} that says {text}; ~write {who} a {t} saying {text}; ~send a {t} to {who} that says {text}; {t} to {who} {text}; ~send {who} the {t} {text}
        ~write a {t} to {who} that {text}; ~send {who} a {t} {text}; i want to send {who} a {t} that says {text}; new {t} to {who} {text}
        ~send {who} a {t}; ~write {who} a {t}; ~send a {t} to {who}; a {t} to {who} please; i want to write a {t} to {who}; i need a {t} to {who}
        ~send a {t} that says {text}; ~write a {t} saying {text}; a {t} that says {text}; i want to send a {t} that says {text}
        """),
        {"who": Hole(("recipient", "contact", "person", "name", "receiver"), "name"), "text": Hole(("text", "body", "message", "content", "words"), "words")},
    ),
    "lookup": ToolShape(
        ("get_{t}", "find_{t}", "{t}", "look_up_{t}", "{t}_info", "show_{t}", "read_{t}", "check_{t}"),
        ("the {t} for a {p}", "get the {t}", "get the current {t} for a {p}", "returns the {t}", "the {t} in a {p}", "looks up the {t} of a {p}", "find the {t} by {p}", "what the {t} is", "tells the {t}"),
        _lines("""
        what is the {t} for {key}; ~tell me the {t} for {key}; ~look up the {t} for {key}; {t} for {key}; ~check the {t} for {key}; what about the {t} for {key}; ~find the {t} for {key}
        what is the {t} in {key}; how is the {t} in {key}; what's the {t} like in {key}; ~tell me the {t} of {key}; what is the {t} of {key}; {t} {key}; ~look up {key} in the {t}
        what does the {t} say about {key}; do you know the {t} of {key}; i want to know the {t} of {key}; ~check the {t} of {key}; ~give me the {t} in {key}; {key} {t} please
        i need the {t} for {key}; is there a {t} for {key}; ~show me the {t} for {key}; how is the {t} for {key}; do you have the {t} for {key}; ~get me the {t} for {key}
        what is the {t}; ~tell me the {t}; ~look up the {t}; ~check the {t}; i need the {t}; ~show me the {t}; how is the {t}; ~find the {t}
        """),
        {"key": Hole((), "key")},
        looks=True,
    ),
    "status": ToolShape(
        ("get_{t}", "{t}_status", "check_{t}", "read_{t}", "{t}_state", "{t}", "query_{t}", "show_{t}"),
        ("how the {t} is", "state of the {t}", "reads the {t}", "what the {t} says", "checks the {t}", "tells about the {t}"),
        _lines("""
        how is the {t}; ~check the {t}; what does the {t} say; is the {t} okay; ~read the {t}; ~tell me about the {t}; how is the {t} doing; what is the state of the {t}
        ~look at the {t}; ~give me the state of the {t}; what about the {t}; anything new from the {t}; {t} please
        how is the {t} in the {place}; ~check the {place} {t}; what does the {t} in the {place} say; is the {t} in the {place} okay; ~read the {place} {t}; ~look at the {t} in the {place}
        """),
        {"place": _PLACE},
        looks=True,
    ),
    "plain": ToolShape(
        ("{v}_{t}", "{t}_{v}", "{v}_the_{t}", "do_{v}_{t}", "{v}_{t}_now"),
        ("{v} the {t}", "to {v} the {t}", "{v} a {t}", "{v} the {t} now", "{t}: {v}"),
        _lines("""
        ~{v} the {t}; {v} the {t} please; i want you to {v} the {t}; ~{v} that {t}; it is time to {v} the {t}; can we {v} the {t}; please {v} the {t} now; would you {v} the {t}
        let us {v} the {t}; {me} {v} the {t}; you may {v} the {t}; time to {v} the {t}
        ~{v} the {t} in the {place}; ~{v} the {place} {t}; in the {place} {v} the {t}; i want you to {v} the {t} in the {place}; would you {v} the {place} {t}
        """),
        {"place": _PLACE},
    ),
    "order": ToolShape(
        ("order_from_{t}", "{t}_order", "order", "order_{p}", "add_{p}", "{t}", "buy_{p}", "get_{p}"),
        ("order a {p} from the {t}", "orders from the {t}", "a {p} of the {t}", "buy a {p} at the {t}", "asks the {t} for a {p}"),
        _lines("""
        ~order {value} from the {t}; ~get {value} from the {t}; {value} from the {t} please; i want {value} from the {t}; ~ask the {t} for {value}; i would like {value} from the {t}; ~buy {value} at the {t}
        ~order {n} {value} from the {t}; ~get {n} {value} from the {t}; {n} {value} from the {t} please; i want {n} {value} from the {t}; ~ask the {t} for {n} {value}; we need {n} {value} from the {t}
        ~order something from the {t}; i want something from the {t}; ~call the {t}; ~order at the {t}; i want to order from the {t}
        ~order {n} from the {t}; i want {n} from the {t}; {n} from the {t} please; ~get {n} from the {t}
        """),
        {"value": Hole((), "listed"), "n": Hole(("count", "number", "amount", "quantity"), "count", optional=True)},
    ),
    "event": ToolShape(
        ("add_{t}", "{t}_add", "add_to_{t}", "new_{t}_entry", "write_{t}", "enter_{t}"),
        ("put something in the {t}", "adds an entry to the {t}", "new entry in the {t}", "writes in the {t}", "an appointment for the {t}"),
        _lines("""
        ~put {text} in the {t} for {day}; ~add {text} to the {t} on {day}; ~write {text} in the {t} for {day}; {text} on {day} in the {t}; ~enter {text} in the {t} on {day}; i have {text} on {day} put it in the {t}
        ~put {text} in the {t} for {day} at {time}; ~add {text} to the {t} on {day} at {time}; {text} on {day} at {time} in the {t}; ~write {text} in the {t} for {day} at {time}; ~enter {text} in the {t} on {day} at {time}
        ~put {text} in the {t}; ~add {text} to the {t}; ~write {text} in the {t}; {text} for the {t}; i have {text} put it in the {t}
        ~put something in the {t} for {day}; ~write something in the {t} on {day}; a new entry in the {t} for {day}; ~add an entry to the {t} on {day}
        ~put {text} in the {t} at {time}; ~add {text} to the {t} at {time}; ~write {text} in the {t} at {time}; {text} in the {t} at {time}
        """),
        {"text": Hole(("title", "entry", "event", "subject", "name"), "words"), "day": Hole(("day", "date", "weekday"), "day"),
         "time": Hole(("time", "hour", "start"), "time", optional=True)},
    ),
    "go": ToolShape(
        ("send_{t}", "{t}_go", "move_{t}", "{t}_to", "drive_{t}", "guide_{t}"),
        ("send the {t} to a {p}", "the {t} goes to a {p}", "moves the {t}", "drive the {t} somewhere", "where the {t} should go"),
        _lines("""
        ~send the {t} to the {value}; ~move the {t} to the {value}; {t} to the {value}; the {t} should go to the {value}; i want the {t} at the {value}; ~drive the {t} to the {value}
        ~bring the {t} to the {value}; ~let the {t} go to the {value}; ~get the {t} to the {value}; the {value} is where the {t} should go; i need the {t} at the {value}
        ~send the {t}; ~move the {t}; the {t} has to go; ~drive the {t} somewhere; ~send the {t} away; i need the {t} elsewhere
        """),
        {"value": Hole((), "listed")},
    ),
    "log": ToolShape(
        ("add_{t}", "log_{q}", "{t}_add", "write_{t}", "record_{q}", "set_{t}", "new_{t}"),
        ("write {q} in the {t}", "adds to the {t}", "record {u} in the {t}", "{u} for the {t}", "enters {q} and {p} in the {t}"),
        _lines("""
        ~put {n} {u} for {value} in the {t}; ~write {n} {u} for {value} in the {t}; ~add {n} {u} for {value} to the {t}; {n} {u} for {value} in the {t}; {t} {n} {u} for {value}; ~enter {n} {u} for {value} in the {t}
        ~record {n} {u} for {value} in the {t}; {value} {n} {u} in the {t}; the {t} gets {n} {u} for {value}
        ~put {n} {u} in the {t}; ~write {n} {u} in the {t}; ~add {n} {u} to the {t}; {n} {u} in the {t}; ~enter {n} {u} in the {t}
        ~put something for {value} in the {t}; ~add {value} to the {t}; ~write {value} in the {t}; {value} in the {t}
        """),
        {"n": Hole((), "number"), "value": Hole((), "listed")},
    ),
}  # fmt: skip
