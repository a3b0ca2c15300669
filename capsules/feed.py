"""Moves pieces of files into tensors: many positional reads in flight, no second copy of the data in memory.

On the host each reader thread reads straight into the destination; only a conversion of dtype or a strided
destination passes through a scratch block of one piece. Towards a device two pinned blocks take turns: while one
is copied, the readers fill the other. A block is one transfer, spread over its tensors on the device afterwards,
because a host-to-device copy per tensor costs a call and a wait each.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import torch
from torch import Tensor

from capsules.errors import CapsuleDamaged
from capsules.exec.backend import backend_for

ALIGN = 256  # bytes between pieces in a staging block; any dtype may be viewed at it


@dataclass(frozen=True)
class FeedPiece:
    """`nbytes` of a file, holding elements of `dtype` in the order of `dest`, and where they go.

    dest   any strides and any float dtype; same number of elements
    """

    file: int
    offset: int
    nbytes: int
    dtype: torch.dtype
    dest: Tensor

    @property
    def direct(self) -> bool:
        """Whether the bytes may be read straight into the destination."""
        return self.dest.dtype == self.dtype and self.dest.is_contiguous()


def split(piece: FeedPiece, limit: int) -> Iterator[FeedPiece]:
    """The same bytes in pieces of at most `limit` bytes, each with one destination view."""
    if piece.nbytes <= limit:
        if piece.nbytes:
            yield piece
        return
    dest, item = piece.dest, piece.dtype.itemsize
    while dest.dim() > 1 and dest.shape[0] == 1:
        dest = dest[0]
    flat = dest.is_contiguous()
    rows = dest.reshape(-1) if flat else dest
    row_bytes = item if flat else piece.nbytes // rows.shape[0]
    step = max(1, limit // row_bytes)
    for first in range(0, rows.shape[0], step):
        part = rows[first : first + step]
        yield from split(
            FeedPiece(piece.file, piece.offset + first * row_bytes, part.numel() * item, piece.dtype, part), limit
        )


def host_bytes(tensor: Tensor) -> memoryview:
    """The memory of a contiguous host tensor."""
    return memoryview(tensor.detach().reshape(-1).view(torch.uint8).numpy().data)


def read_exactly(file: int, offset: int, into: memoryview) -> None:
    """Fill `into` from a file descriptor at `offset`. Raises CapsuleDamaged if the file ends first."""
    done = 0
    while done < len(into):
        count = os.preadv(file, [into[done:]], offset + done)
        if count == 0:
            end = os.fstat(file).st_size  # not offset + done: this piece may lie behind the end
            raise CapsuleDamaged(f"a file ended at byte {end} while it was read; was it replaced or cut?")
        done += count


class HostFeed:
    """Destinations in host memory."""

    def __init__(self, readers: int = 4, piece_bytes: int = 4 << 20) -> None:
        self.piece_bytes = piece_bytes
        self._readers = readers
        self._local = threading.local()

    def move_all(self, pieces: Sequence[FeedPiece], done: Callable[[int], None]) -> None:
        """Move all pieces; `done(nbytes)` is called from the calling thread as they arrive."""
        with ThreadPoolExecutor(self._readers, thread_name_prefix="weights") as pool:
            futures = [pool.submit(self._move, piece) for piece in pieces]
            try:
                for future in as_completed(futures):
                    done(future.result())
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _move(self, piece: FeedPiece) -> int:
        if piece.direct:
            read_exactly(piece.file, piece.offset, host_bytes(piece.dest))
            return piece.nbytes
        if not hasattr(self._local, "scratch"):
            self._local.scratch = torch.empty(self.piece_bytes, dtype=torch.uint8)
        block = self._local.scratch[: piece.nbytes]
        read_exactly(piece.file, piece.offset, host_bytes(block))
        piece.dest.copy_(block.view(piece.dtype).view(piece.dest.shape))
        return piece.nbytes


class StagedFeed:
    """Destinations on a device, through two staging blocks. Works on "cpu" too, where it is tested."""

    def __init__(
        self, device: torch.device, readers: int = 8, block_bytes: int = 64 << 20, piece_bytes: int = 4 << 20
    ) -> None:
        self.piece_bytes = min(piece_bytes, block_bytes)
        self._readers = readers
        self._block_bytes = block_bytes
        self._device = device
        self._backend = backend_for(str(device))

    def move_all(self, pieces: Sequence[FeedPiece], done: Callable[[int], None]) -> None:
        """As HostFeed.move_all. On return all copies have finished."""
        pinned = self._device.type == "cuda"
        host = [torch.empty(self._block_bytes, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
        there = [torch.empty(self._block_bytes, dtype=torch.uint8, device=self._device) for _ in range(2)]
        stream = self._backend.new_stream("weights", 0)
        self._backend.synchronize()  # destinations may still be filled with zeros by another stream
        busy = [stream.record(), stream.record()]
        try:
            with ThreadPoolExecutor(self._readers, thread_name_prefix="weights") as pool:
                for turn, block in enumerate(self._blocks(pieces)):
                    slot = turn % 2
                    busy[slot].synchronize()  # the copy out of this block has finished
                    for _ in pool.map(lambda item, slot=slot: self._fill(item, host[slot]), block):
                        pass
                    with stream.use():
                        self._spread(block, host[slot], there[slot])
                        busy[slot] = stream.record()
                    done(sum(piece.nbytes for _, piece in block))
        finally:
            stream.synchronize()  # the staging blocks may be freed only now

    def _spread(self, block: list[tuple[int, FeedPiece]], host: Tensor, there: Tensor) -> None:
        used = block[-1][0] + block[-1][1].nbytes
        there[:used].copy_(host[:used], non_blocking=True)
        for at, piece in block:
            piece.dest.copy_(there[at : at + piece.nbytes].view(piece.dtype).view(piece.dest.shape))

    def _fill(self, item: tuple[int, FeedPiece], block: Tensor) -> None:
        at, piece = item
        read_exactly(piece.file, piece.offset, host_bytes(block[at : at + piece.nbytes]))

    def _blocks(self, pieces: Sequence[FeedPiece]) -> Iterator[list[tuple[int, FeedPiece]]]:
        block: list[tuple[int, FeedPiece]] = []
        at = 0
        for piece in pieces:
            if block and at + piece.nbytes > self._block_bytes:
                yield block
                block, at = [], 0
            block.append((at, piece))
            at += -(-piece.nbytes // ALIGN) * ALIGN
        if block:
            yield block


def feed_for(device: torch.device) -> HostFeed | StagedFeed:
    """The right feed for a device."""
    return HostFeed() if device.type == "cpu" else StagedFeed(device)
