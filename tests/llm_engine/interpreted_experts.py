"""The experts' kernels in Triton's interpreter against their definition in float64; prints one JSON line of errors.

Run as its own process with TRITON_INTERPRET=1, or on a card with the argument "cuda".
"""

import json
from unittest import mock

import torch
from torch import Tensor

from llm_engine import experts_kernel as card
from llm_engine.experts import ExpertWeights, add_experts
from tests.capsules.interpreted_kernels import draw, on_device, ratio
from tests.llm_engine.test_experts import defined, packed

SHAPES = ((4, 2, 32, 32), (5, 2, 40, 11), (3, 1, 25, 8), (65, 8, 8, 3))
"""Experts, how many a row asks, the hidden size and an expert's own."""


def layer(form: str, experts: int, hidden: int, inner: int) -> ExpertWeights:
    stacks = draw(experts * 2 * inner, hidden) * 0.1, draw(experts * hidden, inner) * 0.1
    router = draw(experts + 1, hidden) * 0.2
    return ExpertWeights(router, packed(stacks[0], form), packed(stacks[1], form))


def main() -> None:
    found: dict[str, float] = {}
    for form in ("float32", "fp8", "words of int4", "shifted words of int4"):
        for experts, top, hidden, inner in SHAPES:
            if form != "float32" and (hidden % 32 or inner % 32):
                continue
            w = layer(form, experts, hidden, inner)
            x, y = draw(2, hidden), draw(2, hidden)
            made = add_experts(y, x, w, top)
            found[f"{form} {experts} {hidden}x{inner}"] = ratio(made, defined(y, x, w, top))
            alone = add_experts(y[1:], x[1:], w, top)
            found[f"{form} {experts} {hidden}x{inner} alone"] = float(not torch.equal(alone, made[1:]))
    found |= choices()
    print(json.dumps(found))


def choices() -> dict[str, float]:
    nothing = float("nan")
    scores = torch.tensor([[1.0, 3.0, 3.0, 0.0, 3.0, -1.0], [0.0] * 6, [nothing, -5.0, nothing, -6.0, -7.0, 0.0],
                           [nothing] * 6, [-float("inf")] * 6])  # fmt: skip
    ids, shares = card.launch_choose(scores, 3)
    expected = [[1, 2, 4], [0, 1, 2], [1, 3, 4]]
    sums: Tensor = shares[:3, :3].sum(1)
    return {
        "ties by the lower number": float(ids[:3].tolist() != expected),
        "always a number of an expert": float(bool(((ids < 0) | (ids >= 5)).any())),
        "shares add up": float((sums - 1).abs().max()),
    }


if __name__ == "__main__":
    with on_device(), mock.patch("capsules.nn.kernels.fits", lambda x: True):
        for operator, launcher in ((card.asked, card.launch_asked), (card.choose, card.launch_choose),
                                   (card.join, card.launch_join)):  # fmt: skip
            operator.register_kernel("cpu", launcher)
        main()
