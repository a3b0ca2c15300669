"""Recordings kept on disk: what was recorded once is read at the next start instead of being run again.

A recording is a function of the code, the model's facts, the library, the processor and the layout of the buffers. All
of these are in its digest, so a change of any of them finds nothing and the step is recorded anew. A file is taken only
if it was written whole; one that cannot be read is as good as none.
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
"""Versions of the code whose recordings are kept; those used longest ago go first."""


@cache
def code_digest(*packages: str) -> str:
    """Of every source file of some packages and of this one: what they record may differ if one of them does."""
    found = hashlib.blake2b(digest_size=16)
    roots = [Path(__file__).parents[1], *(Path(__file__).parents[2] / package for package in packages)]
    for root in roots:
        for file in sorted(path for kind in SOURCES for path in root.rglob(kind)):
            found.update(f"{file.relative_to(root.parent)} ".encode() + file.read_bytes())
    return found.hexdigest()


class RecordingShelf:
    """The recordings of one engine in a folder.

    packages   whose code makes them, beside this one's
    facts      whatever else its steps are made from, apart from the buffers: configuration, device, library
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
        """What was recorded under this key in the same circumstances, over the buffers of this process."""
        try:
            row = json.loads(self._place(graph, key).read_text("utf-8"))
            native.load(row["libraries"], self._libraries)
            constants = [self._bound(*constant) for constant in row["constants"]]
            tape = Tape.from_text(row["graph"], constants)
            return Recording(tape.replayable(), tuple(self._buffers[name] for name in row["touched"]), tape)
        except (OSError, ValueError, LookupError, TypeError, RuntimeError):
            return None  # absent, damaged, or of a library that is gone

    def store(self, graph: str, key: ShapeKey, recording: Recording) -> None:
        """For the next start. What cannot be written, or would not be read back the same, is recorded again then."""
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
        """Where in which buffer a tensor lies: name, first element, shape, strides. None for bytes read as others."""
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
    """Complete or absent. Several processes may write the same."""
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
