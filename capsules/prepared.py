"""Weights in the engine's own form, stored in one file that the next start maps instead of loading.

The file is a safetensors file; its metadata says what it was made from. It is trusted if that still matches and nobody
wrote to it since: its modification time is set to the one in the header, so any later write shows, without a second
file and without reading a tensor. Changes that leave no such trace (a failing disk) are not noticed.

Tensors begin at multiples of 64 bytes, as torch's own memory does: elsewhere library kernels may sum in another order,
and the model must be the same to the bit. The padding between them is stored as tensors too, since the format allows no
holes.
"""

import json
import mmap
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from capsules.digests import SMALL_BYTES, stamps
from capsules.durable import alone, sweep, write_durably
from capsules.errors import CapsuleDamaged
from capsules.exec.fixed import FixedMemory
from capsules.feed import host_bytes
from capsules.safefile import SafeFile, parse_header, read_header
from capsules.shards import open_files
from capsules.weights import DTYPES, Target, load

Layout = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
Tell = Callable[[str], None]
"""Takes one line of text for a person."""

_FORMAT = "prepared/1"
_ALIGNED = 64
_PADDING = ".pad."
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class NotPrepared(Exception):
    """Why weights were not stored, in words. An existing file is still there."""


@dataclass(frozen=True)
class PreparedWeights:
    """The file of one checkpoint in one form: opened, or made again with a message.

    form    how matrices are stored; part of the file's name
    layout  of the engine; raised whenever the same files would give different bytes
    config  everything that determines the bytes besides files and form, as text
    tell    gets a line if the file is stale, and on whether a new one could be made
    """

    folder: Path
    form: str
    layout: str
    config: str
    tell: Tell

    @property
    def path(self) -> Path:
        return self.folder / f"weights.{self.form}.prepared"

    @property
    def worth_it(self) -> bool:
        """Whether the weights are large enough; small ones load at once, and `tell` gets a line about that."""
        size = sum(file.size for file in open_files(self.folder))
        if size < SMALL_BYTES:
            self.tell(f"{self.folder}: {size / 1e6:.0f} MB load at once; preparing them would gain nothing")
        return size >= SMALL_BYTES

    def source_facts(self, digest: str) -> dict[str, str]:
        config = blake2b(self.config.encode(), digest_size=16).hexdigest()
        return {
            "source": digest, "form": self.form, "layout": self.layout, "byteorder": sys.byteorder, "config": config
        }  # fmt: skip

    def open_kept(self, digest: str, like: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
        """The stored tensors of these weights in this form; None if there are none or they are stale.

        like  tensors of the same names, shapes and types
        """
        layout = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in like.items()}
        try:
            kept = open_prepared(self.path, self.source_facts(digest), layout)
        except FileNotFoundError:
            return None
        if kept is None:
            self.tell(f"{self.path} was made from other files or written to since; it is made again")
        return kept

    def take_over(
        self, kept: Mapping[str, Tensor], held: Mapping[str, Tensor], fixed: FixedMemory | None = None
    ) -> None:
        """Fill tensors with the stored ones, as `open_kept` gave them. Those on the host become the mapped ones
        themselves; those on a device are read from the file at the disk's speed, also after they slept in `fixed`."""
        far = {name: Target(tensor) for name, tensor in held.items() if not maps(tensor.device)}
        if far:
            load(self.path, far, skip=(f"{_PADDING}*", *(name for name in held if name not in far)))
            if fixed is not None:
                entries = read_header(self.path).entries
                fixed.came_from(self.path, {held[name].data_ptr(): entries[name].offset for name in far})
        for name, tensor in held.items():  # the memory that it had was never touched
            if name not in far:
                tensor.data = kept[name]

    def write_file(self, digest: str, before: object, tensors: Mapping[str, Tensor]) -> None:
        """Store the weights; if that fails, the start continues without a file.

        before   the stamps of the checkpoint's files, taken before they were read
        tensors  on any device
        """
        try:
            if stamps(open_files(self.folder)) != before:
                raise NotPrepared(f"the files in {self.folder} changed while they were read")
            here = {name: tensor.cpu() for name, tensor in tensors.items()}
            size = write_prepared(self.path, self.source_facts(digest), here)
        except NotPrepared as error:
            self.tell(f"the weights are not kept prepared: {error}")
        else:
            way = "mapped" if all(maps(tensor.device) for tensor in tensors.values()) else "read as it is"
            self.tell(f"{self.path}: {size / 1e9:.2f} GB, {way} from the next start on")


def maps(device: torch.device) -> bool:
    """Whether tensors there can be the file's own pages."""
    return device.type == "cpu"


def open_prepared(path: Path, facts: Mapping[str, str], layout: Layout) -> dict[str, Tensor] | None:
    """The tensors of a file, mapped: pages load on first read, and writes to them stay in this process.

    facts   what they must have been made from
    layout  which tensors they must be
    returns None if the file belongs to another checkpoint, is older, or is damaged
    Raises FileNotFoundError if there is none.
    """
    try:
        with path.open("rb") as file:
            held = parse_header(file, path)
            if not _believed(held, os.fstat(file.fileno()).st_mtime_ns, facts, layout):
                return None
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError:
        raise
    except (CapsuleDamaged, OSError):
        return None
    if hasattr(mmap, "MADV_WILLNEED"):
        memory.madvise(mmap.MADV_WILLNEED)
    return {name: _view(memory, held, name) for name in layout}


def write_prepared(path: Path, facts: Mapping[str, str], tensors: Mapping[str, Tensor]) -> int:
    """Store tensors in processor memory. Returns the file's bytes.

    Raises NotPrepared if the folder cannot be written or is full, or another process is writing there; then no file has
    changed.
    """
    told_s = int(time.time()) & ~1  # in whole even seconds: every file system can store them
    header, order = _header({**facts, "format": _FORMAT, "written_s": str(told_s)}, tensors)
    size = len(header) + sum(tensor.nbytes for tensor in order)
    try:
        with alone(path.parent):
            sweep(path.parent)
            free = shutil.disk_usage(path.parent).free
            if free < size:
                raise NotPrepared(f"{path.parent} has {free / 1e9:.2f} GB free, {size / 1e9:.2f} are needed")
            write_durably(path, [header, *(host_bytes(tensor) for tensor in order)])
            os.utime(path, (told_s, told_s))
    except BlockingIOError:
        raise NotPrepared(f"another process is at work in {path.parent} just now") from None
    except OSError as error:
        raise NotPrepared(f"{path} cannot be written: {error.strerror or error}") from error
    return size


def _header(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> tuple[bytes, list[Tensor]]:
    """The header, and all tensors in order with the padding between them."""
    table: dict[str, object] = {"__metadata__": dict(metadata)}
    order: list[Tensor] = []
    at = 0

    def add(name: str, tensor: Tensor) -> None:
        nonlocal at
        span = [at, at + tensor.nbytes]
        table[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": span}
        order.append(tensor)
        at = span[1]

    for name, tensor in tensors.items():
        add(name, tensor)
        if at % _ALIGNED:
            add(f"{_PADDING}{len(order)}", torch.zeros(-at % _ALIGNED, dtype=torch.uint8))
    raw = json.dumps(table).encode()
    raw += b" " * (-(8 + len(raw)) % mmap.PAGESIZE)
    return len(raw).to_bytes(8, "little") + raw, order


def _believed(held: SafeFile, modified_ns: int, facts: Mapping[str, str], layout: Layout) -> bool:
    told = held.metadata.get("written_s", "")
    if not told.isdecimal() or int(told) * 1_000_000_000 != modified_ns:
        return False
    if {**facts, "format": _FORMAT, "written_s": told} != held.metadata:
        return False
    entries = {name: e for name, e in held.entries.items() if not name.startswith(_PADDING)}
    return {name: (e.shape, DTYPES[e.dtype]) for name, e in entries.items()} == dict(layout) and not any(
        e.offset % _ALIGNED for e in entries.values()
    )


def _view(memory: mmap.mmap, held: SafeFile, name: str) -> Tensor:
    entry = held.entries[name]
    dtype, count = DTYPES[entry.dtype], prod(entry.shape)
    if not count:
        return torch.empty(entry.shape, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=entry.offset).view(entry.shape)
