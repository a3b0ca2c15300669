"""An FP8 weight matrix times up to eight rows: one byte read per weight, widened in registers.

The very sums of `gemv` over the unpacked matrix: the same tiles, each weight rounded once to the rows' type. Bits are
moved through float16, so the kernel needs no FP8 instructions and runs on older cards too.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def gemv_fp8_kernel(
    x, w, scale, out, outputs, inputs, rows, scale_columns, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    """One program makes BLOCK_O outputs of all rows. w holds the bytes of E4M3 values, scale one float32 per block."""
    o = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    r = tl.arange(0, ROWS)
    total = tl.zeros([ROWS, BLOCK_O], dtype=tl.float32)
    for start in range(0, inputs, BLOCK_I):
        i = start + tl.arange(0, BLOCK_I)
        inside = (o[:, None] < outputs) & (i[None, :] < inputs)
        byte = tl.load(w + o[:, None].to(tl.int64) * inputs + i[None, :], mask=inside, other=0).to(tl.int16)
        half = (((byte & 0x80) << 8) | ((byte & 0x7F) << 7)).to(tl.float16, bitcast=True)  # exponent is 8 too low
        factor = tl.load(
            scale + (o[:, None] // BLOCK_ROWS) * scale_columns + i[None, :] // BLOCK_COLUMNS, mask=inside, other=0.0
        )
        weight = (half.to(tl.float32) * 256.0 * factor).to(x.dtype.element_ty).to(tl.float32)
        value = tl.load(
            x + r[:, None] * inputs + i[None, :], mask=(r[:, None] < rows) & (i[None, :] < inputs), other=0.0
        ).to(tl.float32)
        total += tl.sum(weight[None, :, :] * value[:, None, :], axis=2)
    tl.store(
        out + r[:, None] * outputs + o[None, :],
        total.to(out.dtype.element_ty),
        mask=(r[:, None] < rows) & (o[None, :] < outputs),
    )


def launch_gemv_fp8(x: Tensor, values: Tensor, scale: Tensor, block_rows: int, block_columns: int) -> Tensor:
    """x [T, I], values [O, I] float8_e4m3fn, scale [blocks, blocks] float32, all contiguous -> [T, O] in x's type."""
    rows, inputs = x.shape
    outputs = values.shape[0]
    out = x.new_empty(rows, outputs)
    padded = triton.next_power_of_2(rows)
    block_o = 8
    gemv_fp8_kernel[(triton.cdiv(outputs, block_o),)](
        x,
        values.view(torch.uint8),
        scale,
        out,
        outputs,
        inputs,
        rows,
        scale.shape[1],
        BLOCK_ROWS=block_rows,
        BLOCK_COLUMNS=block_columns,
        ROWS=padded,
        BLOCK_O=block_o,
        BLOCK_I=max(128, 1024 // padded),
        num_warps=4,
        enable_fp_fusion=True,
    )
    return out


@torch.library.custom_op("capsules::gemv_fp8", mutates_args=(), device_types="cuda")
def gemv_fp8(x: Tensor, values: Tensor, scale: Tensor, block_rows: int, block_columns: int) -> Tensor:
    return launch_gemv_fp8(x, values, scale, block_rows, block_columns)


@gemv_fp8.register_fake
def _(x: Tensor, values: Tensor, scale: Tensor, block_rows: int, block_columns: int) -> Tensor:
    assert x.is_contiguous() and values.is_contiguous() and scale.is_contiguous()
    return x.new_empty(x.shape[0], values.shape[0])
