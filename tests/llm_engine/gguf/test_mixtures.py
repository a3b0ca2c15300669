"""Random mixtures in GGUF files: logits of transformers and llama.cpp, and every expert at its place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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
from tests.fakes.gguf_files import SMALL, TILED, far, in_transformers, random_matrix, rewritten
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
    rewritten(path, tmp_path / "ollama", *ollamas(3, 2))
    assert float((ours(tmp_path / "ollama") - expected).abs().max()) < 1e-3


def ollamas(linear: int, heads: int) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Metadata, names and further tensors of Ollama's own conversion; so many linear layers stand before a full one."""
    counts = {
        "qwen35moe.attention.head_count_kv": [0] * linear + [heads], "qwen35moe.rope.dimension_sections": [2, 1, 1],
        "qwen35moe.ssm.v_head_reordered": True,
    }  # fmt: skip
    bare = {f"blk.{i}.ssm_dt.bias": f"blk.{i}.ssm_dt" for i in range(linear)}
    return counts, bare, dict.fromkeys(["v.patch_embd.weight", "mm.0.weight", "mtp.fc.weight"], SMALL)


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
    **{f"{name} as it lies": forgotten(name) for name in TILED},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_order_shows(written: tuple[Path, Tensor], monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    path, expected = written
    found = checkpoint.published_tensors

    def wrong(file: GgufFile, config: LLMConfig) -> Held:
        return CHANGES[change](found(file, config))

    monkeypatch.setattr(checkpoint, "published_tensors", wrong)
    assert float((ours(path) - expected).abs().max()) > 0.02


KINDS = ("F32", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_both_other_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """llama.cpp rounds activations as it rounds weights: to bfloat16, or to eight bits. Then a row may ask another
    expert, so a few rows may be far off; the median row is not. transformers cannot read two of the types."""
    path = write_mixture(tmp_path, kind)
    peer = LlamaCpp(path)
    expected, actual = peer.logits(IDS), ours(path)
    peer.close()
    error = (actual - expected).pow(2).mean(-1).sqrt() / expected.pow(2).mean().sqrt()
    print(f"{kind}: relative rms error of a row: median {float(error.median()):.2g}, largest {float(error.max()):.2g}")
    assert float(error.median()) < {"F32": 1e-3, "BF16": 0.05}.get(kind, 0.15)
    assert kind != "F32" or float(error.max()) < 1e-3
    if kind not in ("Q5_0", "Q5_1"):
        with torch.no_grad():
            assert far(actual, in_transformers(path, monkeypatch)(torch.tensor([IDS])).logits[0]) < 1e-4
    rewritten(path, tmp_path / "ollama", *ollamas(1, 2))
    assert torch.equal(ours(tmp_path / "ollama"), actual)


def write_mixture(folder: Path, kind: str) -> Path:
    """In llama.cpp's layout, heads and experts as wide as a block of a K type or half of it. Values of types that
    cannot be written are random."""
    config = LLMConfig(
        vocab_size=512, hidden_size=256, intermediate_size=256, layer_types=(LINEAR, FULL), num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=128,
        linear_value_head_dim=128, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=256,
        tie_word_embeddings=False,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    params = init_params(config, generator, 0.06)
    for name, value in params.items():
        if value.dim() == 1 and not name.endswith("A_log"):
            value.add_(torch.randn(value.shape, generator=generator) * 0.2)
    save_checkpoint(folder, config, params, torch.float32 if kind == "F32" else torch.bfloat16)
    path, random = folder / "file" / "mixture.gguf", np.random.default_rng(len(kind))
    path.parent.mkdir()
    encode = (lambda value, held: random_matrix(random, tuple(value.shape), held)) if kind.endswith("_K") else None
    write_gguf(folder, path, "BF16" if kind == "F32" else kind, encode)
    return path
