"""Cosines and sines of rotary positions, in one kernel instead of ten to twenty operators."""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def angles_kernel(
    axes, shift, cos, sin, axis_stride, exponent, HALF: tl.constexpr, HEIGHTS: tl.constexpr, WIDTHS: tl.constexpr,
    SHIFTED: tl.constexpr,
):  # fmt: skip
    """One program per row. `exponent`: minus the binary logarithm of the base, over the number of frequencies.

    Frequency j turns with axis 1 if j mod 3 is 1, with axis 2 if it is 2, each as often as the sections say.
    """
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, HALF)
    axis = tl.where((j % 3 == 1) & (j < 3 * HEIGHTS), 1, tl.where((j % 3 == 2) & (j < 3 * WIDTHS), 2, 0))
    position = tl.load(axes + axis * axis_stride + row)
    if SHIFTED:
        position += tl.load(shift)
    angle = position.to(tl.float32) * tl.exp2(j.to(tl.float32) * exponent)
    c, s = tl.cos(angle), tl.sin(angle)
    at = row * (2 * HALF) + j
    tl.store(cos + at, c)
    tl.store(cos + at + HALF, c)
    tl.store(sin + at, s)
    tl.store(sin + at + HALF, s)


def launch_angles(
    axes: Tensor, shift: Tensor | None, dims: int, theta: float, heights: int = 0, widths: int = 0
) -> tuple[Tensor, Tensor]:
    """Cosines and sines at positions.

    axes     [1, T] int64, or [3, T] with sections: time, height, width; the last axis contiguous
    shift    [1] int64, added to every position, or None
    returns  cos, sin [T, dims] float32, each frequency twice; dims/2 a power of two
    """
    rows, half = axes.shape[-1], dims // 2
    cos = torch.empty(rows, dims, dtype=torch.float32, device=axes.device)
    sin = torch.empty_like(cos)
    angles_kernel[(rows,)](
        axes, axes if shift is None else shift, cos, sin, axes.stride(0), -math.log2(theta) / half, HALF=half,
        HEIGHTS=heights, WIDTHS=widths, SHIFTED=shift is not None, num_warps=1, enable_fp_fusion=True,
    )  # fmt: skip
    return cos, sin


@torch.library.custom_op("capsules::angles", mutates_args=(), device_types="cuda")
def angles(
    axes: Tensor, shift: Tensor | None, dims: int, theta: float, heights: int = 0, widths: int = 0
) -> tuple[Tensor, Tensor]:
    return launch_angles(axes, shift, dims, theta, heights, widths)


@angles.register_fake
def _(
    axes: Tensor, shift: Tensor | None, dims: int, theta: float, heights: int = 0, widths: int = 0
) -> tuple[Tensor, Tensor]:
    assert axes.dim() == 2 and axes.stride(-1) == 1 and (dims // 2).bit_count() == 1
    cos = torch.empty(axes.shape[-1], dims, dtype=torch.float32, device=axes.device)
    return cos, torch.empty_like(cos)
