"""A file that is either complete or absent: written aside, synced, renamed, and the directory synced.

The name appears only after every byte is on the disk, so whatever happens in between (the process killed, the disk
full, the machine off) leaves either the old file or the new one. What a killed writer left aside is swept later.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

PART = ".part"
SLICE = 8 << 20  # bytes per write call


def write_durably(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file as a whole, replacing one of the same name only at the end.

    Raises OSError (full disk, no permission, ...); then nothing has changed and nothing is left aside.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # tells `sweep` that the writer is alive
        for chunk in chunks:
            _write_all(file, memoryview(chunk).cast("B"))
        os.fsync(file)
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
    """Write facts as a whole. Raises OSError, or TypeError or ValueError for what JSON cannot say; nothing has changed.

    indent  spaces per level, for files that people read; those end with a line break
    ASCII alone is written, so that no text can fail to be encoded.
    """
    write_text(path, json.dumps(value, indent=indent) + ("\n" if indent else ""))


def remove_durably(path: Path) -> None:
    """Remove a file for good; one that is gone already is fine."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def sweep(folder: Path) -> int:
    """Remove what killed writers left aside; returns how many files. Writers that live are not disturbed."""
    removed = 0
    for aside in folder.glob(f".*{PART}"):
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


def sync_folder(folder: Path) -> None:
    """Make renames and removals inside a directory last."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, chunk: memoryview) -> None:
    while chunk:
        chunk = chunk[os.write(file, chunk[:SLICE]) :]
