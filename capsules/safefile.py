"""The header of a safetensors file, read without trust: every claim is checked against the file before use.

Layout: 8 bytes little-endian header length, that many bytes of JSON, then the tensors back to back.
Source: github.com/huggingface/safetensors, README, "Format".
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from capsules.errors import CapsuleDamaged

MAX_HEADER_BYTES = 32 << 20  # about 200,000 tensors; a larger claim is refused before anything is allocated
MAX_AXES = 16

ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int  # from the start of the file, in bytes
    nbytes: int


@dataclass(frozen=True)
class SafeFile:
    """The checked contents list of one file."""

    path: Path
    entries: Mapping[str, TensorEntry]
    metadata: Mapping[str, str]
    header: bytes
    size: int


def read_header(path: Path) -> SafeFile:
    """Parse and check one file's header; reads no tensor.

    Raises CapsuleDamaged if anything in it contradicts the format or the file's size; FileNotFoundError if absent.
    """
    with path.open("rb") as file:
        return parse_header(file, path)


def parse_header(file: BinaryIO, path: Path) -> SafeFile:
    """As `read_header`, from an open file."""
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(8)
    if len(head) < 8:
        raise _damaged(path, f"{size} bytes is too short for a safetensors file")
    length = int.from_bytes(head, "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise _damaged(path, f"it claims a header of {length} bytes; {min(MAX_HEADER_BYTES, size - 8)} are possible")
    raw = file.read(length)
    if len(raw) < length:
        raise _damaged(path, f"the header ends after {len(raw)} of {length} bytes")
    table = _json(path, raw)
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _damaged(path, "__metadata__ is not a table of strings")
    start = 8 + length
    entries = {name: _entry(path, name, claim, start, size - start) for name, claim in table.items()}
    _check_cover(path, entries, start, size)
    return SafeFile(path, entries, metadata, raw, size)


def _json(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        table = json.loads(raw.decode("utf-8"), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"the header is not JSON ({error})") from error
    if not isinstance(table, dict):
        raise _damaged(path, "the header is not a JSON object")
    return table


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a name occurs twice")
    return table


def _entry(path: Path, name: str, claim: object, start: int, available: int) -> TensorEntry:
    if not isinstance(claim, dict) or set(claim) != {"dtype", "shape", "data_offsets"}:
        raise _damaged(path, f"{name[:80]!r}: expected exactly dtype, shape and data_offsets")
    dtype, shape, span = claim["dtype"], claim["shape"], claim["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise _damaged(path, f"{name[:80]!r}: dtype {str(dtype)[:40]!r} is not one of {', '.join(ITEM_BYTES)}")
    if not _naturals(shape) or len(shape) > MAX_AXES:
        raise _damaged(path, f"{name[:80]!r}: shape is not a list of at most {MAX_AXES} integers from 0 up")
    if not _naturals(span) or len(span) != 2 or not span[0] <= span[1] <= available:
        raise _damaged(path, f"{name[:80]!r}: data_offsets do not lie inside the {available} bytes of data")
    nbytes = prod(shape) * ITEM_BYTES[dtype]
    if nbytes != span[1] - span[0]:
        raise _damaged(
            path, f"{name[:80]!r}: {dtype} {shape} needs {nbytes} bytes, data_offsets hold {span[1] - span[0]}"
        )
    return TensorEntry(name, dtype, tuple(shape), start + span[0], nbytes)


def _naturals(value: object) -> bool:
    return isinstance(value, list) and all(type(v) is int and 0 <= v < 1 << 62 for v in value)


def _check_cover(path: Path, entries: Mapping[str, TensorEntry], start: int, size: int) -> None:
    """The tensors lie back to back and fill the file: no overlap, no hole, no tail."""
    at = start
    for entry in sorted(entries.values(), key=lambda e: (e.offset, e.nbytes)):
        if entry.offset != at:
            raise _damaged(
                path, f"{entry.name[:80]!r} begins at byte {entry.offset}, the tensor before it ends at {at}"
            )
        at += entry.nbytes
    if at != size:
        raise _damaged(path, f"the tensors end at byte {at}, the file at {size}")


def _damaged(path: Path, what: str) -> CapsuleDamaged:
    return CapsuleDamaged(f"{path.name}: {what}. The file is damaged or incomplete; fetch or write it again.")
