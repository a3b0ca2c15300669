"""A digest of every byte of a checkpoint: computed once, then trusted as long as its files look untouched.

The result is stored in a small file beside the weights, or elsewhere if that folder cannot be written, with size,
inode and times of every file. A file that was written since has another time, so its digest is computed again. Changes
that leave no trace (a failing disk, a tool that resets the times) are found by `recheck`.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from capsules.durable import write_json
from capsules.feed import read_exactly
from capsules.safefile import SafeFile, TensorEntry
from capsules.shards import Source, locate, open_files

NOTE = "weights.digest.json"
SMALL_BYTES = 64 << 20
"""Below this size reading everything takes less than a tenth of a second, so nothing is stored."""
SETTLED_S = 2.0
"""A file written this recently could be written again with the same time, so its digest is not stored yet."""
PIECE = 4 << 20  # bytes read and hashed at a time
_SPAN = 64 << 20  # bytes of a whole file that one thread hashes


@dataclass(frozen=True)
class Rechecked:
    """The digest of every byte now, and the one from the first reading; "" if that is not known."""

    digest: str
    kept: str
    nbytes: int

    @property
    def changed(self) -> bool:
        return self.kept not in ("", self.digest)


def digest(source: Source, skip: Sequence[str] = ()) -> str:
    """A hex digest of names, dtypes, shapes and every byte of a checkpoint; the names of its files do not matter.

    skip  patterns of tensors that nobody loads: they do not count
    Raises WeightsError or CapsuleDamaged for files that are not a checkpoint.
    """
    everything = sorted(locate(open_files(source)).items())
    located = [(name, place) for name, place in everything if not any(fnmatchcase(name, one) for one in skip)]
    whole = hashlib.blake2b(b"full", digest_size=16)
    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        files: dict[Path, int] = {}
        for _, (file, _) in located:
            if file.path not in files:
                files[file.path] = os.open(file.path, os.O_RDONLY)
                stack.callback(os.close, files[file.path])
        parts = pool.map(lambda item: _tensor_digest(files[item[1][0].path], item[1][1]), located)
        for (name, (_, entry)), part in zip(located, parts, strict=True):
            whole.update(f"{len(name)} {name} {entry.dtype} {list(entry.shape)}\n".encode() + part)
    return whole.hexdigest()


def known_digest(folder: Path, aside: Path | None = None, skip: Sequence[str] = ()) -> str:
    """The same digest, from the stored one if no file of the checkpoint was touched since.

    aside  a folder to use if nothing can be stored beside the weights
    """
    files = open_files(folder)
    return _known(lambda: stamps(files), lambda: digest(folder, skip), _places(folder, aside), skip)


def file_digest(path: Path, aside: Path | None = None) -> str:
    """A hex digest of every byte of one file, stored in `aside` alone: its folder may be another program's."""
    places = [] if aside is None else _places(path, aside)[1:]
    return _known(lambda: {path.name: _stamp(path)}, lambda: _bytes_digest(path), places)


def recheck(folder: Path, aside: Path | None = None) -> Rechecked:
    """Read every byte that a stored digest covers, and compare."""
    notes = [note for place in _places(folder, aside) if (note := _read(place)) is not None]
    nbytes = sum(file.size for file in open_files(folder))
    skip = notes[0]["skip"] if notes else ()
    return Rechecked(digest(folder, skip), str(notes[0]["digest"]) if notes else "", nbytes)


def _bytes_digest(path: Path) -> str:
    size = path.stat().st_size
    spans = [TensorEntry("", "U8", (), at, min(_SPAN, size - at)) for at in range(0, size, _SPAN)]
    whole = hashlib.blake2b(b"file", digest_size=16)
    with path.open("rb") as opened, ThreadPoolExecutor(8) as pool:
        for part in pool.map(lambda span: _tensor_digest(opened.fileno(), span), spans):
            whole.update(part)
    return whole.hexdigest()


def _tensor_digest(file: int, entry: TensorEntry) -> bytes:
    state = hashlib.blake2b(digest_size=16)
    buffer = memoryview(bytearray(min(PIECE, entry.nbytes)))
    for at in range(0, entry.nbytes, PIECE):
        part = buffer[: min(PIECE, entry.nbytes - at)]
        read_exactly(file, entry.offset + at, part)
        state.update(part)
    return state.digest()


def stamps(files: list[SafeFile]) -> dict[str, dict[str, int]]:
    """For each file by name, the facts that show whether it was written since."""
    return {file.path.name: _stamp(file.path) for file in files}


def _stamp(path: Path) -> dict[str, int]:
    seen = path.stat()
    return {
        "bytes": seen.st_size, "inode": seen.st_ino,
        "modified_ns": seen.st_mtime_ns, "changed_ns": seen.st_ctime_ns,
    }  # fmt: skip


def _known(
    stamps_now: Callable[[], dict[str, dict[str, int]]],
    compute: Callable[[], str],
    places: list[Path],
    skip: Sequence[str] = (),
) -> str:
    """A stored digest if the files look untouched; else computed, and stored in the first writable place."""
    now = stamps_now()
    if sum(stamp["bytes"] for stamp in now.values()) < SMALL_BYTES:
        return compute()
    for place in places:
        note = _read(place)
        if note is not None and note["files"] == now and note["skip"] == list(skip):
            return str(note["digest"])
    found = compute()
    latest_ns = max(max(stamp["modified_ns"], stamp["changed_ns"]) for stamp in now.values())
    if stamps_now() == now and time.time_ns() - latest_ns > SETTLED_S * 1e9:
        _keep(places, {"digest": found, "files": now, "skip": list(skip)})
    return found


def _places(folder: Path, aside: Path | None) -> list[Path]:
    """Places for a note: beside the weights first."""
    name = hashlib.blake2b(str(folder.resolve()).encode(), digest_size=16).hexdigest()
    return [folder / NOTE, *([] if aside is None else [aside / f"{name}.json"])]


def _read(place: Path) -> dict[str, Any] | None:
    """Read a note; a damaged one counts as absent."""
    try:
        note = json.loads(place.read_text("utf-8"))
        note.setdefault("skip", [])
        whole = all(isinstance(note[name], kind) for name, kind in (("digest", str), ("files", dict), ("skip", list)))
        return note if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _keep(places: list[Path], note: dict[str, Any]) -> None:
    """Store a note in the first writable place; without one, every byte is read again next time."""
    for place in places:
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            write_json(place, note, indent=1)
            return
