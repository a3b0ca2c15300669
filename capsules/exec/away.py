"""Memory released while nobody needs it, at addresses that stay: its bytes wait in a file.

On Linux the pages of a buffer go back to the system while its address is reserved, so captured graphs and views
continue unchanged once the bytes are back: the process's state before and after is equal to the bit. The file has no
name, so it disappears with the process; any part of it still in the system's page cache returns at the speed of memory.

Weights that are mapped from a file have their bytes there already. Their pages are given back without a copy, and they
are still mapped afterwards. On a GPU weights alone are released, if they were placed for that (`fixed.py`); what was
read from a prepared file is read from there again.
"""

import ctypes
import mmap
import os
import re
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from capsules.exec.buffer import Buffer, Role, storage_key
from capsules.exec.errors import ContractMisuse
from capsules.exec.fixed import FixedMemory, Slab

SMALLEST = 1 << 16
"""Releasing an allocation below this many bytes saves nothing."""
_WILL_NEED, _DONT_NEED = 3, 4  # MADV_WILLNEED, MADV_DONTNEED
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+)")
"""The first line of a mapping in /proc/self/smaps: from, to, and the file's inode, 0 for memory without a file."""


@dataclass(frozen=True)
class _Block:
    """One allocation. `constant`: only weights lie in it, which nobody writes."""

    address: int
    size: int
    constant: bool


class Away:
    """The memory behind some buffers. Only the thread that replays may use it.

    folder  on a disk with room for all of it
    fixed   device memory that can be let go; the rest of a device's stays
    Raises ContractMisuse if memory cannot be released this way.
    """

    def __init__(self, buffers: Iterable[Buffer], folder: Path, fixed: Iterable[FixedMemory] = ()) -> None:
        buffers = list(buffers)
        self._slabs = [slab for memory in fixed for slab in memory.slabs]
        far = None if self._slabs else next((one for one in buffers if one.tensor.device.type != "cpu"), None)
        if sys.platform != "linux" or far is not None:
            told = "" if far is None else f"; {far.name} is on {far.tensor.device}"
            raise ContractMisuse(f"memory is let go on Linux and on a processor only{told}")
        placed = [(slab.address, slab.address + slab.size) for slab in self._slabs]
        buffers = [one for one in buffers if one.tensor.device.type == "cpu" and not _inside(one.address, placed)]
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folder = folder
        self._file: int | None = None
        self._blocks = _blocks(buffers)
        self._written: set[int] = set()
        self._out: list[tuple[_Block | Slab, int | None]] = []
        """Released blocks, with the offset of their bytes in the file; None: the bytes are in the file mapped there."""

    @property
    def nbytes(self) -> int:
        """Bytes now released."""
        return sum(block.size for block, _ in self._out)

    def let_go(self) -> Generator[None, None, None]:
        """Release one allocation per step; memory released earlier comes back first. Raises OSError if the file cannot
        be written; memory already released then stays so until `bring_back`."""
        self.bring_back()
        if self._file is None:
            self._file = _nameless(self._folder)
        offset, mapped = 0, _unchanged_mappings()
        for block in self._blocks:
            kept = any(first <= block.address and block.address + block.size <= last for first, last in mapped)
            if not kept and block.address not in self._written:
                _write(self._file, _bytes_at(block), offset)
                if block.constant:
                    self._written.add(block.address)
            self._out.append((block, None if kept else offset))
            self._advise(block, _DONT_NEED)
            offset += block.size
            yield None
        for slab in self._slabs:
            self._write_slab(slab, offset)
            self._out.append((slab, offset))
            slab.let_go()
            offset += slab.size
            yield None

    def bring_back(self) -> None:
        """Bring everything back, bit for bit."""
        while self._out:
            block, offset = self._out[-1]
            assert self._file is not None
            if isinstance(block, Slab):
                assert offset is not None
                self._read_slab(block, offset)
            elif offset is None:
                self._advise(block, _WILL_NEED)
            else:
                _read(self._file, _bytes_at(block), offset)
            self._out.pop()

    def discard(self) -> None:
        """Delete the file; memory still released is lost."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write_slab(self, slab: Slab, offset: int) -> None:
        """Write what no file holds; weights do not change, so once is enough."""
        assert self._file is not None
        for address in slab.parts:
            known = slab.sources.get(address)
            if address not in self._written and not (known and known[0].unchanged):
                slab.sources.pop(address, None)
                _write_device(self._file, slab.content(address), offset + address - slab.address)
                self._written.add(address)

    def _read_slab(self, slab: Slab, offset: int) -> None:
        assert self._file is not None
        changed = next((file for file, _ in slab.sources.values() if not file.unchanged), None)
        if changed is not None:
            raise OSError(f"{changed.path} was written to while the models slept")
        slab.bring_back()
        for address in slab.parts:
            known = slab.sources.get(address)
            if known is None:
                _read_device(self._file, slab.content(address), offset + address - slab.address)
            else:
                _read_device(known[0].descriptor, slab.content(address), known[1])

    def _advise(self, block: _Block, advice: int) -> None:
        """Free whole pages only: the rest of the first and the last belongs to somebody else."""
        first = -(-block.address // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (block.address + block.size) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            told = self._libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), advice)
            if told != 0:
                raise OSError(ctypes.get_errno(), "the system does not take memory back")


def _blocks(buffers: Iterable[Buffer]) -> list[_Block]:
    """Every allocation worth releasing, once."""
    found: dict[int, _Block] = {}
    for buffer in buffers:
        address, constant = storage_key(buffer.tensor), buffer.role is Role.WEIGHT
        constant = constant and (address not in found or found[address].constant)
        found[address] = _Block(address, buffer.tensor.untyped_storage().nbytes(), constant)
    return [block for block in found.values() if block.size >= SMALLEST]


def _inside(address: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(first <= address < last for first, last in spans)


def _unchanged_mappings() -> list[tuple[int, int]]:
    """(first, last) address of the mapped files in which this process has no page of its own.

    A private mapping gets such a page when somebody writes to it; that page's bytes are in no file.
    """
    found: dict[tuple[int, int], bool] = {}
    here = (0, 0)
    with suppress(FileNotFoundError), Path("/proc/self/smaps").open(encoding="utf-8") as smaps:
        for line in smaps:
            head = _MAPPING.match(line)
            if head is not None:
                here = (int(head[1], 16), int(head[2], 16))
                found[here] = head[3] != "0"
            elif line.startswith(("Anonymous:", "Swap:")) and line.split()[1] != "0":
                found[here] = False
    return [ends for ends, unchanged in found.items() if unchanged]


def _nameless(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.dup(file.fileno())


def _bytes_at(block: _Block) -> memoryview:
    return memoryview((ctypes.c_char * block.size).from_address(block.address)).cast("B")


def _write(file: int, content: memoryview, offset: int) -> None:
    done = 0
    while done < len(content):
        done += os.pwrite(file, content[done:], offset + done)


def _read(file: int, into: memoryview, offset: int) -> None:
    done = 0
    while done < len(into):
        count = os.preadv(file, [into[done:]], offset + done)
        if count <= 0:
            raise OSError("the file of what was let go is shorter than it was")
        done += count


_PIECE = 64 << 20
"""Bytes that pass through the host at a time."""


def _write_device(file: int, content: Tensor, offset: int) -> None:
    for piece in content.split(_PIECE):
        _write(file, memoryview(piece.cpu().numpy().data), offset)
        offset += piece.numel()


def _read_device(file: int, into: Tensor, offset: int) -> None:
    host = torch.empty(min(_PIECE, into.numel()), dtype=torch.uint8, pin_memory=into.is_cuda)
    for piece in into.split(_PIECE):
        part = host[: piece.numel()]
        _read(file, memoryview(part.numpy().data), offset)
        piece.copy_(part)
        offset += piece.numel()
