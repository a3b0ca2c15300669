"""The container of a GGUF file, read without trust: every claim is checked against the file before use.

Layout: magic, version, the counts of tensors and of metadata entries, the metadata, the tensors' list, then their data,
each at a multiple of the alignment. All integers are little-endian. Versions 2 and 3 are the same for a little-endian
file. Source: github.com/ggml-org/ggml, docs/gguf.md.
"""

import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llm_engine.errors import CheckpointError
from llm_engine.gguf.blocks import NAMES, TYPES, BlockType, widen

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_AXES = 4
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Types of metadata values by number, as `struct` names them; 8 is text and 9 a list."""
_TEXT, _LIST = 8, 9
_DEPTH = 4  # lists in lists; published files have none


@dataclass(frozen=True)
class GgufTensor:
    """One tensor of a file. `shape` has the slowest axis first, as everywhere but in the file."""

    name: str
    kind: BlockType
    shape: tuple[int, ...]
    offset: int  # from the start of the file, in bytes

    @property
    def row_bytes(self) -> int:
        return self.shape[-1] // self.kind.values * self.kind.nbytes

    @property
    def nbytes(self) -> int:
        return prod(self.shape[:-1]) * self.row_bytes


@dataclass(frozen=True, eq=False)
class GgufFile:
    """The checked contents of one file, its data mapped."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    data: Tensor  # all bytes of the file, uint8; never to be written to

    def raw_bytes(self, name: str) -> Tensor:
        """The bytes of a tensor as the file holds them, [rows, bytes of a row] uint8, mapped."""
        tensor = self.tensors[name]
        return self.data[tensor.offset : tensor.offset + tensor.nbytes].view(-1, tensor.row_bytes)

    def rows(self, name: str, rows: slice | Tensor = slice(None)) -> Tensor:
        """Rows of a tensor (axes before the last count as one), in float32: [rows, columns]."""
        return widen(self.raw_bytes(name)[rows], self.tensors[name].kind)


def is_gguf(path: str | Path) -> bool:
    """Whether a file begins as a GGUF file does; a download that is cut off or has no suffix may be one."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(4) == MAGIC or file.suffix == ".gguf"


def open_gguf(path: str | Path) -> GgufFile:
    """Raises CheckpointError, naming the file, if anything in it contradicts the format or the file's size."""
    file = Path(path).resolve()
    try:
        seen = file.stat()
        return _opened(file, seen.st_size, seen.st_mtime_ns)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error


@lru_cache(2)  # config, weights, tokenizer and template each ask for it; a large vocabulary takes half a second
def _opened(path: Path, size: int, modified_ns: int) -> GgufFile:
    if size < 24:
        raise _damaged(path, f"{size} bytes are too few for a GGUF file")
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # torch knows no memory that is read only
    read = _Reader(path, mapped)
    if read.raw(4) != MAGIC:
        raise CheckpointError(f"{path.name}: it does not begin with GGUF, so it is not a GGUF file")
    version = read.scalar("I")
    if version not in VERSIONS:
        turned = " (it may be big-endian)" if version & 0xFFFF == 0 else ""
        raise CheckpointError(f"{path.name}: version {version}{turned}; versions 2 and 3, little-endian, are read")
    tensors, entries = read.scalar("Q"), read.scalar("Q")
    read.check_count(tensors, 24, "tensors")
    read.check_count(entries, 13, "metadata entries")
    metadata = read.table(entries, lambda: (read.text(), read.value(read.scalar("I"))))
    claims = read.table(tensors, read.tensor)
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise _damaged(path, f"general.alignment is {alignment!r}; a power of two is needed")
    base = -(-read.at // alignment) * alignment
    return GgufFile(path, metadata, _placed(path, claims, base, size), torch.frombuffer(mapped, dtype=torch.uint8))


class _Reader:
    """A place in a file's bytes; it never reads beyond their end, nor makes room for more than they can hold."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self.at = path, data, 0

    def raw(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise _damaged(self._path, f"it ends at byte {len(self._data)}, in the middle of its header")
        self.at += count
        return self._data[self.at - count : self.at]

    def scalar(self, form: str) -> Any:
        return struct.unpack("<" + form, self.raw(struct.calcsize(form)))[0]

    def text(self) -> str:
        return self.raw(self.scalar("Q")).decode("utf-8", "replace")

    def check_count(self, count: int, least_bytes: int, what: str) -> None:
        if count > (len(self._data) - self.at) // least_bytes:
            raise _damaged(self._path, f"it claims {count} {what}, more than its {len(self._data)} bytes can hold")

    def table(self, count: int, entry: Callable[[], tuple[str, Any]]) -> dict[str, Any]:
        found = {}
        for _ in range(count):
            name, value = entry()
            if name in found:
                raise _damaged(self._path, f"{name[:80]!r} occurs twice")
            found[name] = value
        return found

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind in _NUMBERS:
            return self.scalar(_NUMBERS[kind])
        if kind != _LIST or depth == _DEPTH:
            raise _damaged(self._path, f"a metadata value has type {kind}, which does not exist")
        inner, count = self.scalar("I"), self.scalar("Q")
        form = _NUMBERS.get(inner)
        if form is not None:
            self.check_count(count, struct.calcsize(form), "values")
            return list(struct.unpack(f"<{count}{form}", self.raw(count * struct.calcsize(form))))
        self.check_count(count, 8, "values")
        return [self.value(inner, depth + 1) for _ in range(count)]

    def tensor(self) -> tuple[str, tuple[int, tuple[int, ...], int]]:
        """Name, and type, shape and offset as claimed."""
        name, axes = self.text(), self.scalar("I")
        if not 1 <= axes <= MAX_AXES:
            raise _damaged(self._path, f"{name[:80]!r} has {axes} axes; 1 to {MAX_AXES} are possible")
        shape = struct.unpack(f"<{axes}Q", self.raw(8 * axes))
        return name, (self.scalar("I"), shape[::-1], self.scalar("Q"))


def _placed(
    path: Path, claims: Mapping[str, tuple[int, tuple[int, ...], int]], base: int, size: int
) -> dict[str, GgufTensor]:
    found = {}
    for name, (number, shape, offset) in claims.items():
        if number not in TYPES:
            named = NAMES.get(number)
            raise CheckpointError(
                f"{path.name}: {name[:80]!r} is stored as {named or f'type {number}'}, which is not read; "
                f"{', '.join(kind.name for kind in TYPES.values())} are. Take another file of the model, such as Q4_K_M"
            )
        tensor = GgufTensor(name, TYPES[number], shape, base + offset)
        if shape[-1] % tensor.kind.values or not all(shape):
            raise _damaged(
                path, f"{name[:80]!r}: {list(shape)} cannot be cut into blocks of {tensor.kind.values} values"
            )
        if tensor.offset + tensor.nbytes > size:
            raise _damaged(
                path, f"{name[:80]!r} should end at byte {tensor.offset + tensor.nbytes}, the file at {size}"
            )
        found[name] = tensor
    return found


def _damaged(path: Path, what: str) -> CheckpointError:
    return CheckpointError(f"{path.name}: {what}. The file is damaged or incomplete; fetch it again.")
