"""The three forms of the delta rule against its definition."""

import pytest
import torch
from torch import Tensor

from llm_engine.gated_delta import chunked, recurrence, step, unit


def inputs(rows: int, keys: int = 2, values: int = 4, lanes: tuple[int, ...] = (), seed: int = 0) -> list[Tensor]:
    made = torch.Generator().manual_seed(seed)
    q = unit(torch.randn(*lanes, rows, keys, 16, generator=made)) * 0.25
    k = unit(torch.randn(*lanes, rows, keys, 16, generator=made))
    v = torch.randn(*lanes, rows, values, 24, generator=made)
    g = -torch.rand(*lanes, rows, values, generator=made) * 2
    beta = torch.rand(*lanes, rows, values, generator=made)
    state = torch.randn(*lanes, values, 16, 24, generator=made)
    return [q, k, v, g, beta, state]


def ratio(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).square().mean().sqrt() / expected.square().mean().sqrt())


@pytest.mark.parametrize("rows", [1, 3, 8, 63, 64, 65, 193])
@pytest.mark.parametrize(("keys", "values"), [(2, 2), (2, 4), (1, 3)])
def test_chunks_are_the_recurrence(rows: int, keys: int, values: int) -> None:
    given = inputs(rows, keys, values)
    out, state = chunked(*given)
    plain_out, plain_state = recurrence(*given)
    assert out.shape == plain_out.shape
    assert ratio(out, plain_out) < 3e-6
    assert ratio(state, plain_state) < 3e-6


def test_chunks_stay_stable_when_all_keys_are_alike_and_nothing_decays() -> None:
    q, k, v, g, beta, state = inputs(128, 1, 1)
    k = unit(torch.ones_like(k) + 1e-3 * k)
    out, _ = chunked(q, k, v, torch.zeros_like(g), torch.ones_like(beta), state)
    expected, _ = recurrence(*(x.double() for x in (q, k, v, torch.zeros_like(g), torch.ones_like(beta), state)))
    assert ratio(out.double(), expected) < 1e-3


def test_strong_decay_does_not_overflow() -> None:
    q, k, v, g, beta, state = inputs(64)
    out, new = chunked(q, k, v, g * 100, beta, state)
    assert out.isfinite().all() and new.isfinite().all()


def test_padding_with_no_write_and_no_decay_changes_nothing() -> None:
    q, k, v, g, beta, state = inputs(64)
    g[23:], beta[23:] = 0, 0
    _, padded = chunked(q, k, v, g, beta, state)
    _, exact = recurrence(*(x[:23] for x in (q, k, v, g, beta)), state)
    assert ratio(padded, exact) < 3e-6


def test_lanes_do_not_mix_and_gradients_flow() -> None:
    given = [x.requires_grad_() for x in inputs(70, lanes=(2, 3))]
    out, _ = chunked(*given)
    for a in range(2):
        for b in range(3):
            alone, _ = recurrence(*(x[a, b].detach() for x in given))
            assert ratio(out[a, b].detach(), alone) < 3e-6
    out.square().sum().backward()
    plain = [x.detach().clone().requires_grad_() for x in given]
    recurrence(*plain)[0].square().sum().backward()
    for mine, theirs in zip(given, plain, strict=True):
        assert mine.grad is not None and theirs.grad is not None
        assert ratio(mine.grad, theirs.grad) < 1e-5


def test_a_step_is_one_token_in_place() -> None:
    q, k, v, g, beta, state = inputs(9)
    expected, final = recurrence(q, k, v, g, beta, state)
    held = state.clone()
    for t in range(9):
        out = step(q[t], k[t], v[t], g[t], beta[t], held)
        assert ratio(out, expected[t]) < 3e-6
    assert ratio(held, final) < 3e-6
