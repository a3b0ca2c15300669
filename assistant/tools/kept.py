"""A talk's view of the store of its home: reads and changes rows, and records its own changes for an undo.

An undo takes back exactly what this talk did. A row that another talk has changed since is left as it is.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from assistant.tools import answers
from assistant.tools.errors import AnswerError
from assistant.tools.home import Change, Front, HomeRows
from assistant.tools.memory import serial_of
from assistant.tools.moments import Moment
from assistant.tools.rows import (
    ALARMS,
    LIST,
    MEMORY,
    NOTES,
    TIMERS,
    Changes,
    Promise,
    Row,
    Thing,
    composed,
    from_cells,
    to_cells,
)

_TOLD = {TIMERS: ("stopped", "running again"), ALARMS: ("off", "set again")}
"""Words for something that was removed, and for something that was restored."""


ONLY_OPEN = "I can ring only while a page of mine is open."
ELSEWHERE = "It will sound on the computer that I run on."
MUTE = "nothing could ring: this front has no sound of its own then, and the computer that I run on has no loudspeaker"
MUTE_SAID = "I cannot do that here, because nothing could ring: the computer that I run on has no loudspeaker."
UNDONE = "undone "
"""Before the key of a change that the home's store took back and the talk's journal may not have."""


class Kept:
    """Without a home the rows are this talk's alone, in memory."""

    def __init__(
        self, home: HomeRows | None = None, notes: Callable[[], str] = lambda: NOTES,
        passing: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """`notes`: the slot that a note goes to. `passing`: whether the talk's front is gone when something rings."""
        self.home = home if home is not None else HomeRows()
        self.notes, self._passing = notes, passing
        self._front: Front | None = None
        self._talk = ""
        self._changes: Changes = {}
        self._told_bounds = False

    @property
    def words(self) -> Iterator[str]:
        """The text of the rows, as the user said it; nothing if another program has the home."""
        for slot in self.home.slots:
            yield from (row.words for row in self.home.rows(slot))

    def things(self, slot: str) -> list[Thing]:
        return [row for row in self.home.rows(slot) if isinstance(row, Thing)]

    def promises(self, slot: str) -> list[Promise]:
        return [row for row in self.home.rows(slot) if isinstance(row, Promise)]

    def add(self, slot: str, *texts: str) -> None:
        """Put things on a list, or take notes. Something that is remembered already is not added again, so that an undo
        does not take it away."""
        if slot == MEMORY:
            texts = tuple(text for text in texts if text not in {row.text for row in self.things(slot)})
        serials = [serial_of(text) if slot == MEMORY else self.home.next_serial() for text in texts]
        self._change(*((slot, None, Thing(one, text)) for one, text in zip(serials, texts, strict=True)))

    def promise(self, slot: str, text: str, moment: Moment, label: str = "") -> Promise:
        """Store what is to ring at a moment. Raises AnswerError if nothing could ring."""
        self.home.check_can_ring()
        if self._passing() and self.home.aloud is None and not self.home.only_open:
            raise AnswerError(MUTE, MUTE_SAID)
        row = Promise(self.home.next_serial(), text, moment.at, label, moment.repeat)
        self._change((slot, None, row))
        return row

    def bounds(self) -> str:
        """Said with the first promise of a talk: where it rings, if that is not here or not always; "" otherwise."""
        told, self._told_bounds = self._told_bounds, True
        bounds = ONLY_OPEN if self.home.only_open else ELSEWHERE if self._passing() else ""
        return "" if told else bounds

    def replace(self, slot: str, old: Promise, new: Promise) -> None:
        self._change((slot, old, replace(new, serial=old.serial)))

    def remove(self, slot: str, *rows: Row) -> None:
        self._change(*((slot, row, None) for row in rows))

    # -------------------------------------------------------------------------------- fronts

    def connect(self, front: Front, talk: str = "", recorded: Changes | None = None) -> None:
        """The talk has a front; what rings is told to it from now on.

        recorded   the changes that the talk's journal knows. A program that was killed between the store's write and
                   the journal's leaves a change that the talk never made: it is taken back here
        """
        self._front, self._talk = front, talk
        known = {key: _plain(change) for key, change in (recorded or {}).items()}
        lost: Changes = {}
        for key, (before, after) in self.home.unnoted(talk).items():
            undone = key.startswith(UNDONE)
            if (known.get(key.removeprefix(UNDONE)) == [before]) if undone else (known.get(key) != [after]):
                lost = {**lost, key.removeprefix(UNDONE): (before, after)}
        if lost:
            self.home.change(self._backwards(lost), talk)
        self.home.connect(front)

    def disconnect(self) -> None:
        if self._front is not None:
            self.home.disconnect(self._front)
            self.home.forget_unnoted(self._talk)
            self._front = None

    # ------------------------------------------------------------------------------- taking back

    def collect_changes(self) -> Changes:
        """The changes of this talk since this was called last."""
        changes, self._changes = self._changes, {}
        return changes

    def put_back(self, changes: Changes) -> list[Change]:
        """Undo these changes, except for what rang or was changed elsewhere since; returns what was done. A kill before
        the journal notes it undoes the undo when the talk opens again."""
        undone = {f"{UNDONE}{key}": (after, before) for key, (before, after) in changes.items()}
        done = self._backwards(changes)
        self.home.change(done, self._talk, undone)
        return done

    def settle(self) -> None:
        """The journal is about to forget changes that stay."""
        self.home.forget_unnoted(self._talk)

    def told(self, changes: Changes) -> str:
        """Describe in sentences what `put_back` will change."""
        sentences = []
        backwards = self._backwards(changes)
        for slot in dict.fromkeys(slot for slot, _, _ in backwards):
            gone = [old for where, old, _ in backwards if where == slot and old is not None]
            back = [new for where, _, new in backwards if where == slot and new is not None]
            sentences += _sentences(slot, gone, again=False)
            sentences += _sentences(slot, back, again=True)
        return " ".join(sentences)

    def _backwards(self, changes: Changes) -> list[Change]:
        found: list[Change] = []
        now = self.home.now()
        for key, (before_cells, after_cells) in changes.items():
            slot, _, serial = key.rpartition(" ")
            before = None if before_cells is None else from_cells(slot, before_cells, now.tzinfo)
            after = None if after_cells is None else from_cells(slot, after_cells, now.tzinfo)
            current = next((row for row in self.home.rows(slot) if row.serial == int(serial)), None)
            if before is not None and not _same(current, after):
                continue
            target = None if before is None else _alive(before, now)
            if current != target:
                found.append((slot, current, target))
        return found

    def _change(self, *changes: Change) -> None:
        made = self._changes
        for slot, old, new in changes:
            row = new if new is not None else old
            assert row is not None
            made = composed(made, {f"{slot} {row.serial}": (_cells(old), _cells(new))})
        self.home.change(changes, self._talk, made)
        self._changes = made


def _plain(change: Iterable[object]) -> list[object]:
    """A row's cells after a change, as JSON holds them."""
    return [*change][1:]


def _cells(row: Row | None) -> list[int | float | str | None] | None:
    return None if row is None else [*to_cells(row)]


def _same(current: Row | None, after: Row | None) -> bool:
    """Whether a row is as this talk left it; one that comes again may have rung since."""
    if isinstance(current, Promise) and isinstance(after, Promise) and current.repeat is not None:
        return current == replace(after, at=current.at)
    return current == after


def _alive(row: Row, now: dt.datetime) -> Row | None:
    """The row as it may come back; what would have rung meanwhile does not."""
    if not isinstance(row, Promise) or not row.is_due(now):
        return row
    return None if row.repeat is None else replace(row, at=row.repeat.after(row.at, now))


def _sentences(slot: str, rows: list[Row], *, again: bool) -> list[str]:
    """The timer of 5 minutes is stopped."""
    if not rows:
        return []
    if slot.startswith(LIST):
        things, name = answers.joined([row.text for row in rows]), f"the {slot.removeprefix(LIST)} list"
        return [f"I put {things} on {name} again." if again else f"I took {things} off {name}."]
    told = _TOLD.get(slot, ("gone", "back"))[again]
    return [f"The {_name(slot, row)} is {told}." for row in rows]


def _name(slot: str, row: Row) -> str:
    if not isinstance(row, Promise):
        return f"{slot}, {row.text},"
    if slot == TIMERS:
        return f"{row.label} timer of {row.text}" if row.label else f"timer of {row.text}"
    if slot == ALARMS:
        return f"alarm at {answers.clock(row.at)}"
    return f"reminder, {answers.entry(row.text, f'at {answers.short_clock(row.at)}')},"
