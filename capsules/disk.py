"""Capsules as files: one safetensors file each, checksummed, loaded without executing anything.

The header's metadata holds `about` (JSON: label, scope, position, fingerprint, tokens, the engine's host facts, which
tensors have rows, the base whose rows come before them if there is one, and the storing code's notes) and `checksum`,
a BLAKE2b over the tensor table, `about` and every byte of data. Any safetensors reader can open the file; only this one
checks it.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsules.capsule import Base, Capsule, Fingerprint
from capsules.durable import remove_durably, sweep, write_durably
from capsules.errors import CapsuleDamaged, CapsuleError, CapsuleMismatch, ContractMisuse
from capsules.feed import host_bytes, read_exactly
from capsules.safefile import SafeFile, TensorEntry, read_header
from capsules.weights import DTYPES

SUFFIX = ".safetensors"
FORMAT = "capsule/1"
ALIGN = 64  # bytes, between tensors in memory
CHUNK = 4 << 20  # bytes read and hashed at a time
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class CapsuleNotSaved(CapsuleError):
    """The capsule could not be written; anything stored before is still there."""


@dataclass(frozen=True)
class About:
    """The facts about a capsule that its file states, read without its tensors."""

    key: str
    label: str
    scope: str
    position: int
    fingerprint: Fingerprint
    tokens: tuple[int, ...]
    host: Mapping[str, Any]
    notes: Mapping[str, str]
    file_bytes: int
    used_at: float  # when it was last stored or used, seconds since the epoch
    axes: Mapping[str, int] = field(default_factory=dict)
    base: Base | None = None


class CapsuleFolder:
    """A directory of capsule files, named by key. Safe against being killed at any point."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        sweep(path)

    def keys(self) -> tuple[str, ...]:
        return tuple(sorted(file.name.removesuffix(SUFFIX) for file in self.path.glob(f"[!.]*{SUFFIX}")))

    def __contains__(self, key: str) -> bool:
        return self._file(key).exists()

    def files(self) -> dict[str, os.stat_result]:
        """Every file; those that disappear in the meantime are left out."""
        found = {}
        for key in self.keys():
            with suppress(FileNotFoundError):
                found[key] = self._file(key).stat()
        return found

    def changed_ns(self) -> int:
        """When any process last added, replaced or removed a file."""
        return self.path.stat().st_mtime_ns

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Holds a lock: no other process works here, so measurements stay true until acted upon."""
        place = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX)
            yield
        finally:
            os.close(place)

    def save(self, key: str, capsule: Capsule, notes: Mapping[str, str] | None = None) -> int:
        """Store a capsule, replacing one of the same key; returns the file's size.

        Raises CapsuleNotSaved if the disk is full or not writable; then nothing has changed.
        """
        plain = _Plain(capsule, notes or {})
        try:
            write_durably(self._file(key), plain.chunks())
        except OSError as error:
            raise CapsuleNotSaved(
                f"capsule {capsule.label!r} ({plain.nbytes / 1e6:.1f} MB) was not saved in {self.path}: "
                f"{error.strerror or error}. Free some space or lower the disk budget; the talk goes on without it."
            ) from error
        return plain.nbytes

    def about(self, key: str) -> About:
        """Read a file's header only. Raises CapsuleDamaged; FileNotFoundError if there is none."""
        file = self._file(key)
        return _about(key, read_header(file), file.stat().st_mtime)

    def load(self, key: str, expected: Fingerprint | None = None, pin_memory: bool = False) -> Capsule:
        """Read a capsule into host memory, in one allocation.

        expected   the file is refused before any tensor is read if its fingerprint differs
        Raises CapsuleMismatch, CapsuleDamaged (no part of a damaged file is ever returned), FileNotFoundError.
        """
        path = self._file(key)
        header = read_header(path)
        about = _about(key, header, 0.0)
        difference = expected.difference(about.fingerprint) if expected else None
        if difference:
            raise CapsuleMismatch(
                f"capsule {about.label!r} on disk does not belong to this engine: {difference}. Rebuild it from its "
                f"{len(about.tokens)} tokens."
            )
        tensors = _read_tensors(header, pin_memory)
        return Capsule(
            about.label, about.scope, about.position, about.fingerprint, about.tokens, about.host, tensors,
            about.axes, about.base,
        )  # fmt: skip

    def touch(self, key: str, at: float) -> None:
        """Record a use, so the order of use survives a restart; if the disk refuses, only that order is lost."""
        with suppress(OSError):
            os.utime(self._file(key), (at, at))

    def delete_file(self, key: str) -> None:
        remove_durably(self._file(key))

    def _file(self, key: str) -> Path:
        if not 0 < len(key) <= 100 or key.startswith(".") or not all(c.isalnum() or c in "-_." for c in key):
            raise ContractMisuse(f"{key!r} is no key for a file: letters, digits, '-', '_' and '.', at most 100")
        return self.path / (key + SUFFIX)


def saved_bytes(capsule: Capsule, notes: Mapping[str, str] | None = None) -> int:
    """The exact size that `save` would write."""
    return _Plain(capsule, notes or {}).nbytes


class _Plain:
    """A capsule laid out as a file."""

    def __init__(self, capsule: Capsule, notes: Mapping[str, str]) -> None:
        about = {
            "format": FORMAT,
            "label": capsule.label,
            "scope": capsule.scope,
            "position": capsule.position,
            "fingerprint": capsule.fingerprint.facts,
            "tokens": capsule.tokens,
            "host": dict(capsule.host),
            "notes": dict(notes),
            "axes": dict(capsule.axes),
        }
        if (base := capsule.base) is not None:
            about["base"] = [base.key, base.label, base.position, base.nbytes, base.digest]
        # widest first, so that every tensor begins at a multiple of its item size
        self._tensors = dict(sorted(capsule.tensors.items(), key=lambda item: -item[1].element_size()))
        self._about = json.dumps(about, separators=(",", ":"))
        self._table: dict[str, Any] = {}
        at = 0
        for name, tensor in self._tensors.items():
            end = at + tensor.numel() * tensor.element_size()
            self._table[name] = {
                "dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end],
            }  # fmt: skip
            at = end
        self.nbytes = len(self._header("")) + at

    def chunks(self) -> Iterator[bytes | memoryview]:
        """The file's bytes in order; the data is hashed first and not copied."""
        state = _checksum(self._about, {n: (e["dtype"], e["shape"]) for n, e in self._table.items()})
        data = [host_bytes(tensor.cpu().contiguous()) for tensor in self._tensors.values()]
        for part in data:
            state.update(part)
        yield self._header(state.hexdigest())
        yield from data

    def _header(self, checksum: str) -> bytes:
        metadata = {"about": self._about, "checksum": checksum or "0" * 64}
        raw = json.dumps({"__metadata__": metadata, **self._table}, separators=(",", ":")).encode()
        raw += b" " * (-len(raw) % 8)
        return len(raw).to_bytes(8, "little") + raw


def _checksum(about: str, table: Mapping[str, tuple[str, list[int]]]) -> "blake2b":
    return blake2b(json.dumps([FORMAT, about, list(table.items())]).encode(), digest_size=32)


def _about(key: str, file: SafeFile, used_at: float) -> About:
    try:
        told = json.loads(file.metadata["about"])
        if told["format"] != FORMAT:
            raise ValueError(f"format {str(told['format'])[:40]!r}, this version reads {FORMAT}")
        facts = tuple((str(name), str(value)) for name, value in told["fingerprint"])
        tokens = tuple(told["tokens"])
        label, scope, position, host, notes = (told[k] for k in ("label", "scope", "position", "host", "notes"))
        axes = {str(name): int(axis) for name, axis in told.get("axes", {}).items()}
        base = _base(told.get("base"))
        plain = isinstance(label, str) and isinstance(scope, str) and isinstance(host, dict) and isinstance(notes, dict)
        if not plain or not all(type(i) is int for i in (position, *tokens)):
            raise ValueError("a field has the wrong type")
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CapsuleDamaged(
            f"{file.path.name}: its description cannot be read ({error}). Remove the file and rebuild the capsule."
        ) from error
    fingerprint = Fingerprint(facts)
    notes = {str(k): str(v) for k, v in notes.items()}
    return About(key, label, scope, position, fingerprint, tokens, host, notes, file.size, used_at, axes, base)


def _base(told: Any) -> Base | None:
    if told is None:
        return None
    key, label, position, nbytes, digest = told
    return Base(str(key), str(label), int(position), int(nbytes), str(digest))


def _read_tensors(file: SafeFile, pin_memory: bool) -> dict[str, Tensor]:
    """All tensors in one allocation, after the checksum was verified."""
    entries = sorted(file.entries.values(), key=lambda e: (e.offset, e.nbytes))
    starts = _starts(entries)
    flat = torch.empty(starts[-1], dtype=torch.uint8, pin_memory=pin_memory)
    state = _checksum(file.metadata["about"], {e.name: (e.dtype, list(e.shape)) for e in entries})
    whole = host_bytes(flat)
    descriptor = os.open(file.path, os.O_RDONLY)
    try:
        for entry, start in zip(entries, starts, strict=False):
            for at in range(0, entry.nbytes, CHUNK):
                part = whole[start + at : start + min(at + CHUNK, entry.nbytes)]
                read_exactly(descriptor, entry.offset + at, part)
                state.update(part)
    finally:
        os.close(descriptor)
    if state.hexdigest() != file.metadata.get("checksum"):
        raise CapsuleDamaged(
            f"{file.path.name}: the checksum does not match what was written; some byte has changed. Remove the file "
            "and rebuild the capsule from its tokens."
        )
    tensors = {}
    for entry, start in zip(entries, starts, strict=False):
        tensors[entry.name] = flat[start : start + entry.nbytes].view(DTYPES[entry.dtype]).view(entry.shape)
    return tensors


def _starts(entries: list[TensorEntry]) -> list[int]:
    starts = [0]
    for entry in entries:
        starts.append(starts[-1] + -(-entry.nbytes // ALIGN) * ALIGN)
    return starts
