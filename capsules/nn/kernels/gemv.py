"""A weight matrix times one row or a few: every weight is read once, at the speed of memory.

The matrix may be packed: FP8 is one byte per weight, 4-bit integers are eight to a word. They are widened in registers
and rounded once to the rows' type, so the sums are identical to those over the unpacked matrix. FP8 bits are moved to
their places in float32, so the kernels need no FP8 instructions and run on older cards too.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.overlap import await_last, begin_next, overlapped

PLAIN, FP8, INT4 = 0, 1, 2
MOST = 64  # rows of a program; a packed matrix is read once for each of them
_ROW, _FEW, _FEW_OF_MANY, _MANY = (2, 1024), (16, 128), (64, 128), 8192
"""Outputs and inputs per program: for one row; for a few; for a few with enough outputs to keep every unit busy. The
fastest of those tried over the matrices of the published sizes, on an H100."""


@triton.jit
def _nibble(packed, shift: tl.constexpr):
    """Four bits less 8, as float32: inserted at the end of 2^23, eight times as fast on a card as converting."""
    return (((packed >> shift) & 15) | 0x4B000000).to(tl.float32, bitcast=True) - 8388616.0


@triton.jit
def _tile(
    w, scale, shift, o, start, outputs, inputs, scale_columns, kind: tl.constexpr, STORED: tl.constexpr,
    SHIFTED: tl.constexpr, GROUP_ROWS: tl.constexpr, GROUP_COLUMNS: tl.constexpr, GRAIN: tl.constexpr,
    BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    """Rows `o` of the matrix, BLOCK_I columns from `start`, as `kind`; zeros beyond the matrix.

    STORED  0: w holds floats, `scale` is not read; 1: bytes of E4M3 values; 2: words of eight 4-bit values plus 8
    SHIFTED whether `shift` is read and added to the values before they are scaled; it is laid out as `scale`
    GRAIN   columns that share one loaded scale: a part of one group
    """
    i = start + tl.arange(0, BLOCK_I)
    first = o[:, None].to(tl.int64)
    inside = (o[:, None] < outputs) & (i[None, :] < inputs)
    if STORED == 0:
        weight = tl.load(w + first * inputs + i[None, :], mask=inside, other=0.0)
    else:
        if STORED == 1:
            byte = tl.load(w + first * inputs + i[None, :], mask=inside, other=0).to(tl.int32)
            value = (((byte & 0x80) << 24) | ((byte & 0x7F) << 20)).to(tl.float32, bitcast=True)
            lift = 1.329227995784916e36  # 2^120: exponents of E4M3 are too low by this much in float32
        else:
            word = start // 8 + tl.arange(0, BLOCK_I // 8)
            there = (o[:, None] < outputs) & (word[None, :] < inputs // 8)
            packed = tl.load(w + first * (inputs // 8) + word[None, :], mask=there, other=0)
            # joined in pairs, so that the eight values of a word stay in the thread that read it
            even = tl.interleave(
                tl.interleave(_nibble(packed, 0), _nibble(packed, 16)),
                tl.interleave(_nibble(packed, 8), _nibble(packed, 24)),
            )
            odd = tl.interleave(
                tl.interleave(_nibble(packed, 4), _nibble(packed, 20)),
                tl.interleave(_nibble(packed, 12), _nibble(packed, 28)),
            )
            value = tl.interleave(even, odd)
            lift = 1.0
        column = start + tl.arange(0, BLOCK_I // GRAIN) * GRAIN
        known = (o[:, None] < outputs) & (column[None, :] < inputs)
        at = (o[:, None] // GROUP_ROWS) * scale_columns + column[None, :] // GROUP_COLUMNS
        factor = tl.load(scale + at, mask=known, other=0.0).to(tl.float32) * lift
        tiles = tl.reshape(value, (BLOCK_O, BLOCK_I // GRAIN, GRAIN))
        if SHIFTED:
            tiles += tl.load(shift + at, mask=known, other=0.0).to(tl.float32)[:, :, None]
        scaled = tiles * factor[:, :, None]
        weight = tl.reshape(scaled, (BLOCK_O, BLOCK_I)).to(kind)
    return weight


@triton.jit
def rows_of(outputs, PAIRED: tl.constexpr, BLOCK_O: tl.constexpr):
    """The matrix rows of a program. PAIRED: one of the first half and its partner of the second, in turn."""
    place = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    return (place % 2) * (outputs // 2) + place // 2 if PAIRED else place


@triton.jit
def leave(out, made, outputs, PAIRED: tl.constexpr, BLOCK_O: tl.constexpr):
    """Store the sums of `rows_of`; of a pair silu(gate) · up, each rounded as if it had been stored."""
    kind = out.dtype.element_ty
    if PAIRED:
        gate, up = tl.split(tl.reshape(made, (BLOCK_O // 2, 2)))
        place = tl.program_id(0) * (BLOCK_O // 2) + tl.arange(0, BLOCK_O // 2)
        gate, up = gate.to(kind).to(tl.float32), up.to(kind).to(tl.float32)
        silu = (gate / (1.0 + tl.exp(-gate))).to(kind).to(tl.float32)
        tl.store(out + place, (silu * up).to(kind), mask=place < outputs // 2)
    else:
        place = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
        tl.store(out + place, made.to(kind), mask=place < outputs)


@triton.jit
def gemv_kernel(
    x, w, scale, shift, out, outputs, inputs, scale_columns, STORED: tl.constexpr, SHIFTED: tl.constexpr,
    GROUP_ROWS: tl.constexpr, GROUP_COLUMNS: tl.constexpr, GRAIN: tl.constexpr, PAIRED: tl.constexpr,
    BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr, PDL: tl.constexpr = False,
):  # fmt: skip
    """One program makes BLOCK_O outputs of one row. Sums are float32: column by column of the tiles, then across.

    PDL  the first tile of weights is on its way before the row is there
    """
    begin_next(PDL)
    o = rows_of(outputs, PAIRED, BLOCK_O)
    total = tl.zeros([BLOCK_O, BLOCK_I], dtype=tl.float32)
    if PDL:
        weight = _tile(
            w, scale, shift, o, 0, outputs, inputs, scale_columns, x.dtype.element_ty, STORED, SHIFTED, GROUP_ROWS,
            GROUP_COLUMNS, GRAIN, BLOCK_O, BLOCK_I,
        )  # fmt: skip
        await_last(PDL)
        i = tl.arange(0, BLOCK_I)
        total += weight.to(tl.float32) * tl.load(x + i, mask=i < inputs, other=0.0).to(tl.float32)[None, :]
    for start in range(BLOCK_I if PDL else 0, inputs, BLOCK_I):
        i = start + tl.arange(0, BLOCK_I)
        row = tl.load(x + i, mask=i < inputs, other=0.0).to(tl.float32)
        weight = _tile(
            w, scale, shift, o, start, outputs, inputs, scale_columns, x.dtype.element_ty, STORED, SHIFTED, GROUP_ROWS,
            GROUP_COLUMNS, GRAIN, BLOCK_O, BLOCK_I,
        )  # fmt: skip
        total += weight.to(tl.float32) * row[None, :]
    leave(out, tl.sum(total, axis=1), outputs, PAIRED, BLOCK_O)


@triton.jit
def few_rows_kernel(
    x, w, scale, shift, out, outputs, inputs, rows, scale_columns, STORED: tl.constexpr, SHIFTED: tl.constexpr,
    GROUP_ROWS: tl.constexpr, GROUP_COLUMNS: tl.constexpr, GRAIN: tl.constexpr, ROWS: tl.constexpr,
    BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    """One program makes BLOCK_O outputs of ROWS rows on the matrix units. Sums are float32, in ascending tiles."""
    o = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([BLOCK_O, ROWS], dtype=tl.float32)
    for start in range(0, inputs, BLOCK_I):
        i = start + tl.arange(0, BLOCK_I)
        row = tl.load(x + r[None, :] * inputs + i[:, None], mask=(r[None, :] < rows) & (i[:, None] < inputs), other=0.0)
        weight = _tile(
            w, scale, shift, o, start, outputs, inputs, scale_columns, x.dtype.element_ty, STORED, SHIFTED, GROUP_ROWS,
            GROUP_COLUMNS, GRAIN, BLOCK_O, BLOCK_I,
        )  # fmt: skip
        total = tl.dot(weight, row, total, input_precision="ieee")
    tl.store(
        out + r[None, :] * outputs + o[:, None],
        total.to(out.dtype.element_ty),
        mask=(r[None, :] < rows) & (o[:, None] < outputs),
    )


def _launch(
    x: Tensor, w: Tensor, scale: Tensor, stored: int, group: tuple[int, int], out: Tensor, paired: bool = False,
    shift: Tensor | None = None,
) -> Tensor:  # fmt: skip
    rows, inputs = x.shape
    outputs = w.shape[0]
    if rows == 1:
        tile, warps = _ROW, 4 if stored == PLAIN else 2
    else:
        tile, warps = (_FEW, 4) if outputs < _MANY else (_FEW_OF_MANY, 8)
    packing = {
        "STORED": stored, "SHIFTED": shift is not None, "GROUP_ROWS": group[0], "GROUP_COLUMNS": group[1],
        "GRAIN": min(group[1] & -group[1], tile[1]), "BLOCK_O": tile[0], "BLOCK_I": tile[1],
    }  # fmt: skip
    how = {"num_warps": warps, "num_stages": 3, "enable_fp_fusion": True}
    grid, shift = (triton.cdiv(outputs, tile[0]),), scale if shift is None else shift
    if rows == 1:
        gemv_kernel[grid](x, w, scale, shift, out, outputs, inputs, scale.shape[-1], PAIRED=paired, **packing, **how,
                          **overlapped(x))  # fmt: skip
    else:
        padded = min(MOST, max(16, triton.next_power_of_2(rows)))  # 16: the least extent of the matrix units
        few_rows_kernel[(*grid, triton.cdiv(rows, padded))](
            x, w, scale, shift, out, outputs, inputs, rows, scale.shape[-1], ROWS=padded, **packing, **how
        )
    return out


def row_out(x: Tensor, rows: int, paired: bool, wide: bool) -> Tensor:
    """Memory for the products of x [T, I] with a matrix of so many rows."""
    kind = torch.float32 if wide else x.dtype
    return torch.empty(x.shape[0], rows // 2 if paired else rows, dtype=kind, device=x.device)


def launch_gemv(x: Tensor, weight: Tensor, paired: bool = False, wide: bool = False) -> Tensor:
    """x [T, I], weight [O, I], both contiguous -> [T, O] in x's type.

    paired  one row only: the matrix is a gate's rows, then as many of what it opens; -> silu(gate) · up [1, O / 2]
    wide    -> float32
    """
    return _launch(x, weight, weight, PLAIN, (1, 1), row_out(x, weight.shape[0], paired, wide), paired)


def launch_gemv_fp8(x: Tensor, values: Tensor, scale: Tensor, block_rows: int, block_columns: int) -> Tensor:
    """x [T, I], values [O, I] float8_e4m3fn, scale [blocks, blocks] float32, all contiguous -> [T, O] in x's type."""
    out = row_out(x, values.shape[0], False, False)
    return _launch(x, values.view(torch.uint8), scale, FP8, (block_rows, block_columns), out)


def launch_gemv_int4(x: Tensor, packed: Tensor, scale: Tensor, shift: Tensor | None = None) -> Tensor:
    """x [T, I], packed [O, I / 8] int32, scale and shift [O, groups] of any float type, contiguous -> [T, O] in x's
    type."""
    group, out = (1, x.shape[1] // scale.shape[1]), row_out(x, packed.shape[0], False, False)
    return _launch(x, packed, scale, INT4, group, out, shift=shift)


@torch.library.custom_op("capsules::gemv", mutates_args=(), device_types="cuda")
def gemv(x: Tensor, weight: Tensor, paired: bool = False, wide: bool = False) -> Tensor:
    return launch_gemv(x, weight, paired, wide)


@gemv.register_fake
def _(x: Tensor, weight: Tensor, paired: bool = False, wide: bool = False) -> Tensor:
    assert x.is_contiguous() and weight.is_contiguous() and (x.shape[0] == 1 or not paired)
    return row_out(x, weight.shape[0], paired, wide)


@torch.library.custom_op("capsules::gemv_fp8", mutates_args=(), device_types="cuda")
def gemv_fp8(x: Tensor, values: Tensor, scale: Tensor, block_rows: int, block_columns: int) -> Tensor:
    return launch_gemv_fp8(x, values, scale, block_rows, block_columns)


@torch.library.custom_op("capsules::gemv_int4", mutates_args=(), device_types="cuda")
def gemv_int4(x: Tensor, packed: Tensor, scale: Tensor, shift: Tensor | None = None) -> Tensor:
    return launch_gemv_int4(x, packed, scale, shift)


@gemv_fp8.register_fake
@gemv_int4.register_fake
def _(x: Tensor, weight: Tensor, scale: Tensor, *others: int | Tensor | None) -> Tensor:
    assert x.is_contiguous() and weight.is_contiguous() and scale.is_contiguous()
    return x.new_empty(x.shape[0], weight.shape[0])
