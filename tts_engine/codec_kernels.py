"""The published codec's layers as kernels for a GPU: one launch a convolution, where the plain form takes eight.

A sum runs over taps and channels in ascending order, whatever surrounds its position and however long the window is:
so a frame's samples depend on the frames it sees and on nothing else, as `tts_engine.framewise` has it for libraries.

    codes_sum(codes [Q, T], table [Q·K, C], bias [C], valid [2])   -> [T, C]
    snake(x [T, C], alpha, inverse [C], valid [2] or None, per)    -> [T, C]
    conv(x [T, C], weight, bias, ...)                              -> [T', O]
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def codes_sum_kernel(codes, table, bias, valid, out, frames, entries, width, BOOKS: tl.constexpr, BLOCK: tl.constexpr):
    """One program per frame and BLOCK channels; zeros where no frame exists."""
    t, c = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = c < width
    total = tl.load(bias + c, mask=inside, other=0.0)
    for q in range(BOOKS):
        row = tl.load(codes + q * frames + t) + q * entries
        total += tl.load(table + row * width + c, mask=inside, other=0.0)
    there = (t >= tl.load(valid)) & (t < tl.load(valid + 1))
    tl.store(out + t * width + c, tl.where(there, total, 0.0), mask=inside)


@triton.jit
def snake_kernel(x, alpha, inverse, valid, out, count, width, per, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    """x + sin²(alpha x) / alpha. MASKED: zeros in positions of frames that do not exist."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    value = tl.load(x + i, mask=inside, other=0.0)
    c = i % width
    wave = tl.sin(tl.load(alpha + c, mask=inside, other=0.0) * value)
    value += tl.load(inverse + c, mask=inside, other=0.0) * (wave * wave)
    if MASKED:
        frame = i // (width * per)
        value = tl.where((frame >= tl.load(valid)) & (frame < tl.load(valid + 1)), value, 0.0)
    tl.store(out + i, value, mask=inside)


@triton.jit
def conv_kernel(
    x, weight, bias, residual, out, length, made, channels, outputs, tap_stride, channel_stride, output_stride,
    dilation, left, bias_period, TAPS: tl.constexpr, ADDED: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_O: tl.constexpr,
    BLOCK_C: tl.constexpr,
):  # fmt: skip
    """One program per BLOCK_T positions and BLOCK_O outputs. Products in float32 without TF32."""
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    total = tl.zeros([BLOCK_T, BLOCK_O], dtype=tl.float32)
    for tap in range(TAPS):
        source = t + tap * dilation - left
        there = ((source >= 0) & (source < length))[:, None]
        for start in range(0, channels, BLOCK_C):
            c = start + tl.arange(0, BLOCK_C)
            known = c < channels
            seen = tl.load(x + source[:, None] * channels + c[None, :], mask=there & known[None, :], other=0.0)
            at = tap * tap_stride + c[:, None] * channel_stride + o[None, :] * output_stride
            part = tl.load(weight + at, mask=known[:, None] & (o < outputs)[None, :], other=0.0)
            total = tl.dot(seen, part, total, input_precision="ieee")
    total += tl.load(bias + o % bias_period, mask=o < outputs, other=0.0)[None, :]
    place = t[:, None] * outputs + o[None, :]
    inside = (t < made)[:, None] & (o < outputs)[None, :]
    if ADDED:
        total += tl.load(residual + place, mask=inside, other=0.0)
    tl.store(out + place, total, mask=inside)


def launch_codes_sum(codes: Tensor, table: Tensor, bias: Tensor, valid: Tensor) -> Tensor:
    """codes [Q, T] int64; table [Q · entries, C] float32; valid [2] int64, the frames that exist."""
    books, frames = codes.shape
    width = table.shape[1]
    out = torch.empty(frames, width, dtype=torch.float32, device=table.device)
    block = min(1024, triton.next_power_of_2(width))
    codes_sum_kernel[(frames, triton.cdiv(width, block))](
        codes, table, bias, valid, out, frames, table.shape[0] // books, width, BOOKS=books, BLOCK=block, num_warps=4,
        enable_fp_fusion=False,
    )  # fmt: skip
    return out


def launch_snake(x: Tensor, alpha: Tensor, inverse: Tensor, valid: Tensor | None, per: int) -> Tensor:
    """x [T, C] contiguous float32; alpha, inverse [C], inverse is 1 / alpha; `per` positions are a frame."""
    out = torch.empty_like(x)
    block = 1024
    snake_kernel[(triton.cdiv(x.numel(), block),)](
        x, alpha, inverse, x if valid is None else valid, out, x.numel(), x.shape[1], per, MASKED=valid is not None,
        BLOCK=block, num_warps=4, enable_fp_fusion=False,
    )  # fmt: skip
    return out


def launch_conv(
    x: Tensor, weight: Tensor, bias: Tensor, strides: list[int], taps: int, outputs: int, dilation: int, left: int,
    made: int, narrow: bool, residual: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A convolution over rows.

    x        [T, C] contiguous float32
    weight   float32, strides of its taps, channels and outputs; bias [O], or fewer that repeat
    left     zeros before the first row; behind the last there are as many as the taps see
    made     rows of the result [made, O]
    narrow   whether a frame has few positions: then there are many inputs and few rows
    residual [made, O], added at the end
    """
    length, channels = x.shape
    out = torch.empty(made, outputs, dtype=torch.float32, device=x.device)
    tile_t, tile_o = (16, 32) if narrow else (64, 32)
    conv_kernel[(triton.cdiv(made, tile_t), triton.cdiv(outputs, tile_o))](
        x, weight, bias, out if residual is None else residual, out, length, made, channels, outputs, *strides,
        dilation, left, bias.numel(), TAPS=taps, ADDED=residual is not None, BLOCK_T=tile_t, BLOCK_O=tile_o, BLOCK_C=32,
        num_warps=4, num_stages=3, enable_fp_fusion=True,
    )  # fmt: skip
    return out


@torch.library.custom_op("tts_engine::codes_sum", mutates_args=(), device_types="cuda")
def codes_sum(codes: Tensor, table: Tensor, bias: Tensor, valid: Tensor) -> Tensor:
    return launch_codes_sum(codes, table, bias, valid)


@codes_sum.register_fake
def _(codes: Tensor, table: Tensor, bias: Tensor, valid: Tensor) -> Tensor:
    assert codes.is_contiguous() and table.is_contiguous()
    return table.new_empty(codes.shape[1], table.shape[1])


@torch.library.custom_op("tts_engine::snake", mutates_args=(), device_types="cuda")
def snake(x: Tensor, alpha: Tensor, inverse: Tensor, valid: Tensor | None, per: int) -> Tensor:
    return launch_snake(x, alpha, inverse, valid, per)


@snake.register_fake
def _(x: Tensor, alpha: Tensor, inverse: Tensor, valid: Tensor | None, per: int) -> Tensor:
    assert x.is_contiguous() and alpha.numel() == inverse.numel() == x.shape[1]
    return torch.empty_like(x)


@torch.library.custom_op("tts_engine::conv", mutates_args=(), device_types="cuda")
def conv(
    x: Tensor, weight: Tensor, bias: Tensor, strides: list[int], taps: int, outputs: int, dilation: int, left: int,
    made: int, narrow: bool, residual: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return launch_conv(x, weight, bias, strides, taps, outputs, dilation, left, made, narrow, residual)


@conv.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor, strides: list[int], taps: int, outputs: int, dilation: int, left: int,
    made: int, narrow: bool, residual: Tensor | None = None,
) -> Tensor:  # fmt: skip
    assert x.is_contiguous() and bias.is_contiguous() and (residual is None or residual.is_contiguous())
    return x.new_empty(made, outputs)
