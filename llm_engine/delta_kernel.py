"""One decoded token through the delta-net mixer in a single kernel: convolution, gates, memory in place, norm, gate.

Between the input and the output projection the plain form launches some thirty kernels per layer; this is one, which
reads the memory once and writes it once. It equals `layers.delta_step` up to the order of sums.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def delta_step_kernel(
    mixed, gate, ba, window, conv, decay, dt_bias, norm, memory, out, share, heads, channels, key_dim, eps, unit_eps,
    query_scale, TAPS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
):  # fmt: skip
    """One program per value head. `window` is only read: heads that share a key head read the same channels."""
    head = tl.program_id(0)
    i, j = tl.arange(0, KEY), tl.arange(0, VALUE)
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
    beta = tl.sigmoid(tl.load(ba + head).to(tl.float32))
    a = tl.load(ba + heads + head).to(tl.float32) + tl.load(dt_bias + head)
    softplus = tl.where(a > 20.0, a, tl.log(1.0 + tl.exp(tl.minimum(a, 20.0))))
    forget = tl.exp(tl.load(decay + head) * softplus)

    place = memory + head.to(tl.int64) * (KEY * VALUE) + (i[:, None] * VALUE + j[None, :])
    held = tl.load(place) * forget
    correction = (v - tl.sum(held * k[:, None], axis=0)) * beta
    held += k[:, None] * correction[None, :]
    tl.store(place, held)

    o = tl.sum(held * q[:, None], axis=0)
    o = o * tl.rsqrt(tl.sum(o * o, axis=0) / VALUE + eps) * tl.load(norm + j)
    z = tl.load(gate + head * VALUE + j).to(tl.float32)
    tl.store(out + head * VALUE + j, (o * z / (1.0 + tl.exp(-z))).to(out.dtype.element_ty))


def launch_delta_step(
    mixed: Tensor,
    gate: Tensor,
    ba: Tensor,
    window: Tensor,
    conv: Tensor,
    decay: Tensor,
    dt_bias: Tensor,
    norm: Tensor,
    memory: Tensor,
    eps: float,
) -> Tensor:
    """One token; `memory` and then `window` are updated in place.

    mixed    [1, C] and gate [1, Hv·N], slices of the projection in; ba [1, 2 Hv]
    window   [taps - 1, C], conv [taps, C] float32 (newest tap last)
    decay, dt_bias  [Hv] float32;  norm [N] float32
    memory   [Hv, K, N] float32; K and N powers of two
    returns  [1, Hv·N] in mixed's type, ready for the projection out
    """
    heads, key, value = memory.shape
    channels = mixed.shape[-1]
    key_dim = (channels - heads * value) // 2
    share = heads * key // key_dim
    out = mixed.new_empty(1, heads * value)
    delta_step_kernel[(heads,)](
        mixed, gate, ba, window, conv, decay, dt_bias, norm, memory, out, share, heads, channels, key_dim, eps, 1e-6,
        key**-0.5, TAPS=conv.shape[0], KEY=key, VALUE=value, num_warps=8 if key * value >= 8192 else 4,
        enable_fp_fusion=True,
    )  # fmt: skip
    window.copy_(torch.cat((window[1:], mixed)))
    return out


delta_step_op = torch.library.custom_op(
    "llm_engine::delta_step", launch_delta_step, mutates_args=("window", "memory"), device_types="cuda"
)


@delta_step_op.register_fake
def _(
    mixed: Tensor, gate: Tensor, ba: Tensor, window: Tensor, conv: Tensor, decay: Tensor, dt_bias: Tensor, norm: Tensor,
    memory: Tensor, eps: float,
) -> Tensor:  # fmt: skip
    heads, key, value = memory.shape
    assert mixed.stride(-1) == gate.stride(-1) == 1 and all(t.is_contiguous() for t in (ba, window, conv, memory))
    assert key.bit_count() == value.bit_count() == 1
    return mixed.new_empty(1, heads * value)
