"""The one store of a home folder, shared by all its talks: rows in slots, on the disk before anybody is told.

The file is written as a whole at each change, so a kill leaves the state before or after. A lock file with the pid
keeps a second program out; the system lifts the lock of a program that has died, so a stale file locks nobody out.

Promises are compared with the wall clock every second or so: a loop's own timers stand still while the machine sleeps.
A promise that is due stays stored until somebody was told: a front that is connected, or the
loudspeaker. So what was missed while the program was down is told at once, with when it was due.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import fcntl
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias

from assistant.tools.answers import announcement
from assistant.tools.errors import AnswerError
from assistant.tools.memory import MemoryFile
from assistant.tools.rows import MEMORY, RINGS, TIMERS, Cells, Changes, Promise, Row, Thing, from_cells, to_cells
from assistant.tools.wall import later, seconds_between, wall_clock
from capsules.durable import sweep, write_json

LOOK_S = 1.0
"""How late a promise may ring after the machine woke up."""
BACKWARDS_S = 2.0
"""A wall clock that is put back by more than this moves the running timers with it: they are lengths of time."""
VERSION = 1

Change: TypeAlias = tuple[str, Row | None, Row | None]
"""Slot, the row before, the row after."""
log = logging.getLogger(__name__)


class Front(Protocol):
    """Somebody connected whom a promise can be told."""

    @property
    def takes_rings(self) -> bool:
        """Whether it is to be told what rings: a client with tools of its own alone is not."""

    @property
    def listens(self) -> bool:
        """Whether it may be told something now: nobody is speaking."""

    def say(self, text: str) -> bool:
        """Returns whether it will be said."""


class HomeTaken(Exception):
    """Another program has this home open; the message says which."""


class HomeRows:
    """
    path   the file of the rows; None: they are kept in memory only
    now    the wall clock with its zone
    aloud  speaks on this machine's loudspeaker when no front is there, and returns whether it did; None: there is none
    stays  whether the program goes on when its talks are over; otherwise nothing can be promised
    memory the file of the rows that every talk knows; None: they are kept like the others
    pages  whether fronts come and go while the program stays: without a loudspeaker, nothing rings once all are closed
    """

    def __init__(
        self,
        path: Path | None = None,
        now: Callable[[], dt.datetime] = wall_clock,
        aloud: Callable[[str], Awaitable[bool]] | None = None,
        stays: bool = True,
        memory: MemoryFile | None = None,
        pages: bool = False,
    ) -> None:
        self.now, self.aloud, self._stays = now, aloud, stays
        self.only_open = pages and aloud is None
        """Whether a promise holds only while a front is there, which is said with it."""
        self.memory = memory
        self._path, self._lock = path, -1
        self._slots: dict[str, tuple[Row, ...]] = {}
        self._unnoted: dict[str, Changes] = {}
        self.forgetting: tuple[str, ...] = ()
        """The sentences that are out of the memory, or will be at once, and may still be in a talk."""
        self._serial = 0
        self._fronts: list[Front] = []
        self._handle: asyncio.TimerHandle | None = None
        self._aloud_task: asyncio.Task[None] | None = None
        self._seen: tuple[dt.datetime, float] | None = None
        """Wall clock and loop clock at the last look."""

    # ----------------------------------------------------------------------------- opening and closing

    def open(self) -> None:
        """Lock the home and read its rows; nothing if that is done. Raises HomeTaken, and OSError or ValueError for a
        file that cannot be read."""
        if self._path is None or self._lock >= 0:
            return
        lock = _locked(self._path.with_suffix(".lock"))
        try:
            sweep(self._path.parent, self._path.name)
            if self.memory is not None:
                self.memory.sweep_up()
            self._read(self._path)
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock
        self._look_in(0)

    def close(self) -> None:
        """Nothing rings any more, and another program may open the home."""
        if self._handle is not None:
            self._handle.cancel()
        if self._aloud_task is not None:
            self._aloud_task.cancel()
        self._fronts.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _read(self, path: Path) -> None:
        if not path.is_file():
            return
        facts = json.loads(path.read_text("utf-8"))
        if not isinstance(facts, dict) or facts.get("version") != VERSION:
            raise ValueError(f"{path} was not written by this version")
        zone = self.now().tzinfo
        self._serial = int(facts["serial"])
        self._unnoted, self.forgetting = facts.get("unnoted", {}), tuple(facts.get("forgetting", ()))
        self._slots = {
            slot: tuple(from_cells(slot, cells, zone) for cells in rows) for slot, rows in facts["slots"].items()
        }

    def _opened(self) -> None:
        """Raises AnswerError if another program has the home. It is tried again, for that program may have ended."""
        try:
            self.open()
        except HomeTaken as error:
            raise AnswerError(str(error), "Another program has this home open. Please ask me there.") from error

    # ------------------------------------------------------------------------------------ rows

    @property
    def slots(self) -> Sequence[str]:
        return [slot for slot, rows in self._slots.items() if rows]

    def rows(self, slot: str) -> tuple[Row, ...]:
        """The rows of a slot, oldest first. Raises AnswerError if another program has the home."""
        self._opened()
        if slot == MEMORY and self.memory is not None:
            return self.memory.rows()
        return self._slots.get(slot, ())

    @property
    def last_serial(self) -> int:
        """The largest number that a row was ever given."""
        return self._serial

    def next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def unnoted(self, talk: str) -> Changes:
        """The changes of a talk's latest tool call, which a kill may have kept out of the talk's own journal."""
        with suppress(HomeTaken):
            self.open()
        return self._unnoted.get(talk, {})

    def forget_unnoted(self, talk: str) -> None:
        """The journal of the talk has its changes by now."""
        if self._unnoted.pop(talk, None):
            with suppress(OSError):
                self._save()

    def change(self, changes: Iterable[Change], talk: str = "", made: Changes | None = None) -> None:
        """Make these changes, all or none; they are on the disk when this returns. Raises AnswerError.

        made   all changes of the talk's tool call so far; they are stored beside the rows, in one write
        """
        self._opened()
        before = dict(self._slots), dict(self._unnoted), self.forgetting
        if talk:
            self._unnoted[talk] = made or {}
        changes = [*changes]
        again = {new.text for slot, _, new in changes if slot == MEMORY and isinstance(new, Thing)}
        self.forgetting = tuple(one for one in self.forgetting if one not in again)  # or the next start would forget it
        for slot, old, new in changes:
            if slot == MEMORY and self.memory is not None:
                continue
            rows = [row for row in self._slots.get(slot, ()) if old is None or row.serial != old.serial]
            self._slots[slot] = tuple(sorted([*rows, *([] if new is None else [new])], key=lambda row: row.serial))
        try:
            self._save()
            self._change_memory(changes)
        except (OSError, AnswerError) as error:
            self._slots, self._unnoted, self.forgetting = before
            if isinstance(error, AnswerError):
                raise
            raise AnswerError(f"it cannot be stored: {error.strerror}", "I could not store that.") from error
        self._look_in(0)

    def _change_memory(self, changes: Sequence[Change]) -> None:
        """Behind the other rows: a program that is killed between both finds the change noted and not made."""
        found = [(old, new) for slot, old, new in changes if slot == MEMORY]
        if self.memory is not None and found:
            gone = [old.text for old, _ in found if isinstance(old, Thing)]
            new = [row.text for _, row in found if isinstance(row, Thing)]
            self.memory.change(gone, new, f"{self.now():%Y-%m-%d %H:%M}")

    def forget(self, row: Thing) -> None:
        """Take a row out of the memory for good: no change that could bring it back is kept. That it is being forgotten
        is on the disk first, and until `forgotten`. Raises AnswerError."""
        self._opened()
        before = self.forgetting
        self.forgetting = tuple(dict.fromkeys((*before, row.text)))
        try:
            self.change([(MEMORY, row, None)])
        except AnswerError:
            self.forgetting = before
            with suppress(OSError):
                self._save()
            raise
        for talk, changes in self._unnoted.items():
            self._unnoted[talk] = {
                key: change for key, change in changes.items() if not key.endswith(f"{MEMORY} {row.serial}")
            }  # fmt: skip
        with suppress(OSError):
            self._save()

    def forgotten(self, text: str) -> None:
        """Nothing holds the sentence any more."""
        self.forgetting = tuple(one for one in self.forgetting if one != text)
        with suppress(OSError):
            self._save()

    def check_can_ring(self) -> None:
        """Raises AnswerError if nobody could be told later."""
        if not self._stays:
            raise AnswerError(
                "nothing can ring here: this program ends with the talk",
                "I cannot ring here, because this program ends with the talk.",
            )

    def _save(self) -> None:
        if self._path is not None:
            slots: dict[str, list[Cells]] = {slot: [*map(to_cells, self._slots[slot])] for slot in self.slots}
            unnoted = {talk: changes for talk, changes in self._unnoted.items() if changes}
            facts = {"version": VERSION, "serial": self._serial, "slots": slots, "unnoted": unnoted}
            facts |= {"forgetting": self.forgetting} if self.forgetting else {}
            write_json(self._path, facts, indent=1)

    # ------------------------------------------------------------------------------------ ringing

    def connect(self, front: Front) -> None:
        """A front is there; what is due is told to it."""
        self._fronts.append(front)
        self._look_in(0)

    def disconnect(self, front: Front) -> None:
        if front in self._fronts:
            self._fronts.remove(front)

    def _look_in(self, seconds: float) -> None:
        """Look what is due, now and then for as long as there are promises."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if any(self._slots.get(slot) for slot in RINGS):
            self._handle = asyncio.get_running_loop().call_later(seconds, self._look)
        else:
            self._seen = None

    def _look(self) -> None:
        now = self.now()
        self._follow_clock(now)
        waits = LOOK_S
        for slot in RINGS:
            for row in self._slots.get(slot, ()):
                assert isinstance(row, Promise)
                if row.is_due(now):
                    self._ring(slot, row, now)
                elif row.left_s is None:
                    waits = min(waits, seconds_between(now, row.at))
        self._look_in(max(waits, 0.001))

    def _follow_clock(self, now: dt.datetime) -> None:
        loop_time = asyncio.get_running_loop().time()
        if self._seen is not None:
            drift = seconds_between(self._seen[0], now) - (loop_time - self._seen[1])
            if drift < -BACKWARDS_S:
                timers = self._slots.get(TIMERS, ())
                self._slots[TIMERS] = tuple(
                    replace(row, at=later(row.at, drift)) if isinstance(row, Promise) else row for row in timers
                )
        self._seen = now, loop_time

    def _ring(self, slot: str, row: Promise, now: dt.datetime) -> None:
        """Tell every front that listens, or the loudspeaker if there is no front at all."""
        words = announcement(slot, row, now)
        fronts = [front for front in self._fronts if front.takes_rings]
        told = [front.say(words) for front in fronts if front.listens]
        if any(told):
            self._rang(slot, row, now)
        elif not fronts and self.aloud is not None and (self._aloud_task is None or self._aloud_task.done()):
            self._aloud_task = asyncio.ensure_future(self._ring_aloud(self.aloud(words), slot, row, now))

    async def _ring_aloud(self, spoken: Awaitable[bool], slot: str, row: Promise, now: dt.datetime) -> None:
        if await spoken:
            self._rang(slot, row, now)

    def _rang(self, slot: str, row: Promise, now: dt.datetime) -> None:
        """The promise is kept; one that repeats waits for its next time."""
        rest = None if row.repeat is None else replace(row, at=row.repeat.after(row.at, now))
        try:
            self.change([(slot, row, rest)])
        except AnswerError as error:  # told twice after a restart is better than never
            log.warning("a %s rang and is still stored: %s", slot, error)
            self._slots[slot] = tuple(other for other in self._slots[slot] if other.serial != row.serial)


def _locked(path: Path) -> int:
    """A descriptor that holds the lock until it is closed. Raises HomeTaken, OSError."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        pid = os.read(lock, 20).decode("ascii", "replace").strip()
        os.close(lock)
        raise HomeTaken(f"another program (process {pid or 'unknown'}) has {path.parent} open") from error
    with suppress(OSError):  # a full disk: the lock counts, the number in it is for people
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    return lock
