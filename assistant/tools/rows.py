"""Values that tools store: things on lists and notes, and promises to ring. A promise always has its moment."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from assistant.tools.repeats import Repeat

TIMERS, ALARMS, REMINDERS, NOTES, LIST, MEMORY = "timer", "alarm", "reminder", "note", "list ", "memory"
"""Slots. That of a list goes on with its name."""
RINGS: Final = (TIMERS, ALARMS, REMINDERS)

Cells: TypeAlias = Sequence[int | float | str | None]
"""A row as JSON."""
Changes: TypeAlias = Mapping[str, Sequence[Cells | None]]
"""Slot and number of each row that was changed → the row before and after; None where it was not there."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something on a list, or a note. `serial` tells similar rows apart and is never used again."""

    serial: int
    text: str

    @property
    def words(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Promise:
    """Something that rings at `at`: a timer (`text`: its length), an alarm, or a reminder. `left_s`: of a timer that is
    paused, the seconds that it has left; it does not ring."""

    serial: int
    text: str
    at: dt.datetime
    label: str = ""
    repeat: Repeat | None = None
    left_s: float | None = None

    @property
    def words(self) -> str:
        return f"{self.text} {self.label}".strip()

    def is_due(self, now: dt.datetime) -> bool:
        return self.left_s is None and self.at.astimezone(dt.UTC) <= now.astimezone(dt.UTC)


Row: TypeAlias = Thing | Promise


def to_cells(row: Row) -> Cells:
    if isinstance(row, Thing):
        return [row.serial, row.text]
    rule = None if row.repeat is None else row.repeat.rule
    return [row.serial, row.text, row.at.isoformat(), row.label, rule, row.left_s]


def from_cells(slot: str, cells: Cells, zone: dt.tzinfo | None) -> Row:
    """The inverse of `to_cells`, with moments in this zone. Raises ValueError for what is not a row of this slot."""
    match cells:
        case [int(serial), str(text)] if slot not in RINGS:
            return Thing(serial, text)
        case [int(serial), str(text), str(at), str(label), str() | None as rule, int() | float() | None as left_s] if (
            slot in RINGS
        ):
            moment = dt.datetime.fromisoformat(at)
            if moment.tzinfo is None:
                raise ValueError(f"{at} has no zone")
            repeat = None if rule is None else Repeat.from_rule(rule)
            return Promise(serial, text, moment.astimezone(zone), label, repeat, left_s)
    raise ValueError(f"{cells!r} is not a row of {slot!r}")


def composed(first: Changes, then: Changes) -> Changes:
    """Both changes as one: each row before the first and after the last."""
    return {**first, **{key: (first.get(key, change)[0], change[1]) for key, change in then.items()}}
