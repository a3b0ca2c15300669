"""Device memory at addresses that stay while the memory itself is given back: for weights that wait in a file.

A CUDA graph holds addresses. The driver can reserve them apart from the memory behind them, so weights are let go and
come back under the same addresses, and every captured graph goes on. Weights are placed here if the context was opened
with `Switch.SLEEP`, which no card has run yet.
"""

import ctypes
import errno
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

SLAB_BYTES = 256 << 20
"""Smaller tensors share a piece of memory, which is let go as a whole."""
_ALIGNED = 512  # bytes, as torch's own allocator aligns


class Pages(Protocol):
    """A device's memory below the level of tensors. `let_go` and `back` raise OSError."""

    device: torch.device
    granularity: int

    def reserve(self, nbytes: int) -> int:
        """An address with memory behind it."""
        ...

    def let_go(self, address: int, nbytes: int) -> None:
        """Give back the memory, and keep the address."""
        ...

    def back(self, address: int, nbytes: int) -> None:
        """Put fresh memory behind the address; its bytes are arbitrary."""
        ...

    def free(self, address: int, nbytes: int) -> None:
        """Give back the address, and the memory if there is any."""
        ...

    def tensor(self, address: int, nbytes: int, owner: object) -> Tensor:
        """[nbytes] uint8 at the address. It keeps `owner` alive."""
        ...


class HeldFile:
    """A file, open as long as somebody may read from it: one that replaces it is another file."""

    def __init__(self, path: Path) -> None:
        self.path, self.descriptor = path, os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)
        self._stamp = self._seen()

    @property
    def unchanged(self) -> bool:
        """Whether nobody has written to it since."""
        return self._seen() == self._stamp

    def _seen(self) -> tuple[int, int]:
        seen = os.fstat(self.descriptor)
        return seen.st_mtime_ns, seen.st_size


class Slab:
    """One reserved piece, as long as a tensor lies in it.

    parts    bytes of each tensor in it, by address
    sources  file and offset where some of them can be read
    """

    def __init__(self, pages: Pages, nbytes: int) -> None:
        self.size = -(-nbytes // pages.granularity) * pages.granularity
        self.address = pages.reserve(self.size)
        self._pages, self._used = pages, 0
        self.parts: dict[int, int] = {}
        self.sources: dict[int, tuple[HeldFile, int]] = {}
        weakref.finalize(self, pages.free, self.address, self.size).atexit = False

    def take(self, nbytes: int) -> Tensor | None:
        """[nbytes] uint8 of the rest, None if that is too small."""
        first = -(-self._used // _ALIGNED) * _ALIGNED
        if first + nbytes > self.size:
            return None
        self._used = first + nbytes
        self.parts[self.address + first] = nbytes
        return self._pages.tensor(self.address + first, nbytes, self)

    def content(self, address: int) -> Tensor:
        """[nbytes] uint8 of one part."""
        return self._pages.tensor(address, self.parts[address], self)

    def let_go(self) -> None:
        self._pages.let_go(self.address, self.size)

    def bring_back(self) -> None:
        """Fresh memory; the bytes are the caller's to fill in."""
        self._pages.back(self.address, self.size)


class FixedMemory:
    """Everything that a context placed so."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._slabs: weakref.WeakSet[Slab] = weakref.WeakSet()
        self._open: Slab | None = None

    @property
    def slabs(self) -> list[Slab]:
        """Those in use, by address."""
        return sorted(self._slabs, key=lambda slab: slab.address)

    def came_from(self, path: Path, offsets: Mapping[int, int]) -> None:
        """Tensors, by address, hold what the file has at these offsets: they need no second copy to be let go."""
        file = HeldFile(path)
        for slab in self._slabs:
            slab.sources |= {at: (file, offsets[at]) for at in slab.parts.keys() & offsets.keys()}

    @contextmanager
    def placing(self) -> Iterator[None]:
        """New uninitialised tensors on the device lie here, apart from those of every other such block."""
        with _Placing(self):
            try:
                yield
            finally:
                self._open = None

    def takes(self, device: torch.device) -> bool:
        return device.type == self._pages.device.type

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Uninitialised. Raises OSError if the device is full."""
        nbytes = prod(shape) * dtype.itemsize
        if not nbytes:
            return torch.empty(tuple(shape), dtype=dtype, device=self._pages.device)
        found = self._open.take(nbytes) if self._open is not None and nbytes < SLAB_BYTES else None
        if found is None:
            slab = Slab(self._pages, max(nbytes, SLAB_BYTES if nbytes < SLAB_BYTES else 0))
            self._slabs.add(slab)
            if nbytes < SLAB_BYTES:
                self._open = slab
            found = slab.take(nbytes)
            assert found is not None
        return found.view(dtype).view(tuple(shape))


class _Placing(TorchFunctionMode):
    """Stands in for `torch.empty` on the device."""

    def __init__(self, memory: FixedMemory) -> None:
        super().__init__()
        self._memory = memory

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func is torch.empty and self._memory.takes(torch.device(given.get("device") or "cpu")):
            shape = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
            return self._memory.empty(shape, given.get("dtype") or torch.get_default_dtype())
        return func(*args, **given)


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", _Location),
        ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8),
    ]  # fmt: skip


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Interface:
    """Memory as NumPy's protocol for devices describes it: torch makes a tensor over it without a copy."""

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3}
        self._owner = owner


_PINNED, _DEVICE, _READ_WRITE, _FULL = 1, 1, 3, 2  # of CUmemAllocationType, CUmemLocationType, flags and CUresult


class CudaPages:
    """Memory of one GPU by the driver's calls for virtual memory (CUDA driver API, 6.14)."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._handles: dict[int, ctypes.c_ulonglong] = {}
        location = _Location(_DEVICE, device.index or 0)
        self._kind = _Properties(type=_PINNED, location=location)
        self._access = _Access(location, _READ_WRITE)
        torch.cuda.init()
        size = ctypes.c_size_t()
        self._call("cuMemGetAllocationGranularity", ctypes.byref(size), ctypes.byref(self._kind), 0)
        self.granularity = int(size.value)

    def reserve(self, nbytes: int) -> int:
        address = ctypes.c_ulonglong()
        self._call("cuMemAddressReserve", ctypes.byref(address), _size(nbytes), _size(0), ctypes.c_ulonglong(0), _flags)
        try:
            self.back(int(address.value), nbytes)
        except OSError:
            self._call("cuMemAddressFree", address, _size(nbytes))
            raise
        return int(address.value)

    def back(self, address: int, nbytes: int) -> None:
        handle, at = ctypes.c_ulonglong(), ctypes.c_ulonglong(address)
        self._call("cuMemCreate", ctypes.byref(handle), _size(nbytes), ctypes.byref(self._kind), _flags)
        self._call("cuMemMap", at, _size(nbytes), _size(0), handle, _flags)
        self._handles[address] = handle
        self._call("cuMemSetAccess", at, _size(nbytes), ctypes.byref(self._access), _size(1))

    def let_go(self, address: int, nbytes: int) -> None:
        torch.cuda.synchronize(self.device)  # no kernel may read it any more
        self._call("cuMemUnmap", ctypes.c_ulonglong(address), _size(nbytes))
        self._call("cuMemRelease", self._handles.pop(address))

    def free(self, address: int, nbytes: int) -> None:
        if address in self._handles:
            self.let_go(address, nbytes)
        self._call("cuMemAddressFree", ctypes.c_ulonglong(address), _size(nbytes))

    def tensor(self, address: int, nbytes: int, owner: object) -> Tensor:
        return torch.as_tensor(_Interface(address, nbytes, owner), device=self.device)

    def _call(self, name: str, *arguments: Any) -> None:
        told = getattr(self._driver, name)(*arguments)
        if told == _FULL:
            raise OSError(errno.ENOMEM, "the GPU has no room for the models; close what took it")
        if told:
            raise OSError(errno.EIO, f"{name} of the GPU's driver answers {told}")


_size = ctypes.c_size_t
_flags = ctypes.c_ulonglong(0)
