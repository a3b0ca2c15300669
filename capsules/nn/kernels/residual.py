"""A residual sum and the norm that reads it, in one kernel."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.overlap import await_last, begin_next, overlapped


@triton.jit
def add_norm_kernel(x, y, weight, total, normed, size, eps, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """One program per row. The sum is rounded before it is normed, as the plain form does."""
    begin_next(PDL)
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = i < size
    factor = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    await_last(PDL)
    kind = total.dtype.element_ty
    left = tl.load(x + row * size + i, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(y + row * size + i, mask=inside, other=0.0).to(tl.float32)
    made = (left + right).to(kind)
    tl.store(total + row * size + i, made, mask=inside)
    value = made.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / size + eps)
    tl.store(normed + row * size + i, (value * scale * factor).to(kind), mask=inside)


def launch_add_norm(x: Tensor, y: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x, y [..., N] contiguous, weight [N] -> x + y and its norm."""
    total, normed = torch.empty_like(x), torch.empty_like(x)
    size = x.shape[-1]
    block = triton.next_power_of_2(size)
    add_norm_kernel[(x.numel() // size,)](
        x, y, weight, total, normed, size, eps, BLOCK=block, num_warps=8 if block >= 2048 else 4, enable_fp_fusion=True,
        **overlapped(x),
    )  # fmt: skip
    return total, normed


@torch.library.custom_op("capsules::add_norm", mutates_args=(), device_types="cuda")
def add_norm(x: Tensor, y: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return launch_add_norm(x, y, weight, eps)


@add_norm.register_fake
def _(x: Tensor, y: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    assert x.is_contiguous() and y.is_contiguous() and weight.is_contiguous() and x.shape == y.shape
    return torch.empty_like(x), torch.empty_like(x)
