"""Kernels that join neighbours in Triton's interpreter, against the operators they stand for.

Run as its own process with TRITON_INTERPRET=1, or on a card with the argument "cuda"; prints one JSON line of error
ratios, 0 where bits must be equal.
"""

import json
from dataclasses import replace

import torch

from capsules.nn import Cache, Heads, SamplerBuffers, Span, attend_cached, penalise, rms_norm, rope_table, sample, turns
from capsules.nn.kernels.angles import launch_angles
from capsules.nn.kernels.attention import launch_decode_attention
from capsules.nn.kernels.chunk_attention import launch_chunk_attention
from capsules.nn.kernels.draw import launch_draw, launch_penalise
from capsules.nn.kernels.gemv import launch_gemv
from capsules.nn.kernels.heads import launch_heads
from capsules.nn.kernels.residual import launch_add_norm
from tests.capsules.interpreted_kernels import draw, on_device, ratio, whole
from tests.capsules.interpreted_packed_row import gated

SHAPES = ((4, 2, 32, True, True), (6, 2, 16, False, True), (4, 1, 64, True, True), (6, 3, 32, False, False))
"""Query heads, key heads, size, gated, with norms."""


def residual(found: dict[str, float], kind: str, dtype: torch.dtype) -> None:
    for size in (65, 1000):
        x, y, w = draw(3, size, dtype=dtype), draw(3, size, dtype=dtype), draw(size)
        total, normed = launch_add_norm(x, y, w, 1e-6)
        found[f"add_norm {kind} {size}"] = ratio(normed, rms_norm(x + y, w, 1e-6))
        found[f"add_norm {kind} {size} sum"] = ratio(total, x + y)
    for outputs, inputs in ((12, 300), (6, 1400)):
        x, w = draw(1, inputs, dtype=dtype), draw(outputs, inputs, dtype=dtype) / 16
        want = x.double() @ w.double().T
        found[f"gated row {kind} {outputs}"] = ratio(launch_gemv(x, w, paired=True), gated(want))
        found[f"wide row {kind} {outputs} float32"] = ratio(launch_gemv(x, w, wide=True), want)


def cached(found: dict[str, float], kind: str, dtype: torch.dtype) -> None:
    """A cache of 90 rows, of which those before `at` are known; the rest must not be read."""
    for heads, groups, size, opened, normed in SHAPES if dtype == torch.float32 else SHAPES[::3]:
        for rows, at in ((1, 0), (1, 70), (3, 31), (17, 0), (33, 52)):
            width = ((2 if opened else 1) * heads + 2 * groups) * size
            qkv = draw(rows, width, dtype=dtype)
            norms = (draw(size), draw(size)) if normed else (None, None)
            layout = Heads(heads, groups, size, *norms, 1e-6, opened)
            cos, sin = rope_table(torch.arange(at, at + rows), size // 2 if normed else size, 1e4)
            first, case = torch.tensor([at]), f"{kind} {rows} rows at {at}, {heads}/{groups} of {size}"
            known = Cache(*draw(2, 90, groups, size, dtype=dtype), 90)
            mine = replace(known, keys=known.keys.clone(), values=known.values.clone())
            for cache in (mine.keys, mine.values):
                cache[at + rows :] = float("nan")
            want = attend_cached(qkv, layout, cos, sin, Span(first, rows), known)
            q = launch_heads(qkv, heads, layout.q_norm, layout.k_norm, 1e-6, cos, sin, first, mine.keys, mine.values)
            gate = layout.parts(qkv)[3]
            if rows == 1:
                opening = None if gate is None else gate[0]
                got = launch_decode_attention(q[0], mine.keys, mine.values, first, size**-0.5, opening)[None]
            else:
                got = launch_chunk_attention(q, mine.keys, mine.values, first, size**-0.5, gate)
                short = launch_chunk_attention(q, mine.keys[: at + rows], mine.values, first, size**-0.5, gate)
                found[f"{case}: depends on capacity"] = float(not torch.equal(got, short))
            found[case] = ratio(got, want)
            found[f"{case}: keys"] = ratio(mine.keys[at : at + rows], known.keys[at : at + rows])
            found[f"{case}: values"] = float(not torch.equal(mine.values[at : at + rows], known.values[at : at + rows]))


def rotary(found: dict[str, float]) -> None:
    for position in (0, 1, 63, 4095, 100_003):
        cos, sin = launch_angles(torch.tensor([[position]]), torch.tensor([2]), 64, 1e7)
        angle = (position + 2) * 1e7 ** -(torch.arange(0, 64, 2, dtype=torch.float64) / 64)
        plain = rope_table(torch.tensor([position + 2]), 64, 1e7)[1].double()
        ours, theirs = (float((s[0, :32].double() - angle.sin()).abs().max()) for s in (sin, plain))
        found[f"angles at {position}"] = max(0.0, ours - 2 * theirs - 1e-6)
    axes = whole(0, 4000, 3, 7)
    cos, sin = launch_angles(axes, None, 64, 1e7, 11, 10)
    j = torch.arange(32)
    turned = torch.where((j % 3 == 1) & (j < 33), axes[1, :, None], axes[0, :, None])
    turned = torch.where((j % 3 == 2) & (j < 30), axes[2, :, None], turned)
    want = turns(turned, 64, 1e7)
    found["angles of three axes"] = max(float((cos - want[0]).abs().max()), float((sin - want[1]).abs().max())) / 1e3


def drawing(found: dict[str, float]) -> None:
    """The same draws as the plain form, for every parameter, from seeds and positions of any sign and size."""
    logits = draw(3, 1000) * 3
    logits[1, 5:9] = logits[1].max() + 1  # equal ones at the top
    logits[2, 100:] = float("-inf")
    settings = [(1.0, 0, 1.0, 0.0), (0.7, 50, 0.9, 0.0), (1.3, 5, 1.0, 0.1), (0.0, 0, 1.0, 0.0), (0.9, 2000, 0.3, 0.05)]
    wrong = tries = 0
    for candidates in (128, 1000):
        for temperature, k, p, least in settings:
            warm = torch.tensor([[temperature], [temperature], [temperature * 2]])
            params = SamplerBuffers(warm, torch.tensor([[k]] * 3), torch.tensor([p]), torch.tensor([least]))
            values, ids = torch.topk(logits, candidates)
            for seed, position in ((0, 0), (-5, 17), (2**63 - 1, 2**40), (-(2**63), 1), (123456789, 4095)):
                at = torch.tensor([seed]), torch.tensor([position])
                want = sample(logits, params, *at, candidates=candidates)
                parameters = (params.temperature, params.top_k, params.top_p, params.min_p)
                got = launch_draw(values, ids, *parameters, *at)
                wrong, tries = wrong + int((got != want).sum()), tries + 3
    found["draws that differ"], found["draws"] = float(wrong), float(-tries)
    size = 5000
    barred, seen = (whole(0, 2, size).bool() for _ in range(2))
    used, plain = whole(0, 3, size).int(), draw(size)
    presence, repetition = torch.tensor([0.5]), torch.tensor([1.3])
    want = penalise(plain.masked_fill(barred, float("-inf")), used, seen, presence, repetition)
    got = launch_penalise(plain, barred, used, seen, presence, repetition)
    found["penalties"] = float(not torch.equal(got, want))


def main() -> None:
    found: dict[str, float] = {}
    for dtype in (torch.float32, torch.bfloat16):
        kind = str(dtype).removeprefix("torch.")
        residual(found, kind, dtype)
        cached(found, kind, dtype)
    rotary(found)
    drawing(found)
    print(json.dumps(found))


if __name__ == "__main__":
    with on_device():
        main()
