"""Journals: tables of JSON rows in memory, and on disk the changes made to them, in order.

Each change is one entry (`durable.EntryFile`), written when it is made: anything reported afterwards can rely on the
change outliving the process. Another thread then syncs it, and from then on it outlives the machine too. A journal that
has grown to several times the size of its tables is rewritten, aside. If the disk is full, changes from then on are not
stored, and `trouble` says so; the next change tries again with all of it.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from capsules.durable import (
    HEAD,
    EntryFile,
    entry_bytes,
    read_entries,
    sweep,
    sync_folder,
    write_durably,
)

log = logging.getLogger(__name__)

SUFFIX = ".journal"
_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")  # longer ones could not be file names
SLACK = 64 << 10
"""Bytes that a journal may always have, and how much history triggers a rewrite: this share plus the size of the
present tables."""

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Rows: TypeAlias = Mapping[str, JSON]


class Journal:
    """One journal. Its tables may be changed from any thread.

    torn     bytes at the file's end that were not whole when it was opened, and were cut off
    trouble  why the last change is not on disk; "" if it is
    """

    def __init__(self, path: Path, offload: Callable[[Callable[[], None]], object]) -> None:
        """Raises OSError, ValueError for a file that cannot be read; BlockingIOError while another has it open."""
        self.trouble = ""
        self._path, self._offload = path, offload
        self._tables: dict[str, dict[str, JSON]] = {}
        self._lock = threading.RLock()
        self._rewriting = threading.Lock()
        self._file: EntryFile | None = None
        self._since: list[bytes] | None = None
        """Entries added since a rewrite of the journal began; None while there is none."""
        self._small = 0
        """Its size in bytes after the last rewrite."""
        self._syncing = False
        self.torn = 0
        if path.exists():
            found = read_entries(path)
            for payload in found.payloads:
                _apply(self._tables, payload)
            self.torn = found.torn
            self._file = EntryFile(path, found.end)
        if self.torn:
            log.warning(
                "%s: its last %d bytes were not whole (the machine or the disk gave out while they were written) and "
                "were cut off; all before them is kept", path, self.torn,
            )  # fmt: skip

    def table(self, name: str) -> Rows:
        """The rows of a table, in order; empty if there is no such table. Do not change them."""
        return self._tables.get(name, {})

    def copied(self) -> Mapping[str, Rows]:
        """All tables, as they are now. Any thread may call this."""
        with self._lock:
            return {name: dict(rows) for name, rows in self._tables.items()}

    def put(self, name: str, rows: Rows, *, ordered: bool = False, sync: bool = True) -> bool:
        """Replace a table's rows. False: it was not written, `trouble` says why, and the next `put` tries again.

        ordered  their order matters; otherwise an existing row keeps its place
        sync     False: this change alone need only outlive the process, not the machine; the next one is synced with it
        """
        return self.put_all({name: rows}, ordered=(name,) if ordered else (), sync=sync)

    def put_all(self, tables: Mapping[str, Rows], *, ordered: Collection[str] = (), sync: bool = True) -> bool:
        """The same for several tables in one entry: after a kill all of them have changed, or none."""
        with self._lock:
            changes = []
            for name, rows in tables.items():
                gone, new = difference(self._tables.get(name, {}), rows, name in ordered)
                if gone or new:
                    changes.append((name, gone, new))
            if not changes:
                return not self.trouble
            payload = _packed(changes)
            try:
                if self._file is None:
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    self._file = EntryFile(self._path)
                self._file.append(payload)
            except OSError as error:
                self._failed(error)
                return False
            self.trouble = ""
            _apply(self._tables, payload)
            if self._since is not None:
                self._since.append(payload)
            if sync:
                self._later()
            return True

    def delete_file(self) -> None:
        """Delete the journal; nothing of it is needed any more."""
        with self._lock:
            self._tables, self._since = {}, None
            self._let_file_go()
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def close_file(self) -> None:
        """Sync and close the file."""
        with self._lock:
            if self._file is not None:
                self._sync()
            self._let_file_go()

    # ------------------------------------------------------------------------------------- inside

    def _let_file_go(self) -> None:
        file, self._file = self._file, None  # first, so a sync that meets the close does not count as a failure
        if file is not None:
            file.close_file()

    def _later(self) -> None:
        if not self._syncing:
            self._syncing = True
            self._offload(self._settle)

    def _settle(self) -> None:
        """On another thread: sync, and rewrite the journal if it has too much history."""
        self._syncing = False  # first, so additions from here on ask again
        self._sync()
        file = self._file
        if file is not None and file.end > SLACK + 2 * self._small and self._rewriting.acquire(blocking=False):
            try:
                self._write_anew()
            finally:
                self._rewriting.release()

    def _sync(self) -> None:
        file = self._file
        if file is None:
            return
        try:
            file.sync_to_disk()
        except OSError as error:
            if file is self._file:  # else it was closed or replaced meanwhile, synced
                self._failed(error)

    def rewrite(self) -> bool:
        """Write only the current tables; changes made meanwhile follow them. A rewrite under way is waited for: it may
        have begun before the latest change. False: the file still holds what it held."""
        with self._rewriting:
            return self._write_anew()

    def _write_anew(self) -> bool:
        with self._lock:
            if self._file is None:
                return True
            self._since = []
            payloads = [_packed([(name, [], rows)]) for name, rows in self._tables.items()]
        aside = self._path.with_name(f".{self._path.name}.new")
        try:
            write_durably(aside, _whole(payloads))
            with self._lock:
                self._replace(aside)
            return True
        except OSError as error:  # the old one is whole and stays in use
            log.warning("%s could not be written anew: %s", self._path, error.strerror or error)
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            return False
        finally:
            self._since = None

    def _replace(self, aside: Path) -> None:
        if self._file is None or self._since is None:  # removed or closed meanwhile
            aside.unlink(missing_ok=True)
            return
        new = EntryFile(aside, aside.stat().st_size)
        self._small = new.end
        for payload in self._since:
            new.append(payload)
        new.sync_to_disk()
        aside.rename(self._path)
        sync_folder(self._path.parent)
        self._let_file_go()
        self._file, new.path = new, self._path

    def _failed(self, error: OSError) -> None:
        trouble = (
            f"{self._path.name} could not be written: {error.strerror or error}. The talk goes on; what is said from "
            "here on will not outlive this process unless there is room again"
        )
        if trouble != self.trouble:  # report once, until something is written again
            log.warning("%s", trouble)
        self.trouble = trouble


class Journals:
    """The journals of a folder, by name; each is open once.

    writer  syncs and compacts in the background; None: do it at once
    """

    def __init__(self, folder: Path | None, writer: Executor | None = None) -> None:
        """folder  None: nothing is stored"""
        self._folder, self._writer = folder, writer
        self._open: dict[str, Journal] = {}
        self._guard = threading.Lock()
        if folder is not None:
            with suppress(OSError):  # leftovers of killed writers are only in the way
                sweep(folder)
                for aside in folder.glob(f".*{SUFFIX}.new"):
                    aside.unlink(missing_ok=True)

    @property
    def folder(self) -> Path | None:
        return self._folder

    def open(self, name: str) -> Journal | None:
        """The journal of this name; None without a folder, or if the name is invalid. Raises OSError, ValueError."""
        path = self._path(name)
        if path is None:
            return None
        with self._guard:
            if name not in self._open:
                self._open[name] = Journal(path, self._offload)
            return self._open[name]

    def find(self, name: str) -> Journal | None:
        """An open journal."""
        return self._open.get(name)

    def tables_of(self, name: str) -> Mapping[str, Rows]:
        """The tables of a journal as they are now, open or not, even in another process. Any thread may call this.
        Raises OSError, ValueError."""
        with self._guard:  # a process that closes a file loses every lock that it has on it
            journal, path = self._open.get(name), self._path(name)
            if journal is not None:
                return journal.copied()
            if path is None:
                raise FileNotFoundError(f"there is no journal {name!r}")
            return read_tables(path)

    def __contains__(self, name: str) -> bool:
        path = self._path(name)
        return name in self._open or (path is not None and path.is_file())

    def stamp(self, name: str) -> object:
        """A value that changes whenever something is added to a journal, or it is rewritten; None without a file."""
        path = self._path(name)
        try:
            found = None if path is None else path.stat()
        except OSError:
            return None
        return found and (found.st_ino, found.st_size)

    def close(self, name: str) -> None:
        """Close a journal until it is opened again."""
        if (journal := self._open.pop(name, None)) is not None:
            journal.close_file()

    def remove(self, name: str) -> None:
        """Delete a journal, open or not."""
        journal, path = self._open.pop(name, None), self._path(name)
        if journal is not None:
            journal.delete_file()
        elif path is not None:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path | None:
        """Return the file of a name; None for names that do not look like an id."""
        if self._folder is None or not _NAME.fullmatch(name):
            return None
        return self._folder / f"{name}{SUFFIX}"

    def _offload(self, work: Callable[[], None]) -> None:
        if self._writer is None:
            work()
            return
        with suppress(RuntimeError):  # shut down: closing the journal syncs it
            self._writer.submit(work)


def read_tables(path: Path) -> Mapping[str, Rows]:
    """The tables of a journal that is not open in this process. Raises OSError, ValueError."""
    tables: dict[str, dict[str, JSON]] = {}
    for payload in read_entries(path).payloads:
        _apply(tables, payload)
    return tables


def difference(before: Rows, after: Rows, ordered: bool) -> tuple[list[str], dict[str, JSON]]:
    """The step from one table to another: keys to remove, then rows to set, which go to the end if they are new."""
    gone = [key for key in before if key not in after]
    moved: dict[str, None] = {}
    if ordered:
        order = iter(after)
        for key in before:  # a row keeps its place as long as those before it do
            if key in after and (moved or next(order) != key):
                moved[key] = None
    new = {key: row for key, row in after.items() if key in moved or key not in before or before[key] != row}
    return [*gone, *moved], new


def _packed(changes: Sequence[tuple[str, list[str], Rows]]) -> bytes:
    """An entry: for each changed table its name, the keys to remove and the rows to set."""
    return zlib.compress(json.dumps(changes, separators=(",", ":")).encode(), 1)


def _apply(tables: dict[str, dict[str, JSON]], payload: bytes) -> None:
    """Raises ValueError for entries that `_packed` did not write."""
    try:
        changes = json.loads(zlib.decompress(payload))
    except zlib.error as error:
        raise ValueError(f"an entry cannot be unpacked ({error})") from error
    for name, gone, new in changes:
        table = tables.setdefault(name, {})
        for key in gone:
            table.pop(key, None)
        table.update(new)
        if not table:
            del tables[name]


def _whole(payloads: list[bytes]) -> Iterator[bytes]:
    """The bytes of a file with these entries."""
    yield HEAD
    at = len(HEAD)
    for payload in payloads:
        entry = entry_bytes(at, payload)
        at += len(entry)
        yield entry
