"""Attention of one query row over a static cache whose valid length only the device knows.

The cache is cut into splits of a fixed size, not a fixed number, so the sums have the same order whatever the
capacity. Programs beyond the length exit at once; a second kernel joins the parts in ascending order
(Dao et al. 2023, "Flash-Decoding"). Splits are short, because a card has more units than a talk has keys: on an H100 a
split of 256 keys, tile after tile, took 165 us with heads of 256.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.overlap import await_last, begin_next, overlapped

SPLIT, JOINED = 32, 16
_MIN_DOT = 16  # smallest extent of a matrix product on tensor cores


@triton.jit
def split_kernel(
    q, k, v, position, peaks, sums, parts, scale, splits, key_stride, group_stride,
    SHARE: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr, SPLIT: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """One program per key head and split: the SHARE query heads of that key head over SPLIT keys.

    Values stored in bfloat16 fit TF32 without loss, so their products are exact there; the weights, which are float32,
    are split into three parts. Float32 itself never goes through TF32.
    """
    begin_next(PDL)
    await_last(PDL)
    group, split = tl.program_id(0), tl.program_id(1)
    length = tl.load(position) + 1
    start = split * SPLIT
    if start < length:
        h, d, s = tl.arange(0, HEADS), tl.arange(0, SIZE), tl.arange(0, SPLIT)
        mine = h < SHARE
        head = group * SHARE + h
        query = tl.load(q + head[:, None] * SIZE + d[None, :], mask=mine[:, None], other=0.0).to(tl.float32)
        valid = start + s < length
        at = start.to(tl.int64) * key_stride + group * group_stride + s[:, None] * key_stride + d[None, :]
        keys = tl.load(k + at, mask=valid[:, None], other=0.0).to(tl.float32)
        values = tl.load(v + at, mask=valid[:, None], other=0.0).to(tl.float32)
        wide: tl.constexpr = k.dtype.element_ty == tl.float32
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee" if wide else "tf32") * scale  # [HEADS, SPLIT]
        scores = tl.where(valid[None, :], scores, float("-inf"))
        peak = tl.max(scores, axis=1)
        weights = tl.exp(scores - peak[:, None])
        gathered = tl.dot(weights, values, input_precision="ieee" if wide else "tf32x3")
        place = head * splits + split
        tl.store(peaks + place, peak, mask=mine)
        tl.store(sums + place, tl.sum(weights, axis=1), mask=mine)
        tl.store(parts + place[:, None].to(tl.int64) * SIZE + d[None, :], gathered, mask=mine[:, None])


@triton.jit
def join_kernel(
    peaks, sums, parts, position, gate, out, splits, gate_stride, SIZE: tl.constexpr, SPLIT: tl.constexpr,
    JOINED: tl.constexpr, GATED: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """One program per query head; JOINED splits at a time. GATED: the result goes through the sigmoid of a gate."""
    begin_next(PDL)
    await_last(PDL)
    head = tl.program_id(0)
    used = (tl.load(position) + SPLIT) // SPLIT
    d, j = tl.arange(0, SIZE), tl.arange(0, JOINED)
    peak = float("-inf")
    total = 0.0
    gathered = tl.zeros([SIZE], dtype=tl.float32)
    for first in range(0, used, JOINED):
        inside = first + j < used
        place = head * splits + first + j
        there = tl.load(peaks + place, mask=inside, other=float("-inf"))
        higher = tl.maximum(peak, tl.max(there, axis=0))
        keep, take = tl.exp(peak - higher), tl.exp(there - higher)
        part = tl.load(parts + place[:, None].to(tl.int64) * SIZE + d[None, :], mask=inside[:, None], other=0.0)
        gathered = gathered * keep + tl.sum(part * take[:, None], axis=0)
        total = total * keep + tl.sum(tl.load(sums + place, mask=inside, other=0.0) * take, axis=0)
        peak = higher
    kind = out.dtype.element_ty
    made = (gathered / total).to(kind)
    if GATED:
        made = through_gate(made, gate + head * gate_stride + d, d < SIZE)
    tl.store(out + head * SIZE + d, made)


@triton.jit
def through_gate(made, gate, inside):
    """Each factor is rounded as if it had been stored."""
    opened = tl.sigmoid(tl.load(gate, mask=inside, other=0.0).to(tl.float32)).to(made.dtype)
    return (made.to(tl.float32) * opened.to(tl.float32)).to(made.dtype)


def launch_decode_attention(
    q: Tensor, k: Tensor, v: Tensor, position: Tensor, scale: float, gate: Tensor | None = None
) -> Tensor:
    """q [H, D] contiguous; k, v [S, G, D] with equal strides and D contiguous; position [1] int64 below S -> [H, D].

    gate   [H, D], D contiguous: the result is multiplied by its sigmoid
    D is a power of two from 16 up. Keys beyond the position are never read.
    """
    heads, size = q.shape
    rows, groups = k.shape[:2]
    share = heads // groups
    splits = triton.cdiv(rows, SPLIT)
    peaks = torch.empty(heads, splits, dtype=torch.float32, device=q.device)
    sums, parts = torch.empty_like(peaks), torch.empty(heads, splits, size, dtype=torch.float32, device=q.device)
    split_kernel[(groups, splits)](
        q, k, v, position, peaks, sums, parts, scale, splits, k.stride(0), k.stride(1),
        SHARE=share, HEADS=max(_MIN_DOT, triton.next_power_of_2(share)), SIZE=size, SPLIT=SPLIT,
        num_warps=4, enable_fp_fusion=True, **overlapped(q),
    )  # fmt: skip
    out = torch.empty_like(q)
    join_kernel[(heads,)](
        peaks, sums, parts, position, out if gate is None else gate, out, splits, 0 if gate is None else gate.stride(0),
        SIZE=size, SPLIT=SPLIT, JOINED=JOINED, GATED=gate is not None, num_warps=4, enable_fp_fusion=True,
        **overlapped(q),
    )  # fmt: skip
    return out


@torch.library.custom_op("capsules::decode_attention", mutates_args=(), device_types="cuda")
def decode_attention(
    q: Tensor, k: Tensor, v: Tensor, position: Tensor, scale: float, gate: Tensor | None = None
) -> Tensor:
    return launch_decode_attention(q, k, v, position, scale, gate)


@decode_attention.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, position: Tensor, scale: float, gate: Tensor | None = None
) -> Tensor:
    assert gate is None or gate.stride(-1) == 1
    assert q.is_contiguous() and k.stride() == v.stride() and k.stride(-1) == 1
    return torch.empty_like(q)
