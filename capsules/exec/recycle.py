"""Host memory that is reused: the first touch of fresh pages costs more than the copy that fills them.

A device's own allocator recycles. The host's returns large blocks to the system at once, so every snapshot would pay
for its pages anew. Fresh blocks come from NumPy, which asks Linux for large pages: copying 19 MB into them takes 0.9
ms, as into pages touched before; into the small pages that torch gets, 11.6 ms.
"""

import weakref
from collections import OrderedDict, deque

import numpy as np
import torch
from torch import Tensor

SMALLEST = 64 << 10  # bytes; below it the host's allocator recycles by itself


class Recycler:
    """Lends blocks of bytes and takes each back when the last tensor over it is gone.

    keep_bytes  how much of the returned blocks to keep, or two of the largest ever lent if that is more; the rest goes
                back to the system, the longest unused first. States grow, so old sizes would pile up
    """

    def __init__(self, keep_bytes: int = 16 << 20) -> None:
        self._keep_bytes = keep_bytes
        self._returned: deque[Tensor] = deque()  # filled from wherever the last reference dies, so without a lock
        self._free: OrderedDict[int, Tensor] = OrderedDict()  # by address, longest unused first

    def lend(self, nbytes: int) -> Tensor:
        """[nbytes] uint8, uninitialised."""
        if nbytes < SMALLEST:
            return torch.empty(nbytes, dtype=torch.uint8)
        self._collect()
        size = rounded(nbytes)
        self._keep_bytes = max(self._keep_bytes, 2 * size)
        fitting = [address for address, block in self._free.items() if block.numel() == size]
        block = self._free.pop(fitting[-1]) if fitting else torch.from_numpy(np.empty(size, np.uint8))
        lent = memoryview(block.numpy().data)
        weakref.finalize(lent, self._returned.append, block).atexit = False
        return torch.frombuffer(lent, dtype=torch.uint8)[:nbytes]

    @property
    def kept_bytes(self) -> int:
        """Bytes of blocks that are free to be lent."""
        self._collect()
        return sum(block.numel() for block in self._free.values())

    def _collect(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._free[block.data_ptr()] = block
        kept = sum(block.numel() for block in self._free.values())
        while kept > self._keep_bytes:
            kept -= self._free.popitem(last=False)[1].numel()


def rounded(nbytes: int) -> int:
    """Round up to one of eight sizes per power of two, so states that grow a little find the same blocks."""
    step = 1 << max(0, nbytes.bit_length() - 4)
    return -(-nbytes // step) * step
