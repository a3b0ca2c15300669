"""One decoded token through the delta-net mixer, spread over the whole card: 32 columns of a head to a program.

`delta_kernel` makes a head of 128 columns in one program, so that 32 programs stand on a card of 132 units, and copies
the convolution's window afterwards. Here the rule also makes its own gates, and the kernel that leaves (norm, gate)
moves the window on: nobody reads it any more.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from capsules.nn.kernels.overlap import await_last, begin_next, overlapped

COLUMNS = 32


@triton.jit
def rule_kernel(
    x, mixed, ba, window, conv, decay, dt_bias, memory, out, hidden, share, heads, channels, key_dim, unit_eps,
    query_scale, TAPS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """One program per value head and COLUMNS of its memory, which it alone reads and writes. `out` is float32."""
    begin_next(PDL)
    await_last(PDL)
    head, part = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, KEY), part * COLUMNS + tl.arange(0, COLUMNS)
    kind = mixed.dtype.element_ty
    write = tl.zeros([BLOCK], dtype=tl.float32)
    fade = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        h = start + tl.arange(0, BLOCK)
        there = h < hidden
        row = tl.load(x + h, mask=there, other=0.0).to(tl.float32)
        write += row * tl.load(ba + head.to(tl.int64) * hidden + h, mask=there, other=0.0).to(tl.float32)
        fade += row * tl.load(ba + (heads + head).to(tl.int64) * hidden + h, mask=there, other=0.0).to(tl.float32)
    beta = tl.sigmoid(tl.sum(write, axis=0).to(kind).to(tl.float32))
    a = tl.sum(fade, axis=0).to(kind).to(tl.float32) + tl.load(dt_bias + head)
    softplus = tl.where(a > 20.0, a, tl.log(1.0 + tl.exp(tl.minimum(a, 20.0))))
    forget = tl.exp(tl.load(decay + head) * softplus)

    q_at = (head // share) * KEY + i
    k_at = key_dim + q_at
    v_at = 2 * key_dim + head * VALUE + j
    newest: tl.constexpr = TAPS - 1
    q = tl.load(mixed + q_at).to(tl.float32) * tl.load(conv + newest * channels + q_at)
    k = tl.load(mixed + k_at).to(tl.float32) * tl.load(conv + newest * channels + k_at)
    v = tl.load(mixed + v_at).to(tl.float32) * tl.load(conv + newest * channels + v_at)
    for tap in range(TAPS - 1):
        q += tl.load(window + tap * channels + q_at).to(tl.float32) * tl.load(conv + tap * channels + q_at)
        k += tl.load(window + tap * channels + k_at).to(tl.float32) * tl.load(conv + tap * channels + k_at)
        v += tl.load(window + tap * channels + v_at).to(tl.float32) * tl.load(conv + tap * channels + v_at)
    q, k, v = q / (1.0 + tl.exp(-q)), k / (1.0 + tl.exp(-k)), v / (1.0 + tl.exp(-v))
    q = q * tl.rsqrt(tl.sum(q * q, axis=0) + unit_eps) * query_scale
    k = k * tl.rsqrt(tl.sum(k * k, axis=0) + unit_eps)

    place = memory + head.to(tl.int64) * (KEY * VALUE) + (i[:, None] * VALUE + j[None, :])
    held = tl.load(place) * forget
    correction = (v - tl.sum(held * k[:, None], axis=0)) * beta
    held += k[:, None] * correction[None, :]
    tl.store(place, held)
    tl.store(out + head * VALUE + j, tl.sum(held * q[:, None], axis=0))


@triton.jit
def leave_kernel(
    raw, gate, norm, mixed, window, count, out, heads, gate_stride, mixed_stride, channels, eps, ROWS: tl.constexpr,
    TAPS: tl.constexpr, VALUE: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """One program per row and head: norm first, then the gate. Those beyond move BLOCK channels of the window on.

    raw     [ROWS, heads, VALUE] float32; mixed [ROWS, channels]
    count   [1]: the window becomes the taps before row `count`. Read only where there are rows to choose from
    """
    begin_next(PDL)
    await_last(PDL)
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if head < heads:
        j = tl.arange(0, VALUE)
        o = tl.load(raw + (row * heads + head) * VALUE + j)
        o = o * tl.rsqrt(tl.sum(o * o, axis=0) / VALUE + eps) * tl.load(norm + j)
        z = tl.load(gate + row * gate_stride + head * VALUE + j).to(tl.float32)
        tl.store(out + (row * heads + head) * VALUE + j, (o * z / (1.0 + tl.exp(-z))).to(out.dtype.element_ty))
    elif row == 0:
        c = (head - heads) * BLOCK + tl.arange(0, BLOCK)
        inside = c < channels
        used = 1 if ROWS == 1 else tl.load(count)
        for tap in tl.static_range(TAPS - 1):  # ascending: a tap is read before a later one is written over it
            source = tap + used - (TAPS - 1)  # of the rows; below 0 it is still in the window
            old = tl.load(window + (tap + used) * channels + c, mask=inside & (source < 0), other=0.0)
            new = tl.load(mixed + source * mixed_stride + c, mask=inside & (source >= 0), other=0.0)
            tl.store(window + tap * channels + c, tl.where(source < 0, old, new), mask=inside)


def launch_leave(
    raw: Tensor, gate: Tensor, norm: Tensor, mixed: Tensor, window: Tensor, count: Tensor, eps: float
) -> Tensor:
    """raw [T, Hv, N] float32, gate [T, Hv·N] and mixed [T, C] with rows in a row each -> [T, Hv·N] in mixed's type.

    window  [taps - 1, C], moved on in place to the rows before `count` [1] int64
    """
    rows, heads, value = raw.shape
    channels, block = mixed.shape[-1], 1024
    out = mixed.new_empty(rows, heads * value)
    leave_kernel[(rows, heads + triton.cdiv(channels, block))](
        raw, gate, norm, mixed, window, count, out, heads, gate.stride(0), mixed.stride(0), channels, eps, ROWS=rows,
        TAPS=window.shape[0] + 1, VALUE=value, BLOCK=block, num_warps=4, enable_fp_fusion=True,
        **overlapped(mixed),
    )  # fmt: skip
    return out


def launch_delta_row(
    x: Tensor, mixed: Tensor, gate: Tensor, ba: Tensor, window: Tensor, conv: Tensor, decay: Tensor, dt_bias: Tensor,
    norm: Tensor, memory: Tensor, eps: float,
) -> Tensor:  # fmt: skip
    """One token; `memory` and then `window` are updated in place. As `launch_delta_step`, but:

    x    [1, h], what the projection in read; ba [2 Hv, h], the matrix of the gates
    """
    heads, key, value = memory.shape
    channels, hidden = mixed.shape[-1], x.shape[-1]
    key_dim = (channels - heads * value) // 2
    columns = min(COLUMNS, value)
    raw = torch.empty(1, heads, value, dtype=torch.float32, device=x.device)
    rule_kernel[(heads, value // columns)](
        x, mixed, ba, window, conv, decay, dt_bias, memory, raw, hidden, heads * key // key_dim, heads, channels,
        key_dim, 1e-6, key**-0.5, TAPS=conv.shape[0], KEY=key, VALUE=value, COLUMNS=columns,
        BLOCK=min(1024, triton.next_power_of_2(hidden)), num_warps=4, enable_fp_fusion=True,
        **overlapped(x),
    )  # fmt: skip
    return launch_leave(raw, gate, norm, mixed, window, window, eps)


delta_row = torch.library.custom_op(
    "llm_engine::delta_row", launch_delta_row, mutates_args=("window", "memory"), device_types="cuda"
)


@delta_row.register_fake
def _(
    x: Tensor, mixed: Tensor, gate: Tensor, ba: Tensor, window: Tensor, conv: Tensor, decay: Tensor, dt_bias: Tensor,
    norm: Tensor, memory: Tensor, eps: float,
) -> Tensor:  # fmt: skip
    heads, key, value = memory.shape
    assert mixed.stride(-1) == gate.stride(-1) == 1
    assert all(t.is_contiguous() for t in (x, ba, window, conv, memory)) and x.shape[0] == 1
    assert key.bit_count() == value.bit_count() == 1
    return mixed.new_empty(1, heads * value)
