"""Sampling inside a captured step: every parameter is a buffer, and chance is a function of seed and position.

One call serves an LLM (logits [V]) and a TTS row (logits [Q, V], one independent draw per codebook). Order: penalties,
temperature, top-k, top-p, min-p, draw. The draw is `argmax(logit - log(-log u))` with one u per row and token, a hash
of (seed, position, row, token): no generator, hence no hidden state, and the same draw on every replay.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from capsules.exec.switches import Switch
from capsules.nn import kernels

CANDIDATES = 1024  # the draw is among this many most likely tokens (all of them in a smaller vocabulary)
_GOLDEN, _MIX1, _MIX2 = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15  # splitmix64, as signed int64


@dataclass(frozen=True)
class SamplerBuffers:
    """Parameters of a draw, on the device. Each is a scalar [] (or [1]), or [Q, 1] for one value per codebook.

    temperature  float32; 0 picks the most likely token
    top_k        int64; 0 is off. At most CANDIDATES
    top_p        float32 in (0, 1]; 1 is off. The token that crosses p is kept
    min_p        float32 in [0, 1); 0 is off. Relative to the most likely token
    """

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor


def sample(
    logits: Tensor,
    params: SamplerBuffers,
    seed: Tensor,
    position: Tensor,
    *,
    candidates: int = CANDIDATES,
    nucleus: bool = True,
) -> Tensor:
    """Draw one token per row.

    logits      [..., V] float32; -inf forbids a token
    seed        [] or [1] int64
    position    [] or [1] int64: the index of the token to draw. Different positions draw independently
    candidates  static bound on how many of the most likely tokens take part
    nucleus     static: False leaves out the work of top_p and min_p
    returns     [...] int64
    Equal logits are cut or kept together by top-k, top-p and min-p, except at the bound `candidates`.
    """
    vocabulary = logits.shape[-1]
    values, ids = torch.topk(logits.float(), min(candidates, vocabulary), dim=-1)  # [..., C], best first
    if kernels.switched_on(logits, Switch.DRAW):
        from capsules.nn.kernels.draw import draw

        chosen = (values.view(-1, values.shape[-1]), ids.view(-1, ids.shape[-1]))
        parameters = (params.temperature, params.top_k, params.top_p, params.min_p)
        return draw(*chosen, *parameters, seed, position, nucleus).view(logits.shape[:-1])
    cold = params.temperature <= 0
    scaled = values / torch.where(cold, 1.0, params.temperature)
    last = torch.where(params.top_k > 0, params.top_k, scaled.shape[-1]).clamp(1, scaled.shape[-1]) - 1
    floor = scaled.gather(-1, last.expand(*scaled.shape[:-1], 1))
    if nucleus:
        probabilities = scaled.masked_fill(scaled < floor, float("-inf")).softmax(-1)
        before = _running_sum(probabilities) - probabilities
        kept = (before < params.top_p) | (params.top_p >= 1)
        kept.narrow(-1, 0, 1).fill_(1)
        floor = torch.maximum(floor, scaled.masked_fill(~kept, float("inf")).amin(-1, keepdim=True))
        floor = torch.maximum(floor, scaled[..., :1] + params.min_p.log())
    noise = -torch.log(-torch.log(_uniform_at(seed, position, ids)))
    noisy = scaled.masked_fill(scaled < floor, float("-inf")) + noise
    drawn = ids.gather(-1, noisy.argmax(-1, keepdim=True))
    return torch.where(cold, logits.argmax(-1, keepdim=True), drawn).squeeze(-1)


def penalise(logits: Tensor, generated: Tensor, seen: Tensor, presence: Tensor, repetition: Tensor) -> Tensor:
    """Make repetition less likely.

    logits      [..., V] float32
    generated   [..., V] int32, how often each token was produced in this reply
    seen        [..., V] bool, whether it occurs anywhere in prompt or reply
    presence    [] float32, subtracted once from a token that was produced; 0 is off (OpenAI's presence_penalty)
    repetition  [] float32, divides positive and multiplies negative logits of seen tokens; 1 is off (Keskar 2019)
    """
    scaled = torch.where(logits > 0, logits / repetition, logits * repetition)
    return torch.where(seen, scaled, logits) - presence * (generated > 0)


def allowed_logits(
    logits: Tensor, barred: Tensor, generated: Tensor, seen: Tensor, presence: Tensor, repetition: Tensor
) -> Tensor:
    """`penalise` of logits [V] where what is `barred` [V] is forbidden."""
    if kernels.switched_on(logits, Switch.DRAW):
        from capsules.nn.kernels.draw import penalise as joined

        return joined(logits, barred, generated, seen, presence, repetition)
    return penalise(logits.masked_fill(barred, float("-inf")), generated, seen, presence, repetition)


def count_token(generated: Tensor, seen: Tensor, token: Tensor) -> None:
    """Enter `token` [1] into both tables [V], in place."""
    generated.index_add_(0, token, torch.ones_like(token, dtype=generated.dtype))
    seen.index_fill_(0, token, 1)


def _uniform_at(seed: Tensor, position: Tensor, column: Tensor) -> Tensor:
    """One number per entry of column [..., C]; all axes but the last count as the row."""
    rows = column.shape[:-1].numel()
    row = torch.arange(rows, device=column.device).reshape(*column.shape[:-1], 1)
    key = _mix(_mix(seed) + position * _GOLDEN)
    bits = _mix(_mix(key + row * _MIX1) + column * _GOLDEN)
    return (_shift(bits, 41).float() + 0.5) * 2.0**-23  # never 0 and never 1, both exactly representable


def _mix(z: Tensor) -> Tensor:
    """The finaliser of splitmix64 (Steele, Lea & Flood 2014) in wrapping int64 arithmetic."""
    z = z + _GOLDEN
    z = (z ^ _shift(z, 30)) * _MIX1
    z = (z ^ _shift(z, 27)) * _MIX2
    return z ^ _shift(z, 31)


def _shift(z: Tensor, bits: int) -> Tensor:
    """Logical shift to the right; torch's own carries the sign."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _running_sum(x: Tensor) -> Tensor:
    """Inclusive sum along the last axis, with equal bits on every run (torch's own scan on a GPU does not promise
    it)."""
    if x.device.type == "cpu":
        return x.cumsum(-1)
    step = 1
    while step < x.shape[-1]:
        x = x + torch.nn.functional.pad(x[..., :-step], (step, 0))
        step *= 2
    return x
