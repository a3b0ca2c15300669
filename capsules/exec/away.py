"""Memory that is let go while nobody needs it, at addresses that stay: its bytes wait in a file.

On Linux the pages of a buffer are given back to the system and its address is kept, so captured graphs and views go on
as they were once the bytes are back: nothing of the process's state differs before and after, in one bit. The file has
no name, so it is gone with the process; what the system's page cache still holds of it is back at the speed of memory.
"""

import ctypes
import mmap
import os
import sys
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path

from capsules.exec.buffer import Buffer, Role, storage_key
from capsules.exec.errors import ContractMisuse

SMALLEST = 1 << 16
"""Bytes of an allocation below which letting it go saves nothing."""
_DONT_NEED = 4  # MADV_DONTNEED


class Away:
    """The memory behind some buffers. One thread uses it, the one that replays.

    folder  on a disk with room for all of it
    Raises ContractMisuse where memory cannot be let go like this.
    """

    def __init__(self, buffers: Iterable[Buffer], folder: Path) -> None:
        buffers = list(buffers)
        far = next((buffer for buffer in buffers if buffer.tensor.device.type != "cpu"), None)
        if sys.platform != "linux" or far is not None:
            told = "" if far is None else f"; {far.name} is on {far.tensor.device}"
            raise ContractMisuse(f"memory is let go on Linux and on a processor only{told}")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folder = folder
        self._file: int | None = None
        self._blocks = _blocks(buffers)
        self._written: set[int] = set()
        self._out: list[tuple[int, int, int]] = []

    @property
    def nbytes(self) -> int:
        """Of the memory that is away now."""
        return sum(size for _, size, _ in self._out)

    def let_go(self) -> Generator[None, None, None]:
        """One allocation a step; what is away already comes back first. Raises OSError where the file cannot be
        written; what is away then stays so until `bring_back`."""
        self.bring_back()
        if self._file is None:
            self._file = _nameless(self._folder)
        offset = 0
        for address, size, constant in self._blocks:
            if address not in self._written:
                _write(self._file, _bytes_at(address, size), offset)
            if constant:
                self._written.add(address)
            self._out.append((address, size, offset))
            self._free(address, size)
            offset += size
            yield None

    def bring_back(self) -> None:
        """All that is away, to the bit."""
        while self._out:
            address, size, offset = self._out[-1]
            assert self._file is not None
            _read(self._file, _bytes_at(address, size), offset)
            self._out.pop()

    def close(self) -> None:
        """The file goes; what is away is lost."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _free(self, address: int, size: int) -> None:
        """Whole pages only: what else lies in the first and the last is somebody else's."""
        first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (address + size) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            told = self._libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _DONT_NEED)
            if told != 0:
                raise OSError(ctypes.get_errno(), "the system does not take memory back")


def _blocks(buffers: Iterable[Buffer]) -> list[tuple[int, int, bool]]:
    """(address, bytes, whether they never change) of every allocation that is worth it, once."""
    found: dict[int, tuple[int, bool]] = {}
    for buffer in buffers:
        storage = buffer.tensor.untyped_storage()
        address, constant = storage_key(buffer.tensor), buffer.role is Role.WEIGHT
        found[address] = (storage.nbytes(), constant and found.get(address, (0, True))[1])
    return [(address, size, constant) for address, (size, constant) in found.items() if size >= SMALLEST]


def _nameless(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.dup(file.fileno())


def _bytes_at(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


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
