"""Timers, alarms, lists and notes as a person sees and changes them by hand: `HouseholdKeeper` of the contracts.

No talk made these changes, so no "undo that" takes them back. `give_back` does, for a caller who kept the result of
`take_away`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from assistant.base.errors import PeerError
from assistant.tools import answers
from assistant.tools.errors import AnswerError
from assistant.tools.home import Change, HomeRows
from assistant.tools.rows import ALARMS, LIST, NOTES, RINGS, TIMERS, Cells, Promise, Row, from_cells, to_cells
from assistant.tools.wall import later, seconds_between

Told: TypeAlias = Mapping[str, object]
LONGEST_S: Final = 366 * 86_400.0
"""A timer is not set to more than this."""


class HandsOnHome:
    """All methods raise PeerError: `not_found`, or `not_changed` with the reason."""

    def __init__(self, home: HomeRows) -> None:
        self._home = home

    def everything(self) -> Told:
        """Everything that is to ring, soonest first, and every list and note.

        left_s  seconds until it rings; of a paused timer, until it would
        """
        home = self._home
        now = home.now()
        promises = [(slot, row) for slot in RINGS for row in self._rows(slot) if isinstance(row, Promise)]
        rings = sorted((_promise(slot, row, now) for slot, row in promises), key=lambda told: str(told["at"]))
        lists = [slot for slot in home.slots if slot not in RINGS]
        return {"rings": rings, "lists": [_list(slot, self._rows(slot)) for slot in lists]}

    def take_away(self, key: str) -> list[tuple[str, Cells]]:
        """Stop or remove the row of this number, or empty the list of this key. Returns slots and cells of the rows,
        which are stored nowhere else from then on."""
        if key.isdecimal():
            found = [self._found(int(key))]
        else:
            found = [(key, row) for row in self._rows(key)] if key not in RINGS else []
        if not found:
            raise PeerError("not_found", f"there is no list {key[:60]!r}")
        self._change(*((slot, row, None) for slot, row in found))
        return [(slot, to_cells(row)) for slot, row in found]

    def give_back(self, removed: Sequence[tuple[str, Cells]]) -> None:
        """Store again the rows that `take_away` returned; one that was due meanwhile rings at once."""
        home = self._home
        try:
            rows = [(str(slot), from_cells(str(slot), cells, home.now().tzinfo)) for slot, cells in removed]
        except (ValueError, TypeError) as error:
            raise PeerError("not_changed", f"that was not removed here: {error}") from error
        taken = {row.serial for slot in home.slots for row in self._rows(slot)}
        if any(row.serial in taken or row.serial > home.last_serial for _, row in rows):
            raise PeerError("not_changed", "that is there already, or was never here")
        self._change(*((slot, None, row) for slot, row in rows))

    def adjust_timer(self, serial: int, *, paused: bool | None = None, add_s: float = 0.0) -> None:
        """Pause a timer, let it go on, or give it more time."""
        slot, row = self._found(serial)
        if slot != TIMERS or not isinstance(row, Promise):
            raise PeerError("not_changed", "only a timer can be paused or given more time")
        now = self._home.now()
        left = (seconds_between(now, row.at) if row.left_s is None else row.left_s) + add_s
        if not 0 < left <= LONGEST_S:
            raise PeerError("not_changed", "a timer has between one second and a year left")
        still = row.left_s is not None if paused is None else paused
        self._change((slot, row, replace(row, at=later(now, left), left_s=left if still else None)))

    # -------------------------------------------------------------------------------- inside

    def _rows(self, slot: str) -> Sequence[Row]:
        try:
            return self._home.rows(slot)
        except AnswerError as error:
            raise PeerError("not_changed", str(error)) from error

    def _change(self, *changes: Change) -> None:
        try:
            self._home.change(changes)
        except AnswerError as error:
            raise PeerError("not_changed", str(error)) from error

    def _found(self, serial: int) -> tuple[str, Row]:
        for slot in dict.fromkeys((*RINGS, *self._home.slots)):
            for row in self._rows(slot):
                if row.serial == serial:
                    return slot, row
        raise PeerError("not_found", f"nothing here has the number {serial}; it may have rung")


def _promise(slot: str, row: Promise, now: dt.datetime) -> Told:
    left = seconds_between(now, row.at) if row.left_s is None else row.left_s
    return {
        "id": row.serial, "kind": slot, "told": _told(slot, row, now), "at": row.at.astimezone(dt.UTC).isoformat(),
        "left_s": round(max(0.0, left), 3), "paused": row.left_s is not None,
    }  # fmt: skip


def _told(slot: str, row: Promise, now: dt.datetime) -> str:
    if slot == TIMERS:
        return answers.timer(row.text, row.label)
    if slot == ALARMS:
        return answers.alarm(row.at, now, row.repeat)
    return answers.entry(row.text, answers.when(row.at, now, row.repeat))


def _list(slot: str, rows: Sequence[Row]) -> Told:
    name = "notes" if slot == NOTES else slot.removeprefix(LIST)
    things = [{"id": row.serial, "text": row.words} for row in rows]
    return {"key": slot, "name": name, "things": things}
