"""Recordings stored on disk: the next start reads them instead of running the steps again.

A recording is a function of the code, the model's facts, the library, the processor and the layout of the buffers. All
of these are in its digest, so after a change of any of them nothing is found and the step is recorded anew. Only a file
that was written whole is used; one that cannot be read counts as absent.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from capsules.exec import native
from capsules.exec.buffer import Buffer
from capsules.exec.recorder import OwnerOf, Recording
from capsules.exec.shapekey import ShapeKey
from capsules.exec.tape import Tape

FORMAT = "recordings/1"
SOURCES = ("*.py", "*.cpp", "*.h")
CODES_KEPT = 3
"""How many versions of the code keep their recordings; those used longest ago go first."""


@cache
def code_digest(*packages: str) -> str:
    """A digest of every source file of some packages and of this one: their recordings may differ if a file does."""
    found = hashlib.blake2b(digest_size=16)
    roots = [Path(__file__).parents[1], *(Path(__file__).parents[2] / package for package in packages)]
    for root in roots:
        for file in sorted(path for kind in SOURCES for path in root.rglob(kind)):
            found.update(f"{file.relative_to(root.parent)} ".encode() + file.read_bytes())
    return found.hexdigest()


class RecordingShelf:
    """The recordings of one engine in a folder.

    packages   whose code makes them, besides this one
    facts      all other inputs of its steps except the buffers: configuration, device, library
    libraries  the folder of C++ kernels
    """

    def __init__(
        self, folder: Path, packages: Sequence[str], facts: str, libraries: Path | None,
        buffers: Mapping[str, Buffer], owner_of: OwnerOf,
    ) -> None:  # fmt: skip
        self._folder, self._facts, self._libraries = folder / code_digest(*packages), facts, libraries
        self._buffers, self._owner_of = buffers, owner_of
        with suppress(OSError):
            _let_old_go(folder, self._folder)

    def recorded(self, graph: str, key: ShapeKey) -> Recording | None:
        """The recording made under this key in the same circumstances, bound to the buffers of this process."""
        try:
            row = json.loads(self._place(graph, key).read_text("utf-8"))
            native.load(row["libraries"], self._libraries)
            constants = [self._bound(*constant) for constant in row["constants"]]
            tape = Tape.from_text(row["graph"], constants)
            return Recording(tape.replayable(), tuple(self._buffers[name] for name in row["touched"]), tape)
        except (OSError, ValueError, LookupError, TypeError, RuntimeError):
            return None  # absent, damaged, or its library is gone

    def store(self, graph: str, key: ShapeKey, recording: Recording) -> None:
        """Store a recording for the next start. If it cannot be written or read back the same, it is recorded again
        then."""
        tape = recording.tape
        constants = None if tape is None else [self._described(tensor) for tensor in tape.constants]
        if tape is None or constants is None or None in constants or not tape.reads_back():
            return
        row = {
            "graph": tape.text, "constants": constants, "touched": [buffer.name for buffer in recording.touched],
            "libraries": native.needed(tape.text),
        }  # fmt: skip
        with suppress(OSError):
            _write(self._place(graph, key), json.dumps(row).encode())

    def _place(self, graph: str, key: ShapeKey) -> Path:
        scope = graph.partition(".")[0]
        layouts = (f"{b.layout} {b.role} {b.tensor.stride()}" for b in self._buffers.values() if b.scope == scope)
        told = "\n".join((FORMAT, self._facts, graph, str(key), *layouts))
        return self._folder / f"{hashlib.blake2b(told.encode(), digest_size=16).hexdigest()}.json"

    def _described(self, tensor: Tensor) -> list[Any] | None:
        """The buffer and place of a tensor: name, first element, shape, strides. None if its bytes are read as another
        type."""
        buffer = self._owner_of(tensor)
        if buffer is None or buffer.tensor.dtype != tensor.dtype:
            return None
        first = tensor.storage_offset() - buffer.tensor.storage_offset()
        return [buffer.name, first, list(tensor.shape), list(tensor.stride())]

    def _bound(self, name: str, first: int, shape: Iterable[int], strides: Iterable[int]) -> Tensor:
        whole = self._buffers[name].tensor
        view = whole.as_strided(tuple(shape), tuple(strides), whole.storage_offset() + first)
        if self._owner_of(view) is None:
            raise ValueError(f"a recording reads beyond {name}")
        return view


def _write(place: Path, content: bytes) -> None:
    """Write a file that is complete or absent. Several processes may write the same one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=place.parent)
    made = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        made.replace(place)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def _let_old_go(folder: Path, used: Path) -> None:
    used.mkdir(parents=True, exist_ok=True)
    os.utime(used)
    for old in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[CODES_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
