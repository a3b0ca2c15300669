"""Files that are either complete or absent, and entries at the end of a file that are.

A file is written aside, synced, renamed, and the directory synced. The name appears only after every byte is on the
disk, so an interruption (the process killed, the disk full, the machine off) leaves either the old file or the new one.
Leftovers of a killed writer are swept later.

An entry is appended with its length and a checksum over its place and its bytes. An incomplete entry at the end of a
file was never promised to anybody, and is cut off before anything is added.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

PART = ".part"
SLICE = 8 << 20  # bytes per write call
HEAD = b"entries/1\n"
DIGEST = 16  # bytes


def write_durably(
    path: Path, chunks: Iterable[bytes | memoryview], before: Callable[[], None] = lambda: None
) -> None:
    """Write a file as a whole, replacing one of the same name only at the end.

    before  called when all is on the disk and only the name is missing; may raise too
    Raises OSError (full disk, no permission, ...); then nothing has changed and nothing is left aside.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # shows `sweep` that the writer is alive
        for chunk in chunks:
            _write_all(file, memoryview(chunk).cast("B"))
        os.fsync(file)
        before()
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)
    sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text as a whole, in UTF-8. Raises OSError; then nothing has changed."""
    write_durably(path, [text.encode()])


def write_json(path: Path, value: object, indent: int | None = None) -> None:
    """Write facts as a whole. Raises OSError, or TypeError or ValueError for values outside JSON; then nothing has
    changed.

    indent  spaces per level, for files that people read; those end with a line break
    The output is pure ASCII, so no text can fail to be encoded.
    """
    write_text(path, json.dumps(value, indent=indent) + ("\n" if indent else ""))


def remove_durably(path: Path) -> None:
    """Remove a file for good; a missing file is fine."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only process at work in a folder. Raises BlockingIOError while another is; OSError.

    On file systems that cannot lock a folder (NFS), nobody is kept out; durably written files stay whole there, too.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def sweep(folder: Path, name: str = "") -> int:
    """Remove leftovers of killed writers; returns how many files. Live writers are not disturbed. `name`: of this file
    only, in a folder that others use too."""
    removed = 0
    for aside in folder.glob(f".{name}*{PART}"):
        try:
            file = os.open(aside, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            aside.unlink(missing_ok=True)
            removed += 1
        except BlockingIOError:
            pass
        finally:
            os.close(file)
    return removed


@dataclass(frozen=True)
class Entries:
    """The contents of a file of entries. `end`: where the last whole one ends; `torn`: the bytes after it."""

    payloads: tuple[bytes, ...]
    end: int
    torn: int


def read_entries(path: Path) -> Entries:
    """Read every entry up to the first that is not whole. Raises OSError."""
    data = memoryview(path.read_bytes())
    found: list[bytes] = []
    at = len(HEAD) if data[: len(HEAD)] == HEAD else len(data) + 1
    end = len(HEAD) if at <= len(data) else 0
    while at + 4 + DIGEST <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        payload = bytes(data[at + 4 + DIGEST : at + 4 + DIGEST + length])
        if len(payload) < length or data[at + 4 : at + 4 + DIGEST] != _digest(at, payload):
            break
        found.append(payload)
        at += 4 + DIGEST + length
        end = at
    return Entries(tuple(found), end, len(data) - end)


def entry_bytes(at: int, payload: bytes) -> bytes:
    """The bytes of an entry at this place of a file."""
    return len(payload).to_bytes(4, "little") + _digest(at, payload) + payload


class EntryFile:
    """A file of entries, open for appending. Other processes are kept out; within its own, the caller ensures that
    there is one writer."""

    def __init__(self, path: Path, end: int = 0) -> None:
        """end  the end that `read_entries` found; the rest is cut off. 0: begin a new file. Raises OSError;
        BlockingIOError while another process has it, and then nothing has changed.

        On file systems that cannot lock a file (NFS), nobody is kept out.
        """
        self.path, self.end, self._named = path, end, end > 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise
        except OSError:
            pass
        try:
            os.ftruncate(self._file, end)
            if not end:
                self._write_entry(HEAD)
        except BaseException:
            os.close(self._file)
            if not end:
                path.unlink(missing_ok=True)
            raise

    def append(self, payload: bytes) -> None:
        """Add one entry: from then on it survives the process, and after `sync` the machine. Raises OSError (full disk,
        ...); then nothing has changed."""
        self._write_entry(entry_bytes(self.end, payload))

    def sync_to_disk(self) -> None:
        """Wait until everything added is on the disk. From any thread. Raises OSError."""
        os.fsync(self._file)
        if not self._named:
            sync_folder(self.path.parent)
            self._named = True

    def close_file(self) -> None:
        os.close(self._file)

    def _write_entry(self, data: bytes) -> None:
        os.lseek(self._file, self.end, os.SEEK_SET)
        try:
            _write_all(self._file, memoryview(data))
        except BaseException:
            os.ftruncate(self._file, self.end)
            raise
        self.end += len(data)


def _digest(at: int, payload: bytes) -> bytes:
    return blake2b(at.to_bytes(8, "little") + payload, digest_size=DIGEST).digest()


def sync_folder(folder: Path) -> None:
    """Make renames and removals inside a directory durable."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, chunk: memoryview) -> None:
    while chunk:
        chunk = chunk[os.write(file, chunk[:SLICE]) :]
