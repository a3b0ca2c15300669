"""Storage for the tools of one talk: timers, alarms, reminders, lists and notes, all as rows in slots.

Rows are plain values, and every change replaces a slot as a whole. So whatever a tool did can be undone together with
its turn, and everything outlives the process alongside the words of the talk.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TypeAlias

from assistant.tools.answers import joined

TIMERS, ALARMS, REMINDERS, NOTES, LIST = "timer", "alarm", "reminder", "note", "list "
Cells: TypeAlias = Sequence[int | str | None]
Slots: TypeAlias = Mapping[str, Sequence[Cells]]
"""Slot → its rows, as JSON."""
_TOLD = {TIMERS: ("stopped", "running again"), ALARMS: ("off", "set again")}
"""Words for something that was removed, and for something that was restored."""


@dataclass(frozen=True, slots=True)
class Row:
    """One stored thing. `words` are spoken at `at` (ISO 8601); `serial` tells similar rows apart."""

    serial: int
    text: str
    label: str = ""
    at: str | None = None
    words: str = ""

    @property
    def moment(self) -> dt.datetime | None:
        return None if self.at is None else dt.datetime.fromisoformat(self.at)


class Kept:
    """`say` speaks a sentence; `now` is the wall clock with its zone."""

    def __init__(
        self,
        say: Callable[[str], None] = lambda words: None,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now().astimezone(),
    ) -> None:
        self._say, self._now = say, now
        self._slots: dict[str, tuple[Row, ...]] = {}
        self._handles: dict[int, asyncio.TimerHandle] = {}
        self._serial = 0
        self.version = 0
        """Number of changes so far."""
        self._closed = False

    @property
    def words(self) -> Iterator[str]:
        """The text of the rows, as the user said it."""
        for rows in self._slots.values():
            for row in rows:
                yield from (row.text, row.label)

    def rows(self, slot: str) -> tuple[Row, ...]:
        return self._slots.get(slot, ())

    def add(self, slot: str, text: str, label: str = "", at: dt.datetime | None = None, words: str = "") -> None:
        self._serial += 1
        row = Row(self._serial, text, label, None if at is None else at.isoformat(), words)
        self._set(slot, (*self.rows(slot), row))

    def remove(self, slot: str, *rows: Row) -> None:
        self._set(slot, [row for row in self.rows(slot) if row not in rows])

    def close(self) -> None:
        """End of the talk: none of its timers goes off any more."""
        self._closed = True
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    # ------------------------------------------------------------------------ taking back, keeping

    def mark(self) -> dict[str, tuple[Row, ...]]:
        """A snapshot of everything, for `changed`."""
        return dict(self._slots)

    def changed(self, mark: Mapping[str, tuple[Row, ...]]) -> Slots:
        """The slots that differ from the snapshot, with their former contents."""
        return {slot: _json(mark.get(slot, ())) for slot, rows in self._slots.items() if rows != mark.get(slot, ())}

    def to_json(self) -> Slots:
        return {slot: _json(rows) for slot, rows in self._slots.items() if rows}

    def resume(self, slots: Slots) -> None:
        """Continue from the output of `to_json`; whatever went off in the meantime is announced now."""
        for slot, rows in slots.items():
            self._set(slot, _rows(rows))

    def put_back(self, slots: Slots) -> None:
        """Restore the slots that `changed` returned, except rows that have gone off since."""
        for slot, rows in slots.items():
            self._set(slot, self._still(slot, rows))

    def told(self, slots: Slots) -> str:
        """Describe in sentences what `put_back` will change."""
        sentences = []
        for slot, rows in slots.items():
            before, after = self.rows(slot), self._still(slot, rows)
            sentences += _sentences(slot, [row for row in before if row not in after], again=False)
            sentences += _sentences(slot, [row for row in after if row not in before], again=True)
        return " ".join(sentences)

    # ------------------------------------------------------------------------------------ inside

    def _still(self, slot: str, rows: Sequence[Cells]) -> list[Row]:
        """The rows that have not gone off yet; reminders stay even after they have."""
        found = []
        for row in _rows(rows):
            if row.moment is None or row.moment > self._now():
                found.append(row)
            elif slot == REMINDERS:
                found.append(replace(row, at=None))
        return found

    def _set(self, slot: str, rows: Iterable[Row]) -> None:
        before, after = self.rows(slot), tuple(rows)
        self._slots[slot] = after
        self.version += 1
        self._serial = max([self._serial, *(row.serial for row in after)])
        for row in before:
            if row not in after and (handle := self._handles.pop(row.serial, None)) is not None:
                handle.cancel()
        for row in after:
            if row not in before and row.moment is not None and not self._closed:
                seconds = max(0.0, (row.moment - self._now()).total_seconds())
                self._handles[row.serial] = asyncio.get_running_loop().call_later(seconds, self._ring, slot, row)

    def _ring(self, slot: str, row: Row) -> None:
        del self._handles[row.serial]
        rung = [replace(row, at=None)] if slot == REMINDERS else []
        self._set(slot, [other for one in self.rows(slot) for other in (rung if one == row else [one])])
        self._say(row.words)


def _json(rows: Iterable[Row]) -> list[Cells]:
    return [list(astuple(row)) for row in rows]


def _rows(rows: Sequence[Cells]) -> list[Row]:
    return [_row(cells) for cells in rows]


def _row(cells: Cells) -> Row:
    match cells:
        case [int(serial), str(text), str(label), str() | None as at, str(words)]:
            return Row(serial, text, label, at, words)
    raise ValueError(f"{cells!r} is no row of what tools keep: number, text, label, moment or null, words")


def _sentences(slot: str, rows: Sequence[Row], *, again: bool) -> list[str]:
    """The timer of 5 minutes is stopped."""
    if not rows:
        return []
    if slot.startswith(LIST):
        things, name = joined([row.text for row in rows]), f"the {slot.removeprefix(LIST)} list"
        return [f"I put {things} on {name} again." if again else f"I took {things} off {name}."]
    told = _TOLD.get(slot, ("gone", "back"))[again]
    return [f"The {_name(slot, row)} is {told}." for row in rows]


def _name(slot: str, row: Row) -> str:
    if slot == TIMERS:
        return f"{row.label} timer of {row.text}" if row.label else f"timer of {row.text}"
    return f"alarm at {row.text}" if slot == ALARMS else f"{slot}, {row.text},"
