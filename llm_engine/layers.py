"""The mixers: gated delta-net and gated attention with partial rotary of the hybrids, attention of plain decoders.

All are pure functions of their input, weights and earlier state, with any leading batch axes: a captured step, a
prefill chunk and training call the same code. Axes as in `capsules.nn` and `gated_delta`; h is the hidden size, C the
convolution's channels (all query, key and value dimensions of the mixer).
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.exec import native
from capsules.exec.switches import Switch
from capsules.nn import Cache, Heads, Span, Weight, attend, attend_cached, kernels, linear, rms_norm, turns
from llm_engine.config import LLMConfig
from llm_engine.gated_delta import chunked, step, unit

_HOST = Path(__file__).with_name("delta_rule.cpp")


@dataclass(frozen=True)
class LinearWeights:
    """One delta-net mixer. Small tensors are float32, in the form that the arithmetic needs."""

    qkvz: Weight  # [C + Hv·N, h]
    ba: Tensor  # [2 Hv, h]
    conv: Tensor  # [taps, C] float32, newest tap last
    decay: Tensor  # [Hv] float32, -exp(A_log)
    dt_bias: Tensor  # [Hv] float32
    norm: Tensor  # [N] float32, the plain weight
    out: Weight  # [h, Hv·N]


@dataclass(frozen=True)
class FullWeights:
    """One attention mixer."""

    qkv: Weight  # [(2 H + 2 G) D, h]; per query head D rows of query, then D of gate; then all keys, all values
    q_norm: Tensor  # [D] float32, 1 + w
    k_norm: Tensor  # [D] float32, 1 + w
    out: Weight  # [h, H·D]


@dataclass(frozen=True)
class PlainWeights:
    """One attention mixer of a plain decoder."""

    qkv: Weight  # [(H + 2 G) D, h]: queries, keys, values
    out: Weight  # [h, H·D]
    q_norm: Tensor | None = None  # [D] float32; None where heads are not normalised
    k_norm: Tensor | None = None  # [D] float32


def angles_of(axes: Tensor, config: LLMConfig, stretch: Tensor | None) -> tuple[Tensor, Tensor]:
    """Cosines and sines at positions of three axes, interleaved over the frequencies.

    axes     [3, ..., T] integers: time, height, width
    stretch  divisors of the frequencies, as `turns` takes them
    returns  cos, sin [..., T, rotary_dim] float32. Frequency j turns with the height if j mod 3 is 1, with the width if
             it is 2, each as often as `mrope_section` says, else with the time. Equal axes give plain rotary positions.
    """
    _, heights, widths = config.mrope_section
    even = (config.rotary_dim // 2).bit_count() == 1
    if stretch is None and even and kernels.switched_on(axes, Switch.CHUNK) and axes.dim() == 2:
        from capsules.nn.kernels.angles import angles

        cos, sin = angles(axes, None, config.rotary_dim, config.rope_theta, heights, widths)
        return cos, sin
    j = torch.arange(config.rotary_dim // 2, device=axes.device)
    time, height, width = axes[..., None].unbind(0)
    turned = torch.where((j % 3 == 1) & (j < 3 * heights), height, time)
    turned = torch.where((j % 3 == 2) & (j < 3 * widths), width, turned)
    return turns(turned, config.rotary_dim, config.rope_theta, stretch)


def delta_mixer(
    x: Tensor, w: LinearWeights, config: LLMConfig, window: Tensor, state: Tensor, count: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Mix along time through the delta rule, T rows at once.

    x        [..., T, h]
    window   [..., taps - 1, C], the projections just before x, in x's type
    state    [..., Hv, K, N] float32
    count    [1] int64: only the first `count` rows are tokens, the rest is padding; None if all are
    returns  y [..., T, h], the new window, the new state. Rows of y beyond count are meaningless.
    """
    rows, taps = x.shape[-2], config.linear_conv_kernel_dim
    mixed, gate = linear(x, w.qkvz).split((config.conv_dim, config.value_dim), -1)
    history = torch.cat((window, mixed), -2)  # [..., taps - 1 + T, C]
    wide = history.float()
    convolved = sum(
        (wide.narrow(-2, tap, rows) * w.conv[tap] for tap in range(1, taps)), wide.narrow(-2, 0, rows) * w.conv[0]
    )
    q, k, v = _heads(F.silu(convolved), config)
    g, beta = _gates(linear(x, w.ba), w)
    if count is None:
        window = history.narrow(-2, rows, taps - 1)
    else:
        real = (torch.arange(rows, device=x.device) < count)[:, None]
        g, beta = g * real, beta * real
        window = history.index_select(-2, torch.arange(taps - 1, device=x.device) + count)
    with torch.autocast(x.device.type, enabled=False):
        out, state = chunked(q, k, v, g, beta, state)
    return _leave(out, gate, w, config, x.dtype), window, state


def delta_chunk(x: Tensor, w: LinearWeights, config: LLMConfig, window: Tensor, state: Tensor, count: Tensor) -> Tensor:
    """`delta_mixer` of one sequence [T, h], with window [taps - 1, C] and state [Hv, K, N] updated in place."""
    host = native.operators("llm_host", _HOST)
    if host is not None:
        mixed, gate = linear(x, w.qkvz).split((config.conv_dim, config.value_dim), -1)
        return linear(host.delta_rule(mixed, gate, *_rule(x, w, window, state), count, config.rms_norm_eps), w.out)
    if kernels.switched_on(x, Switch.CHUNK) and _even(state):
        from llm_engine.delta_rows import delta_rows

        mixed, gate = linear(x, w.qkvz).split((config.conv_dim, config.value_dim), -1)
        held = (w.ba, window, w.conv, w.decay, w.dt_bias, w.norm, state)
        return linear(delta_rows(x, mixed, gate, *held, count, config.rms_norm_eps), w.out)
    y, new_window, new_state = delta_mixer(x, w, config, window, state, count)
    window.copy_(new_window)
    state.copy_(new_state)
    return y


def delta_step(x: Tensor, w: LinearWeights, config: LLMConfig, window: Tensor, state: Tensor) -> Tensor:
    """The same for one row [1, h]."""
    mixed, gate = linear(x, w.qkvz).split((config.conv_dim, config.value_dim), -1)
    if kernels.switched_on(x, Switch.JOINED) and _even(state):
        from llm_engine.delta_row import delta_row

        held = (w.ba, window, w.conv, w.decay, w.dt_bias, w.norm, state)
        return linear(delta_row(x, mixed, gate, *held, config.rms_norm_eps), w.out)
    if kernels.fits(x) and _even(state):
        from llm_engine.delta_kernel import delta_step_op

        return linear(delta_step_op(mixed, gate, *_rule(x, w, window, state), config.rms_norm_eps), w.out)
    host = native.operators("llm_host", _HOST)
    if host is not None:
        return linear(host.delta_rule(mixed, gate, *_rule(x, w, window, state), None, config.rms_norm_eps), w.out)
    history = torch.cat((window, mixed), 0)
    convolved = (history.float() * w.conv).sum(0, keepdim=True)
    window.copy_(history[1:])
    q, k, v = _heads(F.silu(convolved), config)
    g, beta = _gates(linear(x, w.ba), w)
    out = step(q[0], k[0], v[0], g[0], beta[0], state)
    return _leave(out[None], gate, w, config, x.dtype)


def attention(
    x: Tensor, w: FullWeights | PlainWeights, config: LLMConfig, cos: Tensor, sin: Tensor, span: Span, cache: Cache
) -> Tensor:
    """Causal attention over a cache, gated per element in hybrids: x [T, h] to [T, h]; the rows are in `span`."""
    out = attend_cached(linear(x, w.qkv), _layout(w, config), cos, sin, span, cache)
    return linear(out.flatten(-2), w.out)


def attention_whole(
    x: Tensor, w: FullWeights | PlainWeights, config: LLMConfig, positions: Tensor, cos: Tensor, sin: Tensor
) -> Tensor:
    """The same of whole sequences x [..., T, h] that see themselves alone; positions [..., T] int64."""
    heads = _layout(w, config)
    q, k, v, gate = heads.parts(linear(x, w.qkv))
    q, k = heads.turned(q, k, cos, sin)
    out = attend(q, k, v, positions)
    return linear((out if gate is None else out * gate.sigmoid()).flatten(-2), w.out)


def _layout(w: FullWeights | PlainWeights, config: LLMConfig) -> Heads:
    heads, groups, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    return Heads(heads, groups, size, w.q_norm, w.k_norm, config.rms_norm_eps, gated=isinstance(w, FullWeights))


def _even(state: Tensor) -> bool:
    """Whether the kernels of the rule take a memory of these sizes."""
    return state.shape[-1].bit_count() == state.shape[-2].bit_count() == 1


def _rule(x: Tensor, w: LinearWeights, window: Tensor, state: Tensor) -> tuple[Tensor, ...]:
    """The arguments of the fused operators after the input projection."""
    return linear(x, w.ba), window, w.conv, w.decay, w.dt_bias, w.norm, state


def _heads(convolved: Tensor, config: LLMConfig) -> tuple[Tensor, Tensor, Tensor]:
    """[..., T, C] float32 to unit queries and keys [..., T, Hk, K] and values [..., T, Hv, N]."""
    qk, v = convolved.split((2 * config.key_dim, config.value_dim), -1)
    q, k = unit(qk.unflatten(-1, (2, config.linear_num_key_heads, config.linear_key_head_dim))).unbind(-3)
    v = v.unflatten(-1, (config.linear_num_value_heads, config.linear_value_head_dim))
    return q * config.linear_key_head_dim**-0.5, k, v


def _gates(ba: Tensor, w: LinearWeights) -> tuple[Tensor, Tensor]:
    """[..., T, 2 Hv] to g and beta [..., T, Hv], float32."""
    b, a = ba.float().chunk(2, -1)
    return w.decay * F.softplus(a + w.dt_bias), b.sigmoid()


def _leave(out: Tensor, gate: Tensor, w: LinearWeights, config: LLMConfig, dtype: torch.dtype) -> Tensor:
    """Norm first, then the gate, then the output projection."""
    normed = rms_norm(out, w.norm, config.rms_norm_eps)
    gated = normed.flatten(-2) * F.silu(gate.float())
    return linear(gated.to(dtype), w.out)
