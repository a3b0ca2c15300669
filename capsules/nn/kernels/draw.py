"""A draw: penalties over the whole vocabulary in one kernel, and all that follows the top-k in another.

The hash is the one of `capsules.nn.sampling` to the bit. Running sums have another order than there, so a candidate at
the very edge of top-p may fall to the other side.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _mix(z):
    """The finaliser of splitmix64 in wrapping arithmetic."""
    z = z + 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit
def draw_kernel(
    values, ids, temperature, top_k, top_p, min_p, seed, position, out, count, spread_temperature, spread_k, spread_p,
    spread_min, CANDIDATES: tl.constexpr, NUCLEUS: tl.constexpr,
):  # fmt: skip
    """One program per row; candidates come best first. A spread is 1 where a parameter has a value per row, else 0."""
    row = tl.program_id(0)
    c = tl.arange(0, CANDIDATES)
    inside = c < count
    at = row.to(tl.int64) * count + c
    value = tl.load(values + at, mask=inside, other=float("-inf"))
    token = tl.load(ids + at, mask=inside, other=0)
    warmth = tl.load(temperature + row * spread_temperature)
    cold = warmth <= 0
    scaled = value / tl.where(cold, 1.0, warmth)
    asked = tl.load(top_k + row * spread_k)
    last = tl.minimum(tl.maximum(tl.where(asked > 0, asked, count), 1), count) - 1
    floor = tl.sum(tl.where(c == last, scaled, 0.0), axis=0)
    best = tl.max(scaled, axis=0)
    if NUCLEUS:
        share = tl.load(top_p + row * spread_p)
        likely = tl.where(scaled < floor, 0.0, tl.exp(scaled - best))
        likely = likely / tl.sum(likely, axis=0)
        before = tl.cumsum(likely, axis=0) - likely
        outside = tl.where(before < share, scaled, float("inf"))
        edge = tl.minimum(tl.min(outside, axis=0), best)  # the best is kept whatever its share
        floor = tl.maximum(floor, tl.where(share >= 1, float("-inf"), edge))
        least = tl.load(min_p + row * spread_min)
        above = best + tl.log(tl.where(least > 0, least, 1.0))
        floor = tl.maximum(floor, tl.where(least > 0, above, float("-inf")))
    start = tl.load(seed).to(tl.uint64, bitcast=True) + tl.zeros([CANDIDATES], dtype=tl.uint64)
    place = tl.load(position).to(tl.uint64, bitcast=True) + tl.zeros([CANDIDATES], dtype=tl.uint64)
    which = row.to(tl.uint64) + tl.zeros([CANDIDATES], dtype=tl.uint64)
    key = _mix(_mix(start) + place * 0x9E3779B97F4A7C15)
    bits = _mix(_mix(key + which * 0xBF58476D1CE4E5B9) + token.to(tl.uint64, bitcast=True) * 0x9E3779B97F4A7C15)
    uniform = ((bits >> 41).to(tl.float32) + 0.5) * 1.1920928955078125e-07
    noise = -tl.log(-tl.log(uniform))
    noisy = tl.where(inside, tl.where(scaled < floor, float("-inf"), scaled + noise), float("-inf"))
    drawn = tl.sum(tl.where(c == tl.argmax(noisy, axis=0), token, 0), axis=0)
    top = tl.where(value == tl.max(value, axis=0), token, 0x7FFFFFFFFFFFFFFF)
    likeliest = tl.min(tl.where(inside, top, 0x7FFFFFFFFFFFFFFF), axis=0)
    tl.store(out + row, tl.where(cold, likeliest, drawn))


@triton.jit
def penalise_kernel(logits, barred, generated, seen, presence, repetition, out, size, BLOCK: tl.constexpr):
    """Minus infinity for what is barred, the rest as `capsules.nn.penalise`."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    value = tl.load(logits + i, mask=inside, other=0.0)
    value = tl.where(tl.load(barred + i, mask=inside, other=0) != 0, float("-inf"), value)
    divisor = tl.load(repetition)
    less = tl.where(value > 0, value / divisor, value * divisor)
    value = tl.where(tl.load(seen + i, mask=inside, other=0) != 0, less, value)
    used = tl.load(generated + i, mask=inside, other=0) > 0
    tl.store(out + i, value - tl.where(used, tl.load(presence), 0.0), mask=inside)


def launch_draw(
    values: Tensor, ids: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, min_p: Tensor, seed: Tensor,
    position: Tensor, nucleus: bool = True,
) -> Tensor:  # fmt: skip
    """values [R, C] float32, best first, ids [R, C] int64 of the candidates -> [R] int64. Parameters as `sample`."""
    rows, count = values.shape
    out = torch.empty(rows, dtype=torch.int64, device=values.device)
    spread = [int(part.numel() > 1) for part in (temperature, top_k, top_p, min_p)]
    draw_kernel[(rows,)](
        values, ids, temperature, top_k, top_p, min_p, seed, position, out, count, *spread,
        CANDIDATES=triton.next_power_of_2(count), NUCLEUS=nucleus, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    return out


def launch_penalise(
    logits: Tensor, barred: Tensor, generated: Tensor, seen: Tensor, presence: Tensor, repetition: Tensor
) -> Tensor:
    """All [V], contiguous; presence, repetition [1] -> [V] float32."""
    out = torch.empty_like(logits)
    block = 1024
    penalise_kernel[(triton.cdiv(logits.numel(), block),)](
        logits, barred.view(torch.uint8), generated, seen.view(torch.uint8), presence, repetition, out, logits.numel(),
        BLOCK=block, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    return out


@torch.library.custom_op("capsules::draw", mutates_args=(), device_types="cuda")
def draw(
    values: Tensor, ids: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, min_p: Tensor, seed: Tensor,
    position: Tensor, nucleus: bool = True,
) -> Tensor:  # fmt: skip
    return launch_draw(values, ids, temperature, top_k, top_p, min_p, seed, position, nucleus)


@draw.register_fake
def _(
    values: Tensor, ids: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, min_p: Tensor, seed: Tensor,
    position: Tensor, nucleus: bool = True,
) -> Tensor:  # fmt: skip
    assert values.is_contiguous() and ids.is_contiguous() and values.dim() == 2
    assert all(part.numel() in (1, values.shape[0]) for part in (temperature, top_k, top_p, min_p))
    return ids.new_empty(ids.shape[0])


@torch.library.custom_op("capsules::penalise", mutates_args=(), device_types="cuda")
def penalise(
    logits: Tensor, barred: Tensor, generated: Tensor, seen: Tensor, presence: Tensor, repetition: Tensor
) -> Tensor:
    return launch_penalise(logits, barred, generated, seen, presence, repetition)


@penalise.register_fake
def _(
    logits: Tensor, barred: Tensor, generated: Tensor, seen: Tensor, presence: Tensor, repetition: Tensor
) -> Tensor:
    assert all(part.is_contiguous() for part in (logits, barred, generated, seen))
    return torch.empty_like(logits)
