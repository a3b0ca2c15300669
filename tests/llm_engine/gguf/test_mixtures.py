"""Random mixtures in GGUF files: logits of transformers and llama.cpp, and every expert at its place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.peers.gguf_file import write_gguf
from capsules import ExecContext
from capsules.nn.panels import PanelWeight
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.gguf import checkpoint
from llm_engine.gguf.container import GgufFile, open_gguf
from llm_engine.gguf.undone import PublishedTensor
from llm_engine.model import forward_whole, init_params
from llm_engine.weights import load_weights, save_checkpoint
from tests.fakes.gguf_files import SMALL, rewritten
from tests.fakes.llama_cpp import LlamaCpp

pytestmark = pytest.mark.slow

IDS = torch.randint(0, 160, (70,), generator=torch.Generator().manual_seed(2)).tolist()


@pytest.fixture(scope="module", params=["mixed", "crowd"])
def written(
    request: pytest.FixtureRequest, oracle: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Tensor]:
    """A file in llama.cpp's layout, and the logits of transformers for IDS."""
    made = oracle(request.param)
    path = tmp_path_factory.mktemp("mixture") / f"{request.param}.gguf"
    write_gguf(made.path, path)
    with torch.no_grad():
        return path, made.model(torch.tensor([IDS])).logits[0]


def ours(path: Path, ids: list[int] = IDS) -> Tensor:
    loaded = load_weights(path, ExecContext("cpu"), torch.float32)
    with torch.no_grad():
        return forward_whole(loaded.model, loaded.config, torch.tensor([ids]))[0]


def test_logits_are_those_of_transformers(written: tuple[Path, Tensor]) -> None:
    path, expected = written
    assert float((ours(path) - expected).abs().max()) < 1e-3


def test_a_stack_of_gates_over_ups_is_the_same_model(written: tuple[Path, Tensor], tmp_path: Path) -> None:
    path, expected = written
    file = open_gguf(path)
    joined, left = {}, {}
    for name in [name for name in file.tensors if "ffn_gate_exps" in name]:
        pair = [file.rows(one).view(file.tensors[one].shape) for one in (name, name.replace("gate", "up"))]
        joined[name.replace("gate", "gate_up")] = torch.cat(pair, 1).numpy()
        left |= {name: "", name.replace("gate", "up"): ""}
    assert joined
    rewritten(path, tmp_path / "joined.gguf", {}, left, joined)
    assert float((ours(tmp_path / "joined.gguf") - expected).abs().max()) < 1e-3


def test_ollamas_layout_is_the_same_model(written: tuple[Path, Tensor], tmp_path: Path) -> None:
    path, expected = written
    counts = {"qwen35moe.attention.head_count_kv": [0, 0, 0, 2], "qwen35moe.rope.dimension_sections": [2, 1, 1]}
    bare = {f"blk.{i}.ssm_dt.bias": f"blk.{i}.ssm_dt" for i in range(4)}
    beside = dict.fromkeys(["v.patch_embd.weight", "mm.0.weight", "mtp.fc.weight"], SMALL)
    rewritten(path, tmp_path / "ollama", counts | {"qwen35moe.ssm.v_head_reordered": True}, bare, beside)
    assert float((ours(tmp_path / "ollama") - expected).abs().max()) < 1e-3


def test_each_expert_keeps_its_own_four_bits(tmp_path: Path) -> None:
    """Q4_0 in int4: the scales are rounded to bfloat16, and nothing else is."""
    config = LLMConfig(
        vocab_size=64, hidden_size=64, intermediate_size=32, layer_types=(LINEAR, FULL), num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=32,
        linear_value_head_dim=32, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=32,
    )  # fmt: skip
    save_checkpoint(tmp_path, config, init_params(config, torch.Generator().manual_seed(0)))
    write_gguf(tmp_path, tmp_path / "four.gguf", "Q4_0")
    wide, four = (load_weights(tmp_path / "four.gguf", ExecContext("cpu"), torch.float32, bits=b) for b in (None, 4))
    for exact, kept in zip(wide.model.layers, four.model.layers, strict=True):
        for name in ("gate_up", "down"):
            held, value = getattr(kept.experts, name), getattr(exact.experts, name)
            assert isinstance(held, PanelWeight) and held.bits == 4
            assert bool(((held.unpack(torch.float32) - value).abs() <= value.abs() / 128).all())


Held = dict[str, PublishedTensor]


def swapped(one: str, other: str) -> Callable[[Held], Held]:
    def change(held: Held) -> Held:
        pairs = {name: name.replace(one, other) for name in held if one in name}
        assert pairs
        pairs |= {there: here for here, there in pairs.items()}
        return {name: replace(value, start=held[pairs.get(name, name)].start,
                              stored=held[pairs.get(name, name)].stored) for name, value in held.items()}  # fmt: skip

    return change


def forgotten(tensor: str) -> Callable[[Held], Held]:
    return lambda held: {
        name: replace(value, rows=None, columns=None) if tensor in name else value for name, value in held.items()
    }


CHANGES = {
    "experts swapped": swapped("experts.1.", "experts.2."),
    "gate for up": swapped("experts.0.gate", "experts.0.up"),
    "one row too far": lambda held: {
        name: replace(value, start=value.start + 1) if "experts.0.down" in name else value
        for name, value in held.items()
    },
    **{f"{name} as it lies": forgotten(name) for name in ("in_proj_qkv", "in_proj_z", "A_log", "out_proj")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_order_shows(written: tuple[Path, Tensor], monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    path, expected = written
    found = checkpoint.published_tensors

    def wrong(file: GgufFile, config: LLMConfig) -> Held:
        return CHANGES[change](found(file, config))

    monkeypatch.setattr(checkpoint, "published_tensors", wrong)
    assert float((ours(path) - expected).abs().max()) > 0.02


@pytest.mark.parametrize(("kind", "most"), [("F32", 1e-3), ("BF16", 0.05), ("Q8_0", 0.15), ("Q4_0", 0.15)])
def test_logits_are_near_llama_cpps(tmp_path: Path, kind: str, most: float) -> None:
    """It rounds activations as it rounds weights: to bfloat16, or to eight bits. Then a row may ask another expert,
    so a few rows may be far off; the median row is not."""
    config = LLMConfig(
        vocab_size=512, hidden_size=256, intermediate_size=128, layer_types=(LINEAR, LINEAR, LINEAR, FULL),
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=128, linear_value_head_dim=128, num_experts=16, num_experts_per_tok=4,
        moe_intermediate_size=64, tie_word_embeddings=False,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    params = init_params(config, generator, 0.06)
    for name, value in params.items():
        if value.dim() == 1 and not name.endswith("A_log"):
            value.add_(torch.randn(value.shape, generator=generator) * 0.2)
    save_checkpoint(tmp_path, config, params, torch.float32 if kind == "F32" else torch.bfloat16)
    path = tmp_path / "mixture.gguf"
    write_gguf(tmp_path, path, "BF16" if kind == "F32" else kind)
    peer = LlamaCpp(path)
    expected = peer.logits(IDS)
    peer.close()
    error = (ours(path) - expected).pow(2).mean(-1).sqrt() / expected.pow(2).mean().sqrt()
    print(f"{kind}: relative rms error of a row: median {float(error.median()):.2g}, largest {float(error.max()):.2g}")
    assert float(error.median()) < most
    assert kind != "F32" or float(error.max()) < most
