"""One row times a packed matrix, no weight rounded: eight bits or four are exact in float32, so only the sum rounds.

`gemv_kernel` rounds each widened weight to the row's type, to have the very sums of the unpacked matrix; that is a
conversion and a change of layout for every weight, and they cost what the fewer bytes save. Here the values are summed
as they are, eight inputs at a time, and a scale meets the sum of its eight. The result is at least as near to the true
one as the plain product is.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.gemv import FP8, INT4, leave, row_out, rows_of
from capsules.nn.kernels.overlap import await_last, begin_next, overlapped

BLOCK_O, CHUNKS, WARPS = 4, 128, 4
"""Outputs of a program, its inputs, eight at a time, and its warps. 48 to 53 registers a thread: nine or ten programs
per unit, each with 4 or 2 KB on their way."""


@triton.jit
def packed_row_kernel(
    x, w, scale, shift, out, outputs, inputs, scale_columns, STORED: tl.constexpr, GROUP_ROWS: tl.constexpr,
    GROUP_CHUNKS: tl.constexpr, SHIFTED: tl.constexpr, PAIRED: tl.constexpr, EVEN: tl.constexpr, BLOCK_O: tl.constexpr,
    CHUNKS: tl.constexpr, PDL: tl.constexpr = False,
):  # fmt: skip
    """One program makes BLOCK_O sums of the row.

    STORED        1: bytes of E4M3; 2: words of eight 4-bit values plus 8
    GROUP_CHUNKS  chunks of eight inputs with one scale; GROUP_ROWS outputs with one
    SHIFTED       whether `shift` is read: what is added to every value of a group, laid out as `scale`
    PAIRED        the first half of the matrix is a gate: out = silu(gate) times the other half
    EVEN          whether BLOCK_O divides the rows
    """
    begin_next(PDL)
    await_last(PDL)
    o = rows_of(outputs, PAIRED, BLOCK_O)
    # One word a thread and no more for four bits: otherwise a layout is changed through shared memory, four times.
    c = tl.max_contiguous(tl.arange(0, CHUNKS), 1) if STORED == 2 else tl.arange(0, CHUNKS)
    e = tl.arange(0, 8)
    total = tl.zeros([BLOCK_O, CHUNKS], dtype=tl.float32)
    chunks = inputs // 8
    first = o[:, None].to(tl.int64)
    row_there = (o < outputs)[:, None]
    at = (o[:, None] // GROUP_ROWS) * scale_columns
    # E4M3's exponent stands 120 too low in float32. Half of it on each side: small values would leave its range.
    lift = 1.152921504606847e18 if STORED == 1 else 1.0
    for k in tl.range(0, chunks, CHUNKS, loop_unroll_factor=2):
        word = (k + c)[None, :]
        i = word[:, :, None] * 8 + e[None, None, :]
        row = tl.load(x + i, mask=i < inputs, other=0.0).to(tl.float32) * lift
        there = word < chunks if EVEN else (word < chunks) & row_there
        group = at + word // GROUP_CHUNKS
        factor = tl.load(scale + group, mask=there, other=0.0).to(tl.float32) * lift
        if STORED == 1:
            inside = i < inputs if EVEN else (i < inputs) & row_there[:, :, None]
            byte = tl.load(w + first[:, :, None] * inputs + i, mask=inside, other=0)
            moved = (byte.to(tl.int8, bitcast=True).to(tl.int32) << 20) & -2014314496  # sign, exponent, fraction
            value = moved.to(tl.float32, bitcast=True)
        else:
            packed = tl.load(w + first * chunks + word, mask=there, other=0)
            four = (packed[:, :, None] >> (e * 4)[None, None, :]) & 15
            value = (four | 0x4B000000).to(tl.float32, bitcast=True) - 8388616.0  # at the end of 2^23, less 8
        partial = tl.sum(value * row, axis=2)
        if SHIFTED:
            partial += tl.sum(row, axis=2) * tl.load(shift + group, mask=there, other=0.0).to(tl.float32)
        total += partial * factor
    leave(out, tl.sum(total, axis=1), outputs, PAIRED, BLOCK_O)


def takes(inputs: int, group: tuple[int, int]) -> bool:
    """Whether the matrix is laid out for it: whole chunks of eight in every group."""
    return inputs % 8 == 0 and group[1] % 8 == 0


def launch_packed_row(
    x: Tensor, w: Tensor, scale: Tensor, group: tuple[int, int], shift: Tensor | None = None,
    paired: bool = False, wide: bool = False,
) -> Tensor:  # fmt: skip
    """One row through a packed matrix.

    x        [1, I]
    w        [O, I] float8_e4m3fn, or [O, I / 8] int32; scale and shift, one for `group` rows and columns each,
             float32 or bfloat16. All contiguous
    paired   the rows of a gate, then as many of what it opens; -> silu(gate) · up
    returns  [1, O], or [1, O / 2] where paired, in x's type, or float32 if `wide`
    """
    stored = INT4 if w.dtype == torch.int32 else FP8
    outputs, inputs = w.shape[0], x.shape[-1]
    out = row_out(x, outputs, paired, wide)
    values = w if stored == INT4 else w.view(torch.uint8)
    packed_row_kernel[(triton.cdiv(outputs, BLOCK_O),)](
        x, values, scale, scale if shift is None else shift, out, outputs, inputs, scale.shape[-1], STORED=stored,
        GROUP_ROWS=group[0], GROUP_CHUNKS=group[1] // 8, SHIFTED=shift is not None, PAIRED=paired,
        EVEN=outputs % BLOCK_O == 0, BLOCK_O=BLOCK_O, CHUNKS=CHUNKS, num_warps=WARPS, enable_fp_fusion=True,
        **overlapped(x),
    )  # fmt: skip
    return out


@torch.library.custom_op("capsules::packed_row", mutates_args=(), device_types="cuda")
def packed_row(
    x: Tensor, w: Tensor, scale: Tensor, group_rows: int, group_columns: int, shift: Tensor | None = None,
    paired: bool = False, wide: bool = False,
) -> Tensor:  # fmt: skip
    return launch_packed_row(x, w, scale, (group_rows, group_columns), shift, paired, wide)


@packed_row.register_fake
def _(
    x: Tensor, w: Tensor, scale: Tensor, group_rows: int, group_columns: int, shift: Tensor | None = None,
    paired: bool = False, wide: bool = False,
) -> Tensor:  # fmt: skip
    assert x.shape[0] == 1 and takes(x.shape[1], (group_rows, group_columns))
    assert x.is_contiguous() and w.is_contiguous() and scale.is_contiguous()
    return row_out(x, w.shape[0], paired, wide)
