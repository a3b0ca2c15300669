"""Random decoders in GGUF files: logits against llama.cpp on the same file, and what is not a model is refused."""

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
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.nn.panels import PanelWeight
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.errors import CheckpointError, ConfigError
from llm_engine.footprint import model_bytes, needed_bytes
from llm_engine.gguf import checkpoint
from llm_engine.gguf.container import GgufFile
from llm_engine.gguf.described import config_of
from llm_engine.gguf.undone import PublishedTensor
from llm_engine.model import forward_whole, init_params
from llm_engine.options import LLMOptions
from llm_engine.published import open_published, read_config
from llm_engine.weights import load_weights, save_checkpoint
from tests.fakes.gguf_files import SMALL, random_matrix, rewritten, write_decoder
from tests.fakes.llama_cpp import LlamaCpp

IDS = torch.randint(5, 2000, (70,), generator=torch.Generator().manual_seed(2)).tolist()
STRETCH = np.linspace(1, 8, 16)


def ours(path: Path) -> Tensor:
    loaded = load_weights(path, ExecContext("cpu"), torch.float32)
    with torch.no_grad():
        return forward_whole(loaded.model, loaded.config, torch.tensor([IDS]))[0]


def theirs(path: Path) -> Tensor:
    peer = LlamaCpp(path)
    logits = peer.logits(IDS)
    peer.close()
    return logits


@pytest.mark.parametrize(
    ("architecture", "stretch"),
    [("llama", None), ("llama", STRETCH), ("qwen3", None)],
    ids=["llama", "llama stretched", "qwen3"],
)
def test_logits_are_those_of_llama_cpp(tmp_path: Path, architecture: str, stretch: np.ndarray | None) -> None:
    path = tmp_path / "random.gguf"
    write_decoder(path, architecture, stretch=stretch)
    expected = theirs(path)
    assert float((ours(path) - expected).abs().max()) < 1e-3 * float(expected.abs().max())


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"])
def test_logits_of_each_type_are_near_llama_cpps(tmp_path: Path, architecture: str, kind: str) -> None:
    """It rounds activations to eight bits, which we do not."""
    path = tmp_path / "random.gguf"
    write_decoder(path, architecture, kind)
    expected = theirs(path)
    assert float((ours(path) - expected).pow(2).mean().sqrt()) < 0.05 * float(expected.pow(2).mean().sqrt())


ORDERED = ["q_proj", "k_proj"]
HYBRID = ["in_proj_qkv", "conv1d", "in_proj_z", "in_proj_a", "in_proj_b", "dt_bias", "A_log", "out_proj"]


def leave(monkeypatch: pytest.MonkeyPatch, tensor: str) -> None:
    """Do not undo the order of one kind of tensor."""
    found = checkpoint.published_tensors

    def forgetful(file: GgufFile, config: LLMConfig) -> dict[str, PublishedTensor]:
        return {
            name: replace(held, rows=None, columns=None) if tensor in name else held
            for name, held in found(file, config).items()
        }

    monkeypatch.setattr(checkpoint, "published_tensors", forgetful)


@pytest.mark.parametrize("tensor", ORDERED)
def test_an_order_that_is_not_undone_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tensor: str) -> None:
    path = tmp_path / "random.gguf"
    write_decoder(path)
    expected = theirs(path)
    leave(monkeypatch, tensor)
    assert float((ours(path) - expected).abs().max()) > 0.05 * float(expected.abs().max())


@pytest.fixture(scope="module", params=["one", "two", "three"])
def hybrid(
    request: pytest.FixtureRequest, oracle: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """A Qwen3.5-family file in llama.cpp's layout, and the logits of transformers for IDS."""
    made = oracle(request.param)
    path = tmp_path_factory.mktemp("hybrid") / f"{request.param}.gguf"
    write_gguf(made.path, path)
    with torch.no_grad():
        return path, made.model(torch.tensor([short(request.param)])).logits[0]


def short(shape: str) -> list[int]:
    return [token % 131 for token in IDS]


@pytest.mark.slow
def test_a_hybrids_logits_are_those_of_transformers(hybrid: Any) -> None:
    path, expected = hybrid
    loaded = load_weights(path, ExecContext("cpu"), torch.float32)
    with torch.no_grad():
        actual = forward_whole(loaded.model, loaded.config, torch.tensor([short(path.stem)]))[0]
    assert float((actual - expected).abs().max()) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("tensor", HYBRID)
def test_a_hybrids_order_that_is_not_undone_shows(hybrid: Any, monkeypatch: pytest.MonkeyPatch, tensor: str) -> None:
    path, expected = hybrid
    config = read_config(path)
    leave(monkeypatch, tensor)
    loaded = load_weights(path, ExecContext("cpu"), torch.float32)
    with torch.no_grad():
        actual = forward_whole(loaded.model, loaded.config, torch.tensor([short(path.stem)]))[0]
    share = config.linear_num_value_heads // config.linear_num_key_heads
    alike = share == 1 or config.linear_num_key_heads == 1  # both orders are one
    assert (float((actual - expected).abs().max()) < 1e-3) == alike


@pytest.mark.slow
def test_other_converters_layouts_are_the_same_model(hybrid: Any, tmp_path: Path) -> None:
    """Ollama's own: a count per layer, three sections, no `.bias`, vision beside; llama.cpp's with drafts."""
    path, expected = hybrid
    config = read_config(path)
    layers, groups = len(config.layer_types), config.num_key_value_heads
    theirs = {
        "qwen35.attention.head_count_kv": [groups if i in config.full_layers else 0 for i in range(layers)],
        "qwen35.rope.dimension_sections": [2, 1, 1], "qwen35.ssm.v_head_reordered": True,
    }  # fmt: skip
    bare = {f"blk.{i}.ssm_dt.bias": f"blk.{i}.ssm_dt" for i in range(layers)}
    drafts = {"qwen35.block_count": layers + 1, "qwen35.nextn_predict_layers": 1}
    extra = [f"blk.{layers}.attn_q.weight", f"blk.{layers}.nextn.eh_proj.weight"]
    for name, changes in {
        "ollama": (theirs, bare, ["v.patch_embd.weight", "mm.0.weight", "mtp.fc.weight"]),
        "drafts": (drafts, {}, extra),
    }.items():
        metadata, names, more = changes
        rewritten(path, tmp_path / name, metadata, names, dict.fromkeys(more, SMALL))
        loaded = load_weights(tmp_path / name, ExecContext("cpu"), torch.float32)
        with torch.no_grad():
            actual = forward_whole(loaded.model, loaded.config, torch.tensor([short(path.stem)]))[0]
        assert float((actual - expected).abs().max()) < 1e-3, name


def save_hybrid(folder: Path, dtype: torch.dtype) -> None:
    """Heads as wide as those published, so that a block of a K type spans two of them."""
    config = LLMConfig(
        vocab_size=512, hidden_size=256, intermediate_size=512, layer_types=(LINEAR, LINEAR, LINEAR, FULL) * 2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=128, linear_value_head_dim=128,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    params = init_params(config, generator, 0.06)
    for name, value in params.items():
        if value.dim() == 1 and not name.endswith("A_log"):
            value.add_(torch.randn(value.shape, generator=generator) * 0.2)
    save_checkpoint(folder, config, params, dtype)


def write_hybrid(folder: Path, kind: str) -> Path:
    """In llama.cpp's layout; values of types that cannot be written are random, so only what reads them is compared."""
    save_hybrid(folder, torch.float32 if kind == "F32" else torch.bfloat16)
    path, random = folder / "file" / "hybrid.gguf", np.random.default_rng(len(kind))
    path.parent.mkdir()
    encode = (lambda value, held: random_matrix(random, tuple(value.shape), held)) if kind.endswith("_K") else None
    write_gguf(folder, path, "BF16" if kind == "F32" else kind, encode)
    return path


def far(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).pow(2).mean().sqrt() / expected.pow(2).mean().sqrt())


QUANTISED = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["F32", "BF16", *QUANTISED])
def test_a_hybrids_logits_are_those_of_both_other_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """transformers' reader dequantises, as ours does, but not two of the types. llama.cpp rounds activations, too."""
    path, ids = write_hybrid(tmp_path, kind), [i % 512 for i in IDS]
    loaded, peer = load_weights(path, ExecContext("cpu"), torch.float32), LlamaCpp(path)
    with torch.no_grad():
        actual = forward_whole(loaded.model, loaded.config, torch.tensor([ids]))[0]
        if kind not in ("Q5_0", "Q5_1"):
            assert far(actual, in_transformers(path, monkeypatch)(torch.tensor([ids])).logits[0]) < 1e-4
    expected = peer.logits(ids)
    peer.close()
    assert far(actual, expected) < {"F32": 1e-3, "BF16": 0.05}.get(kind, 0.15)


def in_transformers(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """By its own reader, which asks whether accelerate is installed and then uses nothing of it."""
    from transformers import AutoModelForCausalLM

    monkeypatch.setattr("transformers.modeling_utils.is_accelerate_available", lambda *_: True)
    return AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("tensor", HYBRID)
def test_an_order_that_another_reader_undoes_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tensor: str
) -> None:
    path, ids = write_hybrid(tmp_path, "Q4_0"), torch.tensor([[i % 512 for i in IDS[:20]]])
    with torch.no_grad():
        expected = in_transformers(path, monkeypatch)(ids).logits[0]
        leave(monkeypatch, tensor)
        loaded = load_weights(path, ExecContext("cpu"), torch.float32)
        assert far(forward_whole(loaded.model, loaded.config, ids)[0], expected) > 0.01


def test_the_digest_is_the_files(tmp_path: Path) -> None:
    path = tmp_path / "random.gguf"
    write_decoder(path)
    first = open_published(path).digest(None)
    assert open_published(path).digest(None) == first
    changed = bytearray(path.read_bytes())
    changed[-1] ^= 1
    path.write_bytes(changed)
    assert open_published(path).digest(None) != first
    assert not list(tmp_path.glob("*.json"))


def matrices(path: Path, dtype: str, device: str = "cpu") -> dict[str, Any]:
    """What a load with `dtype` holds, by the name of its buffers' owner; the plan must count the same bytes."""
    ctx, (bits, made) = ExecContext("cpu"), LLMOptions(dtype).forms_on(torch.device(device))
    loaded = load_weights(path, ctx, LLMOptions(dtype).tensor_dtype, bits=bits, made=made)
    beside = model_bytes(loaded.config, dtype, 64, most=0, device=device)
    assert sum(buffer.nbytes for buffer in ctx.buffers("llm")) == needed_bytes(path, dtype, 64, device=device) - beside
    found = {"embed": loaded.model.embed, "head": loaded.model.head}
    for index, layer in enumerate(loaded.model.layers):
        found |= {f"{index}.gate_up": layer.gate_up, f"{index}.down": layer.down}
        found |= {f"{index}.{name}": value for name, value in vars(layer.mixer).items()}
    if dtype == "float32":
        return {name: weight for name, weight in found.items() if isinstance(weight, Tensor) and weight.dim() > 1}
    return found


def lost(held: Any, exact: Tensor) -> float:
    return float((held.unpack(torch.float32) - exact).norm() / exact.norm())


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUANTISED)
def test_packed_forms_keep_the_files_own_values(tmp_path: Path, kind: str) -> None:
    """Only scales and minima are rounded, to bfloat16. Rounding values again would lose 8 % in four bits."""
    path = tmp_path / "random.gguf"
    write_decoder(path, "llama", kind)
    exact, eight, four = (matrices(path, dtype) for dtype in ("float32", "int8", "int4"))
    bits = 4 if kind.startswith("Q4") else 8
    for name, value in exact.items():
        assert isinstance(eight[name], PanelWeight) and eight[name].bits == bits
        assert lost(eight[name], value) < (0.006 if kind == "Q6_K" else 0.004), name
        squeezed = kind == "Q8_0" and name not in ("embed", "head")
        assert four[name].bits == (4 if squeezed else bits)
        assert squeezed or torch.equal(four[name].unpack(torch.float32), eight[name].unpack(torch.float32))
    card = matrices(path, "int4", "cuda")
    for name, value in exact.items():
        if name in ("embed", "head") or kind[1] in "56":
            assert isinstance(card[name], Fp8Weight) and lost(card[name], value) < 0.04, name
        else:
            assert isinstance(card[name], Int4Weight)
            assert torch.equal(card[name].unpack(torch.float32), four[name].unpack(torch.float32))


@pytest.mark.slow
def test_a_joined_matrix_takes_the_bits_of_its_finest_part(tmp_path: Path) -> None:
    """As in Q4_K_M, whose values' projection has six bits: queries and keys keep their own values in eight."""
    path = tmp_path / "random.gguf"
    write_decoder(path, "llama", "Q4_K", finer={"attn_v": "Q6_K", "ffn_up": "F16"})
    exact, found = matrices(path, "float32"), matrices(path, "int8")
    for name, bits in {"0.qkv": 8, "0.gate_up": 8, "0.down": 4, "0.out": 4}.items():
        assert (found[name].bits, found[name].form.shifted) == (bits, True)
        assert lost(found[name], exact[name]) < 0.006
    assert matrices(path, "int4")["0.qkv"].bits == 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUANTISED)
def test_a_hybrids_orders_are_undone_in_packed_forms(tmp_path: Path, kind: str) -> None:
    """Rows and groups of columns move with their scales; a wrong order would lose everything."""
    path = write_hybrid(tmp_path, kind)
    exact, found = matrices(path, "float32"), matrices(path, "int8")
    for name, value in exact.items():
        if isinstance(found[name], PanelWeight):
            assert lost(found[name], value) < (0.006 if kind == "Q6_K" else 0.004), name
    assert isinstance(found["0.out"], PanelWeight)
    assert found["0.out"].form.group == (64 if kind == "Q6_K" else 32)


def described(**changes: object) -> GgufFile:
    metadata: dict[str, object] = {
        "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
        "llama.feed_forward_length": 128, "llama.attention.head_count": 4,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
    }  # fmt: skip
    return GgufFile(Path("some.gguf"), metadata | changes, {}, torch.zeros(0, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"general.architecture": "clip"}, "vision projector"),
        ({"general.architecture": "qwen3moe"}, "mixture of experts"),
        ({"general.architecture": "gemma4"}, "architecture 'gemma4' is not implemented; llama, qwen3, qwen35"),
        ({"llama.expert_count": 8}, "mixture of experts"),
        ({"llama.attention.key_length": 64}, "keys are 64 wide"),
        ({"split.count": 3}, "one of 3 parts of a model; join them with"),
        ({}, "holds a part of a model"),
    ],
)
def test_what_is_no_model_here_is_said(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"(some\.gguf.*)?{said}"):
        config_of(described(**changes))


def test_tensors_that_do_not_belong_or_are_missing_are_named(tmp_path: Path) -> None:
    path = tmp_path / "random.gguf"
    write_decoder(path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight"))
    with pytest.raises(CheckpointError, match=r"ffn_xx|mlp\.up_proj"):
        load_weights(path, ExecContext("cpu"), torch.float32)
    assert read_config(path).hidden_size == 256
