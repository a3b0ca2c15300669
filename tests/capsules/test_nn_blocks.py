"""The shared blocks against slow, obvious references, inside a captured step and under autograd."""

import math

import pytest
import torch
from torch import Tensor

from capsules import ExecContext, Role, ShapeKey
from capsules.nn import (
    attend,
    gated_mlp,
    linear,
    rms_norm,
    rope_table,
    rotate,
    write_rows,
)

DTYPES = [torch.float32, torch.bfloat16]


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def ratio(actual: Tensor, expected: Tensor) -> float:
    """Root-mean-square error over the root-mean-square of what is expected."""
    actual, expected = actual.double(), expected.double()
    return float((actual - expected).square().mean().sqrt() / expected.square().mean().sqrt())


def test_norm_is_the_formula_in_double_precision() -> None:
    x, w = randn(3, 5, 63), randn(63, seed=1)
    wide = x.double()
    plain = wide / (wide**2).mean(-1, keepdim=True).add(1e-6).sqrt()
    assert ratio(rms_norm(x, w, 1e-6), plain * w.double()) < 1e-6


@pytest.mark.parametrize("dims", [2, 16, 64])
def test_rope_turns_pairs_and_leaves_the_rest(dims: int) -> None:
    x, positions = randn(2, 7, 3, 64), torch.tensor([0, 1, 2, 5, 64, 1000, 262143])
    expected = x.double().clone()
    for t, position in enumerate(positions.tolist()):
        for j in range(dims // 2):
            angle = position * 1e7 ** (-2 * j / dims)
            a, b = x[:, t, :, j].double(), x[:, t, :, j + dims // 2].double()
            expected[:, t, :, j] = a * math.cos(angle) - b * math.sin(angle)
            expected[:, t, :, j + dims // 2] = b * math.cos(angle) + a * math.sin(angle)
    actual = rotate(x, *rope_table(positions, dims, 1e7))
    assert ratio(actual[:, :6], expected[:, :6]) < 1e-4
    assert ratio(actual, expected) < 2e-2  # float32 angles at the far end of the context
    assert torch.equal(actual[..., dims:], x[..., dims:])


def plain_attention(q: Tensor, k: Tensor, v: Tensor, positions: list[int]) -> Tensor:
    out = torch.zeros(q.shape, dtype=torch.double)
    share = q.shape[1] // k.shape[1]
    for t, position in enumerate(positions):
        for head in range(q.shape[1]):
            keys, values = k[: position + 1, head // share].double(), v[: position + 1, head // share].double()
            out[t, head] = torch.softmax(keys @ q[t, head].double() / math.sqrt(q.shape[-1]), 0) @ values
    return out


@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (4, 4), (8, 2), (3, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_reads_its_prefix_and_no_junk(heads: int, groups: int, dtype: torch.dtype) -> None:
    positions = [4, 5, 6, 40, 63]
    q = randn(5, heads, 32, dtype=dtype)
    k, v = randn(64, groups, 32, seed=1, dtype=dtype), randn(64, groups, 32, seed=2, dtype=dtype)
    actual = attend(q, k, v, torch.tensor(positions))
    assert actual.dtype == dtype
    assert ratio(actual, plain_attention(q, k, v, positions)) < (1e-6 if dtype == torch.float32 else 4e-3)
    k[7:], v[7:] = 1e30, -1e30
    assert torch.equal(attend(q, k, v, torch.tensor(positions))[:3], actual[:3])


def test_attention_takes_batches_and_gradients() -> None:
    q, k, v = randn(2, 9, 4, 8).requires_grad_(), randn(2, 9, 2, 8, seed=1), randn(2, 9, 2, 8, seed=2)
    out = attend(q, k, v, torch.arange(9).expand(2, 9))
    for lane in range(2):
        assert ratio(out[lane].detach(), plain_attention(q[lane].detach(), k[lane], v[lane], list(range(9)))) < 1e-6
    out.sum().backward()
    assert q.grad is not None and q.grad.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 24])
def test_products_agree_with_double_precision(rows: int, dtype: torch.dtype) -> None:
    x, w = randn(rows, 96, dtype=dtype), randn(130, 96, seed=1, dtype=dtype)
    assert ratio(linear(x, w), x.double() @ w.double().T) < (1e-6 if dtype == torch.float32 else 4e-3)
    assert linear(x, w).shape == (rows, 130)
    assert linear(x[0], w).shape == (130,)


def test_gated_mlp_is_gate_then_up() -> None:
    x, gate, up, down = randn(3, 8), randn(12, 8, seed=1), randn(12, 8, seed=2), randn(8, 12, seed=3)
    expected = (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T
    assert ratio(gated_mlp(x, torch.cat((gate, up)), down), expected) < 1e-6


def test_a_captured_decode_step_follows_the_position_buffer() -> None:
    ctx = ExecContext("cpu")
    cache = ctx.buffer("t.kv", [2, 32, 2, 16], torch.float32, role=Role.STATE).tensor
    position = ctx.buffer("t.position", [1], torch.int64, role=Role.STATE).tensor
    row = ctx.buffer("t.row", [1, 4, 16], torch.float32, role=Role.IO).tensor
    out = ctx.buffer("t.out", [1, 4, 16], torch.float32, role=Role.IO).tensor

    def step() -> None:
        q = rotate(row, *rope_table(position, 8, 1e4))
        write_rows(cache[0], q[:, :2], position)
        write_rows(cache[1], row[:, 2:], position)
        out.copy_(attend(q, cache[0, :16], cache[1, :16], position))
        position.add_(1)

    graph = ctx.graph("t.step")
    graph.capture(ShapeKey(kv=16), step)
    seen = []
    for index in range(5):
        row.copy_(randn(1, 4, 16, seed=index))
        graph.replay(ShapeKey(kv=16))
        seen.append(out.clone())
    rows = torch.stack([randn(4, 16, seed=index) for index in range(5)])
    q = rotate(rows, *rope_table(torch.arange(5), 8, 1e4))
    assert ratio(torch.cat(seen), plain_attention(q, q[:, :2], rows[:, 2:], list(range(5)))) < 1e-6
