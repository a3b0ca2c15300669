"""The network against transformers, and as something that can be trained, saved and loaded elsewhere."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from capsules import ExecContext
from llm_engine import HybridLLM, Sampling
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.errors import CheckpointError
from llm_engine.model import forward_train, init_params
from llm_engine.weights import save_checkpoint

SMALL = LLMConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=48,
    layer_types=("linear_attention", "full_attention"),
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    linear_num_key_heads=2,
    linear_num_value_heads=2,
    linear_key_head_dim=8,
    linear_value_head_dim=8,
)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["one", "two", "three", "llama", "qwen3"])
@pytest.mark.parametrize("rows", [1, 3, 63, 64, 65, 127, 193])
def test_whole_sequences_match_transformers(oracle: Callable[[str], Any], shape: str, rows: int) -> None:
    reference = oracle(shape)
    config = LLMConfig.read(reference.path)
    ids = torch.randint(0, config.vocab_size, (2, rows), generator=torch.Generator().manual_seed(rows))
    with torch.no_grad():
        expected = reference.model(ids).logits
        actual = forward_train(config, dict(reference.model.state_dict()), ids)
    assert float((actual - expected).abs().max()) < 1e-3


def test_training_learns_and_what_is_saved_loads_in_transformers(tmp_path: Path) -> None:
    params = init_params(SMALL, torch.Generator().manual_seed(0))
    optimiser = torch.optim.AdamW([p.requires_grad_() for p in params.values()], lr=1e-2)
    ids = torch.randint(0, 64, (2, 33), generator=torch.Generator().manual_seed(1))
    losses = []
    for _ in range(12):
        loss = F.cross_entropy(forward_train(SMALL, params, ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in params.values())

    save_checkpoint(tmp_path, SMALL, params, dtype=torch.float32)
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    with torch.no_grad():
        assert float((model(ids).logits - forward_train(SMALL, params, ids)).abs().max()) < 1e-4


def test_a_batch_is_its_rows_and_the_future_is_not_seen() -> None:
    params = init_params(SMALL, torch.Generator().manual_seed(0))
    ids = torch.randint(0, 64, (3, 40), generator=torch.Generator().manual_seed(1))
    whole = forward_train(SMALL, params, ids)
    changed = ids.clone()
    changed[:, 20:] = 0
    assert torch.allclose(forward_train(SMALL, params, changed)[:, :20], whole[:, :20], atol=1e-5)
    assert torch.allclose(forward_train(SMALL, params, ids[1:2]), whole[1:2], atol=1e-5)


def test_parameters_that_do_not_fit_are_named(tmp_path: Path) -> None:
    params = init_params(SMALL, torch.Generator().manual_seed(0))
    params["model.layers.0.extra.weight"] = params.pop("model.norm.weight")
    with pytest.raises(CheckpointError, match=r"model\.layers\.0\.extra\.weight"):
        save_checkpoint(tmp_path, SMALL, params)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [(LINEAR, LINEAR), (FULL, FULL)], ids=["only linear", "only full"])
def test_networks_of_one_kind_of_layer_run_and_restore(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    config = replace(SMALL, layer_types=kinds)
    params = init_params(config, torch.Generator().manual_seed(3))
    save_checkpoint(tmp_path, config, params, dtype=torch.float32)
    llm = HybridLLM.load(tmp_path, ExecContext("cpu"), max_positions=150)
    ids = torch.randint(0, 64, (70,), generator=torch.Generator().manual_seed(1)).tolist()
    logits = llm.append(ids)
    with torch.no_grad():
        assert torch.allclose(logits, forward_train(config, params, torch.tensor([ids]))[0, -1], atol=1e-4)
    capsule = llm.snapshot()
    reply = llm.decode(20, Sampling(seed=4))
    llm.rollback(80)
    assert llm.decode(10) == reply[10:]
    llm.restore(capsule)
    assert llm.decode(20, Sampling(seed=4)) == reply
