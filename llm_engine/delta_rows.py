"""Up to 64 tokens through the delta-net mixer in four kernels, where the plain form launches some seventy operators.

    prepare   convolution, silu, unit length, gates                         16 rows of a head
    solve     the chunk's unit-triangular system, its blocks' inverses      a value head
    carry     corrections, outputs and the memory, in place                 16 columns of a value head
    leave     norm, gate, and the window (`delta_row.leave_kernel`)

The mathematics are those of `gated_delta.chunked`, with the state brought to the right-hand side, so that one system is
solved instead of two: (I + A) C = beta (v - exp(G) k S), by substitution inside blocks of 16 and from block to block;
powers of A would reach 1e17 where tokens repeat. All in float32, products in three parts (TF32x3).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from llm_engine.delta_row import launch_leave

BLOCK, STEP, COLUMNS = 16, 32, 16
"""Rows of a block, keys at a time, columns of the memory: with more of either the registers do not suffice."""


@triton.jit
def _convolved(mixed, window, conv, r, c, rows, mixed_stride, channels, TAPS: tl.constexpr):
    """Channels c of rows r, through the convolution and silu; zeros beyond `rows`."""
    inside = (r < rows)[:, None] & (c >= 0)[None, :]
    total = tl.zeros([r.shape[0], c.shape[0]], dtype=tl.float32)
    for tap in tl.static_range(TAPS):
        source = r + tap - (TAPS - 1)
        new = tl.load(
            mixed + source[:, None] * mixed_stride + c[None, :], mask=inside & (source >= 0)[:, None], other=0.0
        )
        old = tl.load(
            window + (r + tap)[:, None] * channels + c[None, :], mask=inside & (source < 0)[:, None], other=0.0
        )
        seen = tl.where((source < 0)[:, None], old, new).to(tl.float32)
        total += seen * tl.load(conv + tap * channels + c)[None, :]
    return tl.where(inside, total / (1.0 + tl.exp(-total)), 0.0)


@triton.jit
def prepare_kernel(
    x, mixed, ba, window, conv, decay, dt_bias, count, q, k, v, g, beta, rows, hidden, mixed_stride, channels,
    key_heads, heads, unit_eps, query_scale, PADDED: tl.constexpr, TAPS: tl.constexpr, KEY: tl.constexpr,
    VALUE: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One program per 16 rows and head: queries, keys, values, then 16 heads' gates at a time.

    q, k [Hk, PADDED, K], v [Hv, PADDED, N], g, beta [Hv, PADDED]; rows that are no tokens have neither gate.
    """
    r, part = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1)
    if part < 2 * key_heads:
        i = tl.arange(0, KEY)
        made = _convolved(mixed, window, conv, r, part * KEY + i, rows, mixed_stride, channels, TAPS)
        made = made * tl.rsqrt(tl.sum(made * made, axis=1) + unit_eps)[:, None]
        if part < key_heads:
            tl.store(q + (part * PADDED + r)[:, None] * KEY + i[None, :], made * query_scale)
        else:
            tl.store(k + ((part - key_heads) * PADDED + r)[:, None] * KEY + i[None, :], made)
    elif part < 2 * key_heads + heads:
        j = tl.arange(0, VALUE)
        head = part - 2 * key_heads
        own = 2 * key_heads * KEY + head * VALUE + j
        made = _convolved(mixed, window, conv, r, own, rows, mixed_stride, channels, TAPS)
        tl.store(v + (head * PADDED + r)[:, None] * VALUE + j[None, :], made)
    else:
        several = (part - 2 * key_heads - heads) * 16 + tl.arange(0, 16)
        write = tl.zeros([BLOCK, 16], dtype=tl.float32)
        fade = tl.zeros([BLOCK, 16], dtype=tl.float32)
        for start in range(0, hidden, WIDE):
            h = start + tl.arange(0, WIDE)
            there = (r < rows)[:, None] & (h < hidden)[None, :]
            row = tl.load(x + r[:, None] * hidden + h[None, :], mask=there, other=0.0).to(tl.float32)
            known = (h < hidden)[:, None] & (several < heads)[None, :]
            b = tl.load(ba + several[None, :] * hidden + h[:, None], mask=known, other=0.0).to(tl.float32)
            a = tl.load(ba + (heads + several)[None, :] * hidden + h[:, None], mask=known, other=0.0).to(tl.float32)
            exact: tl.constexpr = "ieee" if x.dtype.element_ty == tl.float32 else "tf32"  # bfloat16 fits TF32 whole
            write = tl.dot(row, b, write, input_precision=exact)
            fade = tl.dot(row, a, fade, input_precision=exact)
        kind = x.dtype.element_ty
        known = several < heads
        shifted = fade.to(kind).to(tl.float32) + tl.load(dt_bias + several, mask=known, other=0.0)[None, :]
        softplus = tl.where(shifted > 20.0, shifted, tl.log(1.0 + tl.exp(tl.minimum(shifted, 20.0))))
        real = (r < tl.load(count))[:, None]
        forget = tl.where(real, tl.load(decay + several, mask=known, other=0.0)[None, :] * softplus, 0.0)
        strength = tl.where(real, tl.sigmoid(write.to(kind).to(tl.float32)), 0.0)
        at = several[None, :] * PADDED + r[:, None]
        tl.store(g + at, forget, mask=known[None, :])
        tl.store(beta + at, strength, mask=known[None, :])


@triton.jit
def _inverses(system, PADDED: tl.constexpr, BLOCK: tl.constexpr):
    """Inverses of I + each diagonal block of a strictly lower triangular [PADDED, PADDED]:
    [PADDED / BLOCK, BLOCK, BLOCK]."""
    blocks: tl.constexpr = PADDED // BLOCK
    own = tl.arange(0, blocks)[:, None, None, None] == tl.arange(0, blocks)[None, None, :, None]
    diagonal = tl.sum(tl.where(own, tl.reshape(system, (blocks, BLOCK, blocks, BLOCK)), 0.0), axis=2)
    at = tl.arange(0, BLOCK)[None, :, None]
    found = tl.where(at == tl.arange(0, BLOCK)[None, None, :], 1.0, 0.0) + tl.zeros_like(diagonal)
    for row in range(1, BLOCK):
        factors = tl.sum(tl.where(at == row, diagonal, 0.0), axis=1)  # [blocks, BLOCK]
        less = tl.sum(factors[:, :, None] * found, axis=1)
        found = tl.where(at == row, found - less[:, None, :], found)
    return found


@triton.jit
def _products(left, right, first, PADDED: tl.constexpr, KEY: tl.constexpr, STEP: tl.constexpr):
    """Products of every row of `left` with every row of `right`, PADDED of both from `first` on."""
    i = first + tl.arange(0, PADDED)
    made = tl.zeros([PADDED, PADDED], dtype=tl.float32)
    for start in range(0, KEY, STEP):
        step = start + tl.arange(0, STEP)
        across = tl.load(right + i[None, :] * KEY + step[:, None])
        made = tl.dot(tl.load(left + i[:, None] * KEY + step[None, :]), across, made, input_precision="tf32x3")
    return made


@triton.jit
def solve_kernel(
    q, k, g, beta, total, system, inverse, scores, share, PADDED: tl.constexpr, KEY: tl.constexpr, BLOCK: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """One program per value head: running sums of g, its system with the inverses of the blocks, its queries' scores.

    total [Hv, PADDED], system and scores [Hv, PADDED, PADDED], inverse [Hv, PADDED, BLOCK]
    """
    head = tl.program_id(0)
    i = tl.arange(0, PADDED)
    mine = (head // share) * PADDED
    sums = tl.cumsum(tl.load(g + head * PADDED + i), axis=0)
    tl.store(total + head * PADDED + i, sums)
    place = (head * PADDED + i)[:, None] * PADDED + i[None, :]
    # Masked before the exponential: above the diagonal it would overflow.
    decay = tl.exp(tl.where(i[:, None] >= i[None, :], sums[:, None] - sums[None, :], float("-inf")))
    tl.store(scores + place, _products(q, k, mine, PADDED, KEY, STEP) * decay)
    strength = tl.load(beta + head * PADDED + i)[:, None]
    made = _products(k, k, mine, PADDED, KEY, STEP) * decay * strength
    made = tl.where(i[:, None] > i[None, :], made, 0.0)
    tl.store(system + place, made)
    n, r, c = tl.arange(0, PADDED // BLOCK), tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    row = head * PADDED + n[:, None, None] * BLOCK + r[None, :, None]
    tl.store(inverse + row * BLOCK + c[None, None, :], _inverses(made, PADDED, BLOCK))


@triton.jit
def carry_kernel(
    q, k, v, beta, total, system, inverse, scores, solved, memory, raw, rows, share, heads, PADDED: tl.constexpr,
    KEY: tl.constexpr, VALUE: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One program per value head and COLUMNS of its memory, which it alone reads and writes; `raw` [T, Hv, N].

    solved  [Hv, PADDED, N]: the corrections, block after block; a block reads those of the blocks before
    """
    head = tl.program_id(0)
    p, j = tl.arange(0, PADDED), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first, mine = head * PADDED, (head // share) * PADDED
    state = memory + head.to(tl.int64) * (KEY * VALUE)
    place = (first + p)[:, None] * VALUE + j[None, :]
    for start in range(0, PADDED, BLOCK):
        i = start + tl.arange(0, BLOCK)
        predicted = _read(k, state, mine + i, j, KEY, VALUE, STEP)
        value = tl.load(v + (first + i)[:, None] * VALUE + j[None, :])
        since = tl.exp(tl.load(total + first + i))[:, None]
        wanted = (value - since * predicted) * tl.load(beta + first + i)[:, None]
        before = tl.load(solved + place, mask=(p < start)[:, None], other=0.0)
        known = tl.load(system + (first + i)[:, None] * PADDED + p[None, :])
        wanted -= tl.dot(known, before, input_precision="tf32x3")
        own = tl.load(inverse + (first + i)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
        found = tl.dot(own, wanted, input_precision="tf32x3")
        tl.store(solved + (first + i)[:, None] * VALUE + j[None, :], found)
        tl.debug_barrier()  # all threads of the program read what each of them wrote
    correction = tl.load(solved + place)
    sums = tl.load(total + first + p)
    read = tl.exp(sums)[:, None] * _read(q, state, mine + p, j, KEY, VALUE, STEP)
    square = (first + p)[:, None] * PADDED + p[None, :]
    out = tl.dot(tl.load(scores + square), correction, read, input_precision="tf32x3")
    tl.store(raw + (p[:, None] * heads + head) * VALUE + j[None, :], out, mask=(p < rows)[:, None])
    last = tl.load(total + first + PADDED - 1)
    left = tl.exp(last - sums)
    for start in range(0, KEY, STEP):
        step = start + tl.arange(0, STEP)
        keys = tl.load(k + (mine + p)[None, :] * KEY + step[:, None]) * left[None, :]
        at = state + step[:, None] * VALUE + j[None, :]
        tl.store(at, tl.dot(keys, correction, tl.load(at) * tl.exp(last), input_precision="tf32x3"))


@triton.jit
def _read(asking, state, rows, j, KEY: tl.constexpr, VALUE: tl.constexpr, STEP: tl.constexpr):
    """Columns j of the memory as rows of `asking` read them."""
    made = tl.zeros([rows.shape[0], j.shape[0]], dtype=tl.float32)
    for start in range(0, KEY, STEP):
        step = start + tl.arange(0, STEP)
        held = tl.load(state + step[:, None] * VALUE + j[None, :])
        asked = tl.load(asking + rows[:, None] * KEY + step[None, :])
        made = tl.dot(asked, held, made, input_precision="tf32x3")
    return made


def launch_delta_rows(
    x: Tensor, mixed: Tensor, gate: Tensor, ba: Tensor, window: Tensor, conv: Tensor, decay: Tensor, dt_bias: Tensor,
    norm: Tensor, memory: Tensor, count: Tensor, eps: float,
) -> Tensor:  # fmt: skip
    """T rows up to 64; `memory` and then `window` are updated in place.

    x        [T, h], what the projection in read; mixed [T, C], gate [T, Hv·N], slices of what it made; ba [2 Hv, h]
    count    [1] int64: rows beyond are padding and leave the state as it is
    the rest, and what is returned, as `launch_delta_row`; [T, Hv·N]
    """
    rows, hidden = x.shape
    heads, key, value = memory.shape
    channels = mixed.shape[-1]
    key_heads = (channels - heads * value) // 2 // key
    padded = max(BLOCK, triton.next_power_of_2(rows))

    def wide(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=x.device)

    q, k, v = wide(key_heads, padded, key), wide(key_heads, padded, key), wide(heads, padded, value)
    g, beta, total = wide(heads, padded), wide(heads, padded), wide(heads, padded)
    system, scores = wide(heads, padded, padded), wide(heads, padded, padded)
    inverse, solved, raw = wide(heads, padded, BLOCK), wide(heads, padded, value), wide(rows, heads, value)
    parts = 2 * key_heads + heads + triton.cdiv(heads, 16)
    prepare_kernel[(padded // BLOCK, parts)](
        x, mixed, ba, window, conv, decay, dt_bias, count, q, k, v, g, beta, rows, hidden, mixed.stride(0), channels,
        key_heads, heads, 1e-6, key**-0.5, PADDED=padded, TAPS=conv.shape[0], KEY=key, VALUE=value, BLOCK=BLOCK,
        WIDE=min(128, triton.next_power_of_2(hidden)), num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    step, share = min(STEP, key), heads // key_heads
    solve_kernel[(heads,)](
        q, k, g, beta, total, system, inverse, scores, share, PADDED=padded, KEY=key, BLOCK=BLOCK, STEP=16,
        num_warps=8 if padded > 32 else 4, num_stages=2, enable_fp_fusion=True,
    )  # fmt: skip
    carry_kernel[(heads, value // COLUMNS)](
        q, k, v, beta, total, system, inverse, scores, solved, memory, raw, rows, share, heads, PADDED=padded, KEY=key,
        VALUE=value, BLOCK=BLOCK, STEP=step, COLUMNS=COLUMNS, num_warps=4, num_stages=2, enable_fp_fusion=True,
    )  # fmt: skip
    return launch_leave(raw, gate, norm, mixed, window, count, eps)


delta_rows = torch.library.custom_op(
    "llm_engine::delta_rows", launch_delta_rows, mutates_args=("window", "memory"), device_types="cuda"
)


@delta_rows.register_fake
def _(
    x: Tensor, mixed: Tensor, gate: Tensor, ba: Tensor, window: Tensor, conv: Tensor, decay: Tensor, dt_bias: Tensor,
    norm: Tensor, memory: Tensor, count: Tensor, eps: float,
) -> Tensor:  # fmt: skip
    heads, key, value = memory.shape
    assert mixed.stride(-1) == gate.stride(-1) == 1
    assert all(t.is_contiguous() for t in (x, ba, window, conv, memory)) and x.shape[0] <= 64
    assert key.bit_count() == value.bit_count() == 1 and value >= COLUMNS
    return mixed.new_empty(x.shape[0], heads * value)
