"""A weight matrix times up to eight rows: every weight is read once, at the speed of memory.

The matrix may be packed: FP8 is one byte per weight, 4-bit integers are eight to a word. They are widened in registers
and rounded once to the rows' type, so the sums are the very ones over the unpacked matrix. FP8 bits are moved through
float16, so the kernel needs no FP8 instructions and runs on older cards too.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

PLAIN, FP8, INT4 = 0, 1, 2
_BLOCK_O = 8


@triton.jit
def gemv_kernel(
    x, w, scale, out, outputs, inputs, rows, scale_columns, STORED: tl.constexpr, GROUP_ROWS: tl.constexpr,
    GROUP_COLUMNS: tl.constexpr, ROWS: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    """One program makes BLOCK_O outputs of all rows. Sums are float32, in ascending tiles of BLOCK_I.

    STORED  0: w holds floats, `scale` is not read; 1: bytes of E4M3 values; 2: words of eight 4-bit values plus 8
    """
    o = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    r = tl.arange(0, ROWS)
    total = tl.zeros([ROWS, BLOCK_O], dtype=tl.float32)
    for start in range(0, inputs, BLOCK_I):
        i = start + tl.arange(0, BLOCK_I)
        inside = (o[:, None] < outputs) & (i[None, :] < inputs)
        if STORED == 0:
            weight = tl.load(w + o[:, None].to(tl.int64) * inputs + i[None, :], mask=inside, other=0.0).to(tl.float32)
        else:
            if STORED == 1:
                byte = tl.load(w + o[:, None].to(tl.int64) * inputs + i[None, :], mask=inside, other=0).to(tl.int16)
                half = (((byte & 0x80) << 8) | ((byte & 0x7F) << 7)).to(tl.float16, bitcast=True)  # exponent 8 too low
                value = half.to(tl.float32) * 256.0
            else:
                word = start // 8 + tl.arange(0, BLOCK_I // 8)
                there = (o[:, None] < outputs) & (word[None, :] < inputs // 8)
                packed = tl.load(w + o[:, None].to(tl.int64) * (inputs // 8) + word[None, :], mask=there, other=0)
                shift = tl.arange(0, 8) * 4
                four = (packed[:, :, None] >> shift[None, None, :]) & 15
                value = (tl.reshape(four, (BLOCK_O, BLOCK_I)) - 8).to(tl.float32)
            factor = tl.load(
                scale + (o[:, None] // GROUP_ROWS) * scale_columns + i[None, :] // GROUP_COLUMNS, mask=inside, other=0.0
            )
            weight = (value * factor).to(x.dtype.element_ty).to(tl.float32)
        row = tl.load(
            x + r[:, None] * inputs + i[None, :], mask=(r[:, None] < rows) & (i[None, :] < inputs), other=0.0
        ).to(tl.float32)
        total += tl.sum(weight[None, :, :] * row[:, None, :], axis=2)
    tl.store(
        out + r[:, None] * outputs + o[None, :],
        total.to(out.dtype.element_ty),
        mask=(r[:, None] < rows) & (o[None, :] < outputs),
    )


def _launch(x: Tensor, w: Tensor, scale: Tensor, stored: int, group: tuple[int, int]) -> Tensor:
    rows, inputs = x.shape
    outputs = w.shape[0]
    out = x.new_empty(rows, outputs)
    padded = triton.next_power_of_2(rows)
    gemv_kernel[(triton.cdiv(outputs, _BLOCK_O),)](
        x, w, scale, out, outputs, inputs, rows, scale.shape[-1], STORED=stored, GROUP_ROWS=group[0],
        GROUP_COLUMNS=group[1], ROWS=padded, BLOCK_O=_BLOCK_O, BLOCK_I=max(128, 1024 // padded), num_warps=4,
        enable_fp_fusion=True,
    )  # fmt: skip
    return out


def launch_gemv(x: Tensor, weight: Tensor) -> Tensor:
    """x [T, I], weight [O, I], both contiguous -> [T, O] in x's type."""
    return _launch(x, weight, weight, PLAIN, (1, 1))


def launch_gemv_fp8(x: Tensor, values: Tensor, scale: Tensor, block_rows: int, block_columns: int) -> Tensor:
    """x [T, I], values [O, I] float8_e4m3fn, scale [blocks, blocks] float32, all contiguous -> [T, O] in x's type."""
    return _launch(x, values.view(torch.uint8), scale, FP8, (block_rows, block_columns))


def launch_gemv_int4(x: Tensor, packed: Tensor, scale: Tensor) -> Tensor:
    """x [T, I], packed [O, I / 8] int32, scale [O, groups] float32, all contiguous -> [T, O] in x's type."""
    return _launch(x, packed, scale, INT4, (1, x.shape[1] // scale.shape[1]))


@torch.library.custom_op("capsules::gemv", mutates_args=(), device_types="cuda")
def gemv(x: Tensor, weight: Tensor) -> Tensor:
    return launch_gemv(x, weight)


@torch.library.custom_op("capsules::gemv_fp8", mutates_args=(), device_types="cuda")
def gemv_fp8(x: Tensor, values: Tensor, scale: Tensor, block_rows: int, block_columns: int) -> Tensor:
    return launch_gemv_fp8(x, values, scale, block_rows, block_columns)


@torch.library.custom_op("capsules::gemv_int4", mutates_args=(), device_types="cuda")
def gemv_int4(x: Tensor, packed: Tensor, scale: Tensor) -> Tensor:
    return launch_gemv_int4(x, packed, scale)


@gemv.register_fake
@gemv_fp8.register_fake
@gemv_int4.register_fake
def _(x: Tensor, weight: Tensor, scale: Tensor | None = None, *block: int) -> Tensor:
    assert x.is_contiguous() and weight.is_contiguous() and (scale is None or scale.is_contiguous())
    return x.new_empty(x.shape[0], weight.shape[0])
