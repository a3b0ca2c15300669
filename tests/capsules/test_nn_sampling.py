"""Sampling: distributions, filters against a plain reference, penalties, chance that is a function of its inputs."""

import math

import pytest
import torch
from torch import Tensor

from capsules import ExecContext, Role, ShapeKey
from capsules.nn import SamplerBuffers, count_token, penalise, sample
from capsules.nn.drawing import _uniform_at


def params(temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> SamplerBuffers:
    return SamplerBuffers(
        torch.tensor([temperature]), torch.tensor([top_k]), torch.tensor([top_p]), torch.tensor([min_p])
    )


def draws(logits: Tensor, p: SamplerBuffers, n: int, seed: int = 7, **static: int) -> Tensor:
    """Draws at positions 0 … n - 1."""
    seed_ = torch.tensor([seed])
    return torch.stack([sample(logits, p, seed_, torch.tensor([at]), **static) for at in range(n)])


def plain_distribution(logits: Tensor, temperature: float, top_k: int, top_p: float, min_p: float) -> Tensor:
    """Filter by filter in double precision."""
    probabilities = torch.softmax(logits.double() / temperature, -1)
    order = probabilities.argsort(descending=True).tolist()
    kept = order[: top_k or len(order)]
    total, mass, nucleus = sum(float(probabilities[i]) for i in kept), 0.0, []
    for i in kept:
        if nucleus and mass >= top_p * total:
            break
        nucleus.append(i)
        mass += float(probabilities[i])
    nucleus = [i for i in nucleus if probabilities[i] >= min_p * probabilities[order[0]]]
    out = torch.zeros_like(probabilities)
    out[nucleus] = probabilities[nucleus]
    return out / out.sum()


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "min_p"),
    [(1.0, 0, 1.0, 0.0), (0.7, 5, 1.0, 0.0), (1.3, 0, 0.6, 0.0), (1.0, 0, 1.0, 0.2), (0.8, 9, 0.8, 0.05)],
)
def test_frequencies_follow_the_plain_reference(temperature: float, top_k: int, top_p: float, min_p: float) -> None:
    logits = torch.randn(23, generator=torch.Generator().manual_seed(3)) * 1.5
    expected = plain_distribution(logits, temperature, top_k, top_p, min_p)
    n = 3000  # 30 positions of 100 rows
    drawn = draws(logits.expand(100, 23), params(temperature, top_k, top_p, min_p), n // 100).flatten()
    counts = torch.bincount(drawn, minlength=23).double()
    assert counts[expected == 0].sum() == 0
    live = expected > 0
    chi2 = float(((counts - n * expected)[live] ** 2 / (n * expected)[live]).sum())
    freedom = int(live.sum()) - 1
    assert chi2 < freedom + 4 * math.sqrt(2 * freedom) + 4


def test_zero_temperature_is_argmax_whatever_the_rest_says() -> None:
    logits = torch.randn(40, 5000, generator=torch.Generator().manual_seed(1))
    got = sample(logits, params(0.0, 3, 0.5, 0.1), torch.tensor([1]), torch.tensor([0]))
    assert torch.equal(got, logits.argmax(-1))


def test_chance_depends_on_seed_position_row_and_nothing_else() -> None:
    logits = torch.zeros(4, 300)
    base = sample(logits, params(), torch.tensor([1]), torch.tensor([5]))
    torch.manual_seed(99)
    assert torch.equal(base, sample(logits, params(), torch.tensor([1]), torch.tensor([5])))
    assert not torch.equal(base, sample(logits, params(), torch.tensor([2]), torch.tensor([5])))
    assert not torch.equal(base, sample(logits, params(), torch.tensor([1]), torch.tensor([6])))
    assert len(set(base.tolist())) > 1


def test_uniform_is_flat_and_never_zero_or_one() -> None:
    columns = torch.arange(4096).expand(64, 4096)
    u = _uniform_at(torch.tensor([-(2**62)]), torch.tensor([123456]), columns)
    assert float(u.min()) > 0 and float(u.max()) < 1
    counts = torch.histc(u, bins=64, min=0, max=1)
    assert float(((counts - 4096) ** 2 / 4096).sum()) < 63 + 4 * math.sqrt(126)
    following = _uniform_at(torch.tensor([-(2**62)]), torch.tensor([123457]), columns)
    correlation = torch.corrcoef(torch.stack((u.flatten(), following.flatten())))[0, 1]
    assert abs(float(correlation)) < 0.01


def test_codebooks_draw_independently_with_their_own_parameters() -> None:
    logits = torch.zeros(8, 1026)
    logits[:, 7] = 30.0
    mixed = SamplerBuffers(
        torch.tensor([[0.0]] * 4 + [[50.0]] * 4),
        torch.tensor([[50]]),
        torch.tensor([[1.0]]),
        torch.tensor([[0.0]]),
    )
    got = torch.stack([sample(logits, mixed, torch.tensor([3]), torch.tensor([at]), nucleus=False) for at in range(20)])
    assert (got[:, :4] == 7).all()
    assert len(set(got[:, 4:].flatten().tolist())) > 10


def test_nucleus_off_changes_nothing_when_it_is_not_asked_for() -> None:
    logits = torch.randn(3, 900, generator=torch.Generator().manual_seed(2))
    for at in range(10):
        seed, position = torch.tensor([4]), torch.tensor([at])
        full = sample(logits, params(0.9, 50), seed, position)
        assert torch.equal(full, sample(logits, params(0.9, 50), seed, position, nucleus=False))


def test_candidates_do_not_change_a_draw_among_them() -> None:
    logits = torch.randn(5000, generator=torch.Generator().manual_seed(2)) * 3
    wide, narrow = (draws(logits, params(0.8, 20), 50, candidates=c) for c in (4096, 64))
    assert torch.equal(wide, narrow)


def test_forbidden_tokens_are_never_drawn() -> None:
    logits = torch.full((50,), float("-inf"))
    logits[11] = -3.0
    assert (draws(logits, params(2.0), 20) == 11).all()


def test_penalties_are_the_published_formulas() -> None:
    logits = torch.tensor([2.0, -2.0, 1.0, 0.5])
    generated = torch.tensor([0, 2, 1, 0], dtype=torch.int32)
    seen = torch.tensor([True, True, True, False])
    got = penalise(logits, generated, seen, torch.tensor(0.5), torch.tensor(2.0))
    assert got.tolist() == [1.0, -4.5, 0.0, 0.5]
    assert torch.equal(penalise(logits, generated, seen, torch.tensor(0.0), torch.tensor(1.0)), logits)
    count_token(generated, seen, torch.tensor([3]))
    assert generated.tolist() == [0, 2, 1, 1] and bool(seen[3])


def test_a_captured_draw_reads_its_buffers() -> None:
    ctx = ExecContext("cpu")
    logits = ctx.buffer("t.logits", [2, 600], torch.float32, role=Role.IO).tensor
    out = ctx.buffer("t.out", [2], torch.int64, role=Role.IO).tensor
    seed = ctx.buffer("t.seed", [1], torch.int64, role=Role.STATE).tensor
    position = ctx.buffer("t.position", [1], torch.int64, role=Role.STATE).tensor
    buffers = SamplerBuffers(
        ctx.buffer("t.temperature", [1], torch.float32, role=Role.IO).tensor,
        ctx.buffer("t.top_k", [1], torch.int64, role=Role.IO).tensor,
        ctx.buffer("t.top_p", [1], torch.float32, role=Role.IO).tensor,
        ctx.buffer("t.min_p", [1], torch.float32, role=Role.IO).tensor,
    )
    graph = ctx.graph("t.sample")

    def step() -> None:
        out.copy_(sample(logits, buffers, seed, position))
        position.add_(1)

    graph.capture(ShapeKey(rows=2), step)
    logits.copy_(torch.randn(2, 600, generator=torch.Generator().manual_seed(0)))
    for value, tensor in zip((0.9, 40, 0.95, 0.01), vars(buffers).values(), strict=True):
        tensor.fill_(value)
    for at in range(4):
        graph.replay(ShapeKey(rows=2))
        expected = sample(logits, params(0.9, 40, 0.95, 0.01), seed, torch.tensor([at]))
        assert torch.equal(out, expected)
    buffers.temperature.fill_(0.0)
    graph.replay(ShapeKey(rows=2))
    assert torch.equal(out, logits.argmax(-1))
