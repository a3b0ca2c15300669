"""Closes a row of a voice without a cursor, in one kernel: delay pattern, end of codes, history, what is told.

The plain form in `tts_engine.steps` launches some forty operators over a handful of integers.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tts_engine.config import AudioConfig
from tts_engine.state import ENDLESS


@triton.jit
def row_end_kernel(
    drawn, hidden, cursor, row, count, total, position, rows, track, out, width, DELAY: tl.constexpr,
    SIZE: tl.constexpr, BOOKS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, ENDLESS: tl.constexpr,
):  # fmt: skip
    """One program. Begin-of-codes is SIZE, end-of-codes SIZE + 1."""
    q = tl.arange(0, PADDED)
    books = q < BOOKS
    code = tl.load(drawn + q, mask=books, other=0)
    made, known, at = tl.load(count), tl.load(total), tl.load(position) + 1
    ended = (tl.load(drawn) == SIZE + 1) & (known == ENDLESS)
    known = tl.where(ended, made, known)
    code = tl.where(made - q >= known, SIZE + 1, code)
    code = tl.where(q > made, SIZE, code)
    finite = tl.full([BLOCK], 1, dtype=tl.int32)
    for start in range(0, width, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(hidden + i, mask=i < width, other=0.0).to(tl.float32)
        finite = tl.where(tl.abs(value) < float("inf"), finite, 0)
    seen = tl.maximum(at - DELAY + q, 0)  # the row that the frame takes codebook q from
    old = tl.load(rows + seen * BOOKS + q, mask=books & (seen < at), other=0)
    frame = tl.where(seen == at, code, old)
    index, spent = tl.load(cursor), tl.load(cursor + 1)
    tl.store(row + q, code, mask=books)
    tl.store(rows + at * BOOKS + q, code, mask=books)
    tl.store(out + q, code, mask=books)
    tl.store(out + BOOKS + q, tl.where(frame < SIZE, frame, 0), mask=books)
    tl.store(track + at * 2, index)
    tl.store(track + at * 2 + 1, spent)
    tl.store(total, known)
    tl.store(position, at)
    tl.store(count, made + 1)
    tl.store(out + 2 * BOOKS, made + 1)
    tl.store(out + 2 * BOOKS + 1, known)
    tl.store(out + 2 * BOOKS + 2, index)
    tl.store(out + 2 * BOOKS + 3, spent)
    tl.store(out + 2 * BOOKS + 4, tl.min(finite, axis=0).to(tl.int64))


def launch_row_end(
    drawn: Tensor, hidden: Tensor, cursor: Tensor, row: Tensor, count: Tensor, total: Tensor, position: Tensor,
    rows: Tensor, track: Tensor, out: Tensor, size: int,
) -> None:  # fmt: skip
    """drawn [Q] int64 and hidden [1, h] of the row; the rest are buffers of `tts_engine.state`, written in place but
    `cursor`. size: real codes of a codebook."""
    books = drawn.shape[0]
    audio = AudioConfig(books, size + 2)
    row_end_kernel[(1,)](
        drawn, hidden, cursor, row, count, total, position, rows, track, out, hidden.numel(), DELAY=audio.delay,
        SIZE=size, BOOKS=books, PADDED=triton.next_power_of_2(books), BLOCK=1024, ENDLESS=ENDLESS, num_warps=4,
        enable_fp_fusion=True,
    )  # fmt: skip


row_end = torch.library.custom_op(
    "tts_engine::row_end", launch_row_end, device_types="cuda",
    mutates_args=("row", "count", "total", "position", "rows", "track", "out"),
)  # fmt: skip


@row_end.register_fake
def _(
    drawn: Tensor, hidden: Tensor, cursor: Tensor, row: Tensor, count: Tensor, total: Tensor, position: Tensor,
    rows: Tensor, track: Tensor, out: Tensor, size: int,
) -> None:  # fmt: skip
    assert all(part.is_contiguous() for part in (drawn, hidden, row, rows, track, out))
