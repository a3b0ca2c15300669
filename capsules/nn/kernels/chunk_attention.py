"""Attention of several query rows over a static cache, which stops at the rows' own positions.

The reads do not depend on how much of the cache there is, so one graph serves every position. Tiles of keys have a
fixed size and come in ascending order: no result depends on a capacity (Dao 2023, "FlashAttention-2").
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.attention import through_gate

ROWS, KEYS = 16, 32


@triton.jit
def chunk_attention_kernel(
    q, k, v, first, gate, out, rows, scale, share, key_stride, group_stride, gate_row, gate_head, HEADS: tl.constexpr,
    SIZE: tl.constexpr, GATED: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """One program per ROWS rows and query head. Products as in `split_kernel`: exact where bfloat16 is stored."""
    r, head = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    d, s = tl.arange(0, SIZE), tl.arange(0, KEYS)
    begin = tl.load(first)
    end = begin + tl.minimum(rows, (tl.program_id(0) + 1) * ROWS)
    mine = (r < rows)[:, None]
    place = (r[:, None] * HEADS + head) * SIZE + d[None, :]
    query = tl.load(q + place, mask=mine, other=0.0).to(tl.float32)
    wide: tl.constexpr = k.dtype.element_ty == tl.float32
    peak = tl.full([ROWS], float("-inf"), dtype=tl.float32)
    total = tl.zeros([ROWS], dtype=tl.float32)
    gathered = tl.zeros([ROWS, SIZE], dtype=tl.float32)
    for start in range(0, end, KEYS):
        row = (start + s).to(tl.int64)
        there = (row < end)[:, None]
        at = row[:, None] * key_stride + (head // share) * group_stride + d[None, :]
        keys = tl.load(k + at, mask=there, other=0.0).to(tl.float32)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee" if wide else "tf32") * scale
        scores = tl.where(row[None, :] <= begin + r[:, None], scores, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp(scores - higher[:, None])
        keep = tl.exp(peak - higher)
        values = tl.load(v + at, mask=there, other=0.0).to(tl.float32)
        gathered = gathered * keep[:, None]
        gathered = tl.dot(weights, values, gathered, input_precision="ieee" if wide else "tf32x3")
        total = total * keep + tl.sum(weights, axis=1)
        peak = higher
    made = (gathered / total[:, None]).to(out.dtype.element_ty)
    if GATED:
        made = through_gate(made, gate + r[:, None] * gate_row + head * gate_head + d[None, :], mine)
    tl.store(out + place, made, mask=mine)


def launch_chunk_attention(
    q: Tensor, k: Tensor, v: Tensor, first: Tensor, scale: float, gate: Tensor | None = None
) -> Tensor:
    """q [T, H, D] contiguous; k, v [S, G, D] with equal strides, D contiguous; first [1] int64 -> [T, H, D].

    Row i sees the keys 0 … first + i, which the cache must hold. D is a power of two from 16 up.
    gate   [T, H, D], D contiguous: the result is multiplied by its sigmoid
    """
    rows, heads, size = q.shape
    out = torch.empty_like(q)
    opening = out if gate is None else gate
    chunk_attention_kernel[(triton.cdiv(rows, ROWS), heads)](
        q, k, v, first, opening, out, rows, scale, heads // k.shape[1], k.stride(0), k.stride(1), opening.stride(0),
        opening.stride(1), HEADS=heads, SIZE=size, GATED=gate is not None, ROWS=ROWS, KEYS=KEYS,
        num_warps=8 if size > 128 else 4, num_stages=2, enable_fp_fusion=True,
    )  # fmt: skip
    return out


@torch.library.custom_op("capsules::chunk_attention", mutates_args=(), device_types="cuda")
def chunk_attention(
    q: Tensor, k: Tensor, v: Tensor, first: Tensor, scale: float, gate: Tensor | None = None
) -> Tensor:
    return launch_chunk_attention(q, k, v, first, scale, gate)


@chunk_attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, first: Tensor, scale: float, gate: Tensor | None = None) -> Tensor:
    assert q.is_contiguous() and k.stride() == v.stride() and k.stride(-1) == 1
    assert q.shape[-1] >= 16 and q.shape[-1].bit_count() == 1 and (gate is None or gate.stride(-1) == 1)
    return torch.empty_like(q)
