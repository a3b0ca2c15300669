"""From one projection to attention: norm and rotary of every query and key, and both rows of the cache."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.overlap import await_last, begin_next, overlapped


@triton.jit
def heads_kernel(
    qkv, q_norm, k_norm, cos, sin, first, out, keys, values, width, query_stride, key_stride, group_stride, eps,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, SIZE: tl.constexpr, TURNED: tl.constexpr, NORMED: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """One program per row and head: queries go to `out`, keys and values to row `first` + row of the cache.

    Between norm, where there is one, and turn the value is rounded to the row's type, as the plain form does.
    """
    begin_next(PDL)
    await_last(PDL)
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i = tl.arange(0, SIZE)
    kind = qkv.dtype.element_ty
    group = head - HEADS
    at = tl.where(head < HEADS, head * query_stride, HEADS * query_stride + group * SIZE)
    source = qkv + row * width + at
    place = (tl.load(first) + row) * key_stride
    if head < HEADS + GROUPS:
        value = tl.load(source + i).to(tl.float32)
        # The partner of dimension j is j + TURNED/2, with a minus sign for the lower half.
        half: tl.constexpr = TURNED // 2
        partner = tl.where(i < half, i + half, i - half)
        turned = i < TURNED
        other = tl.load(source + partner, mask=turned, other=0.0).to(tl.float32)
        if NORMED:
            weight = tl.where(head < HEADS, tl.load(q_norm + i).to(tl.float32), tl.load(k_norm + i).to(tl.float32))
            scale = tl.rsqrt(tl.sum(value * value, axis=0) / SIZE + eps)
            value = (value * scale * weight).to(kind).to(tl.float32)
            q_other = tl.load(q_norm + partner, mask=turned, other=0.0).to(tl.float32)
            k_other = tl.load(k_norm + partner, mask=turned, other=0.0).to(tl.float32)
            other = (other * scale * tl.where(head < HEADS, q_other, k_other)).to(kind).to(tl.float32)
        other = tl.where(i < half, -other, other)
        c = tl.load(cos + row * TURNED + i, mask=turned, other=1.0)
        s = tl.load(sin + row * TURNED + i, mask=turned, other=0.0)
        made = (value * c + other * s).to(kind)
        if head < HEADS:
            tl.store(out + (row * HEADS + head) * SIZE + i, made)
        else:
            tl.store(keys + place + group * group_stride + i, made)
    else:
        tl.store(values + place + (group - GROUPS) * group_stride + i, tl.load(source + i))


def launch_heads(
    qkv: Tensor, heads: int, q_norm: Tensor | None, k_norm: Tensor | None, eps: float, cos: Tensor, sin: Tensor,
    first: Tensor, keys: Tensor, values: Tensor,
) -> Tensor:  # fmt: skip
    """qkv [T, (H + 2G) D], or [T, (2H + 2G) D] where a gate of D follows each query; the rest as `heads_to_cache`.

    q_norm, k_norm  [D]; None where heads are not normalised
    first   [1] int64, position of the first row; keys, values [S, G, D] of qkv's type, with equal strides
    """
    rows, width = qkv.shape
    groups, size = keys.shape[1:]
    out = qkv.new_empty(rows, heads, size)
    query_stride = (width - 2 * groups * size) // heads
    norms = (cos, cos) if q_norm is None else (q_norm, k_norm)  # a kernel without norms reads none
    heads_kernel[(rows, heads + 2 * groups)](
        qkv, *norms, cos, sin, first, out, keys, values, width, query_stride, keys.stride(0), keys.stride(1), eps,
        HEADS=heads, GROUPS=groups, SIZE=size, TURNED=cos.shape[-1], NORMED=q_norm is not None, num_warps=1,
        enable_fp_fusion=True, **overlapped(qkv),
    )  # fmt: skip
    return out


heads = torch.library.custom_op(
    "capsules::heads", launch_heads, mutates_args=("keys", "values"), device_types="cuda"
)


@heads.register_fake
def _(
    qkv: Tensor, heads: int, q_norm: Tensor | None, k_norm: Tensor | None, eps: float, cos: Tensor, sin: Tensor,
    first: Tensor, keys: Tensor, values: Tensor,
) -> Tensor:  # fmt: skip
    assert qkv.is_contiguous() and cos.is_contiguous() and sin.is_contiguous() and qkv.dtype == keys.dtype
    assert keys.stride() == values.stride() and keys.stride(-1) == 1 and keys.shape[-1].bit_count() == 1
    return qkv.new_empty(qkv.shape[0], heads, keys.shape[-1])
