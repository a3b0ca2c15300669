"""The delta-net mixer as one C++ operator: the plain mixer up to the order of sums, tokens one by one bit for bit."""

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsules.exec import native
from llm_engine import LLMConfig
from llm_engine.config import LINEAR
from llm_engine.layers import LinearWeights, delta_chunk, delta_mixer, delta_step

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(map(shutil.which, ("c++", "g++", "clang++"))),
        reason="needs a C++ compiler; `apt install g++` brings one",
    ),
]
SHAPES = [(2, 4, 16, 32), (1, 3, 24, 20), (1, 2, 128, 144)]  # key heads, value heads, sizes of a key and a value head
DTYPES = [torch.float32, torch.bfloat16]


def mixer(shape: tuple[int, int, int, int], dtype: torch.dtype) -> tuple[LLMConfig, LinearWeights, Tensor, Tensor]:
    """A config of one such layer, its weights, and a state (window and memory) that is not empty."""
    keys, values, key, value = shape
    config = LLMConfig(
        vocab_size=16, hidden_size=40, intermediate_size=8, layer_types=(LINEAR,), linear_num_key_heads=keys,
        num_attention_heads=1, num_key_value_heads=1, head_dim=8, linear_num_value_heads=values,
        linear_key_head_dim=key, linear_value_head_dim=value,
    )  # fmt: skip
    made = torch.Generator().manual_seed(0)

    def randn(*sizes: int, scale: float = 0.3) -> Tensor:
        return torch.randn(*sizes, generator=made) * scale

    channels = config.conv_dim
    weights = LinearWeights(
        qkvz=randn(channels + values * value, 40).to(dtype),
        ba=randn(2 * values, 40).to(dtype),
        conv=randn(4, channels),
        decay=-torch.rand(values, generator=made) * 2,
        dt_bias=randn(values),
        norm=1 + randn(value),
        out=randn(40, values * value).to(dtype),
    )
    return config, weights, randn(3, channels, scale=1).to(dtype), randn(values, key, value, scale=1)


def ratio(actual: Tensor, expected: Tensor) -> float:
    actual, expected = actual.double(), expected.double()
    return float((actual - expected).square().mean().sqrt() / expected.square().mean().sqrt())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("rows", "count"), [(1, 1), (3, 2), (16, 1), (24, 24), (64, 63)])
def test_a_chunk_is_the_plain_mixer_and_rows_beyond_count_do_not_matter(
    kernel_folder: Path, shape: tuple[int, int, int, int], dtype: torch.dtype, rows: int, count: int
) -> None:
    config, w, window, memory = mixer(shape, dtype)
    x = torch.randn(rows, 40, generator=torch.Generator().manual_seed(1)).to(dtype)
    with torch.no_grad():
        plain = delta_mixer(x[:count], w, config, window, memory)
        junk = x.clone()
        junk[count:] = float("nan")
        found = []
        for given in (x, junk):
            state = window.clone(), memory.clone()
            with native.using(kernel_folder):
                y = delta_chunk(given, w, config, *state, torch.tensor([count]))
            found.append((y[:count], *state))
            assert y[count:].count_nonzero() == 0
    assert all(map(torch.equal, *found))
    limits = (4e-6, 1e-6, 4e-6) if dtype == torch.float32 else (1e-2, 1e-2, 1e-2)
    assert [ratio(*pair) < limit for *pair, limit in zip(found[0], plain, limits, strict=True)] == [True] * 3


@pytest.mark.parametrize("shape", SHAPES)
def test_a_chunk_is_its_tokens_one_by_one_bit_for_bit(kernel_folder: Path, shape: tuple[int, int, int, int]) -> None:
    """In bfloat16, where our own products sum every row alike."""
    config, w, window, memory = mixer(shape, torch.bfloat16)
    picks = torch.eye(40).bfloat16()[torch.arange(len(w.qkvz)) % 40]  # exact, so that only the rule itself is compared
    w = LinearWeights(**vars(w) | {"qkvz": picks, "ba": w.ba * 0})
    x = torch.randn(20, 40, generator=torch.Generator().manual_seed(1)).bfloat16()
    whole, single = (window.clone(), memory.clone()), (window.clone(), memory.clone())
    with torch.no_grad(), native.using(kernel_folder):
        delta_chunk(x, w, config, *whole, torch.tensor([20]))
        for row in x.split(1):
            delta_step(row, w, config, *single)
    assert all(map(torch.equal, whole, single))
