"""RMS normalisation of whole rows, alone or followed by the rotary turn of the same head, and the gate of the MLP."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.overlap import await_last, begin_next, overlapped


@triton.jit
def rms_norm_kernel(x, weight, out, size, eps, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """One program per row."""
    begin_next(PDL)
    await_last(PDL)
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = i < size
    value = tl.load(x + row * size + i, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / size + eps)
    factor = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * size + i, (value * scale * factor).to(out.dtype.element_ty), mask=inside)


@triton.jit
def norm_rotate_kernel(
    x, weight, cos, sin, out, heads, row_stride, head_stride, eps, SIZE: tl.constexpr, TURNED: tl.constexpr
):
    """One program per row and head. Between norm and turn the value is rounded to x's type, as in the plain form."""
    row = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    i = tl.arange(0, SIZE)
    source = x + row * row_stride + head * head_stride
    value = tl.load(source + i).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / SIZE + eps)
    kind = out.dtype.element_ty
    normed = (value * scale * tl.load(weight + i).to(tl.float32)).to(kind).to(tl.float32)
    # The partner of dimension j is j + TURNED/2, with a minus sign for the lower half.
    half: tl.constexpr = TURNED // 2
    partner = tl.where(i < half, i + half, i - half)
    turned = i < TURNED
    other = tl.load(source + partner, mask=turned, other=0.0).to(tl.float32)
    other = (other * scale * tl.load(weight + partner, mask=turned, other=0.0).to(tl.float32)).to(kind).to(tl.float32)
    other = tl.where(i < half, -other, other)
    c = tl.load(cos + row * TURNED + i, mask=turned, other=1.0)
    s = tl.load(sin + row * TURNED + i, mask=turned, other=0.0)
    tl.store(out + (row * heads + head) * SIZE + i, (normed * c + other * s).to(kind))


@triton.jit
def swiglu_kernel(gate_up, out, size, BLOCK: tl.constexpr):
    """silu of the first half times the second half. silu is rounded to the type, as in the plain form."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    kind = out.dtype.element_ty
    gate = tl.load(gate_up + row * 2 * size + i, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * size + size + i, mask=inside, other=0.0).to(tl.float32)
    silu = (gate / (1.0 + tl.exp(-gate))).to(kind).to(tl.float32)
    tl.store(out + row * size + i, (silu * up).to(kind), mask=inside)


def launch_rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., N] contiguous, weight [N]."""
    out = torch.empty_like(x)
    size = x.shape[-1]
    block = triton.next_power_of_2(size)
    warps = 8 if block >= 2048 else 4 if block >= 512 else 1
    rms_norm_kernel[(x.numel() // size,)](
        x, weight, out, size, eps, BLOCK=block, num_warps=warps, enable_fp_fusion=True, **overlapped(x)
    )
    return out


def launch_norm_rotate(x: Tensor, weight: Tensor, eps: float, cos: Tensor, sin: Tensor) -> Tensor:
    """x [T, H, D] with D contiguous and a power of two; cos, sin [T, R] float32 contiguous, R even, R ≤ D."""
    rows, heads, size = x.shape
    out = x.new_empty(rows, heads, size)
    norm_rotate_kernel[(rows * heads,)](
        x,
        weight,
        cos,
        sin,
        out,
        heads,
        x.stride(0),
        x.stride(1),
        eps,
        SIZE=size,
        TURNED=cos.shape[-1],
        num_warps=1,
        enable_fp_fusion=True,
    )
    return out


def launch_swiglu(gate_up: Tensor) -> Tensor:
    """gate_up [T, 2I] contiguous -> [T, I]."""
    rows, double = gate_up.shape
    out = gate_up.new_empty(rows, double // 2)
    block = 1024
    swiglu_kernel[(rows, triton.cdiv(double // 2, block))](
        gate_up, out, double // 2, BLOCK=block, num_warps=4, enable_fp_fusion=True
    )
    return out


@torch.library.custom_op("capsules::rms_norm", mutates_args=(), device_types="cuda")
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return launch_rms_norm(x, weight, eps)


@rms_norm.register_fake
def _(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    assert x.is_contiguous() and weight.is_contiguous()
    return torch.empty_like(x)


@torch.library.custom_op("capsules::norm_rotate", mutates_args=(), device_types="cuda")
def norm_rotate(x: Tensor, weight: Tensor, eps: float, cos: Tensor, sin: Tensor) -> Tensor:
    return launch_norm_rotate(x, weight, eps, cos, sin)


@norm_rotate.register_fake
def _(x: Tensor, weight: Tensor, eps: float, cos: Tensor, sin: Tensor) -> Tensor:
    assert x.stride(-1) == 1 and x.shape[-1].bit_count() == 1 and cos.is_contiguous() and sin.is_contiguous()
    return x.new_empty(x.shape)


@torch.library.custom_op("capsules::swiglu", mutates_args=(), device_types="cuda")
def swiglu(gate_up: Tensor) -> Tensor:
    return launch_swiglu(gate_up)


@swiglu.register_fake
def _(gate_up: Tensor) -> Tensor:
    assert gate_up.is_contiguous()
    return gate_up.new_empty(gate_up.shape[0], gate_up.shape[1] // 2)
