"""Mixtures of experts: the choice, the answers beside float64, rows by themselves, and every way of storing them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from capsules import ExecContext
from capsules.exec import native
from capsules.nn import Weight, panels
from capsules.nn.fp8 import Fp8Weight, quantise_fp8
from capsules.nn.groups import KnownGroups
from capsules.nn.int4 import Int4Weight, quantise_int4
from capsules.nn.panels import PanelForm, PanelWeight, pack_panels
from llm_engine import CheckpointError
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.experts import ExpertWeights, add_experts, choose
from llm_engine.footprint import model_bytes
from llm_engine.model import forward_whole, init_params
from llm_engine.weights import LoadedWeights, load_weights, save_checkpoint
from tests.llm_engine.test_weights import Copy, assert_equal_weights, load, tensors_of, to_fp8, to_int4

pytestmark = pytest.mark.slow

EXPERTS, TOP, HIDDEN, INNER = 6, 3, 96, 64


@pytest.fixture(params=["torch", "kernels"])
def backend(request: pytest.FixtureRequest, kernel_folder: Path) -> Iterator[str]:
    with native.using(kernel_folder if request.param == "kernels" else None), torch.no_grad():
        yield request.param


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def packed(matrix: Tensor, form: str) -> Weight:
    if form in ("int8", "int4"):
        return PanelWeight(*pack_panels(matrix, panels.FORMS[int(form[-1])]), matrix.shape)
    if form == "published int4":
        scale, shift = (draw(matrix.shape[0], matrix.shape[1] // 32, seed=seed).abs() for seed in (4, 5))
        return PanelWeight(*pack_panels(matrix, PanelForm(4, 32, True), KnownGroups(scale * 0.02, shift)), matrix.shape)
    if form == "shifted words of int4":
        four = Int4Weight(*quantise_int4(matrix))
        return Int4Weight(four.packed, four.scale, draw(*four.scale.shape).bfloat16())
    if form == "fp8":
        return Fp8Weight(*quantise_fp8(matrix, (32, 32)), (32, 32))
    if form == "words of int4":
        return Int4Weight(*quantise_int4(matrix))
    return matrix.to(getattr(torch, form))


def layer(form: str) -> ExpertWeights:
    router = draw(EXPERTS + 1, HIDDEN) * 0.2
    stacks = draw(EXPERTS * 2 * INNER, HIDDEN, seed=1) * 0.1, draw(EXPERTS * HIDDEN, INNER, seed=2) * 0.1
    return ExpertWeights(router.to(kind_of(form)), packed(stacks[0], form), packed(stacks[1], form))


def kind_of(form: str) -> torch.dtype:
    return torch.float32 if form == "float32" else torch.bfloat16


def plain(weight: Weight) -> Tensor:
    return (weight if isinstance(weight, Tensor) else weight.unpack(torch.float32)).double()


def defined(y: Tensor, x: Tensor, w: ExpertWeights, top: int) -> Tensor:
    """The published definition, expert by expert in float64: softmax over all, the likeliest, divided by their sum."""
    scores = x.double() @ w.router.double().T
    likely, ids = scores[:, :-1].softmax(-1).topk(top)
    out = y.double() * scores[:, -1:].sigmoid()
    for t, j in torch.cartesian_prod(torch.arange(len(x)), torch.arange(top)).tolist():
        of = [plain(stack).unflatten(0, (len(w.router) - 1, -1))[ids[t, j]] for stack in (w.gate_up, w.down)]
        gate, up = (of[0] @ x[t].double()).chunk(2)
        out[t] += likely[t, j] / likely[t].sum() * (of[1] @ (F.silu(gate) * up))
    return out


FORMS = {
    "float32": 1e-6, "bfloat16": 0.01, "int8": 0.02, "int4": 0.02, "published int4": 0.02, "fp8": 0.01,
    "words of int4": 0.01, "shifted words of int4": 0.01,
}  # fmt: skip
"""By form, how far an answer may be from the definition with the same weights: activations are rounded, too."""


@pytest.mark.parametrize("form", FORMS)
def test_answers_are_those_of_the_definition(backend: str, form: str) -> None:
    w, x, y = layer(form), draw(9, HIDDEN).to(kind_of(form)), draw(9, HIDDEN, seed=3).to(kind_of(form))
    made, want = add_experts(y, x, w, TOP), defined(y, x, w, TOP)
    assert made.dtype == x.dtype
    assert float((made - want).norm() / want.norm()) < FORMS[form]


@pytest.mark.parametrize("form", FORMS)
def test_a_row_does_not_depend_on_its_neighbours(backend: str, form: str) -> None:
    """64 rows at once, some of them, and one by one: the same bits."""
    w, x, y = layer(form), draw(64, HIDDEN).to(kind_of(form)), draw(64, HIDDEN, seed=3).to(kind_of(form))
    whole = add_experts(y, x, w, TOP)
    for rows in (slice(0, 1), slice(7, 8), slice(5, 22), slice(63, 64)):
        assert torch.equal(add_experts(y[rows], x[rows], w, TOP), whole[rows])
    alike = x[:1].expand(64, -1).contiguous(), y[:1].expand(64, -1).contiguous()
    assert torch.equal(add_experts(alike[1], alike[0], w, TOP), whole[:1].expand(64, -1)), "all ask the same experts"


@pytest.mark.parametrize("form", ["float32", "bfloat16", "int4"])
def test_of_equal_experts_the_first_is_asked(backend: str, form: str) -> None:
    w, x = layer(form), draw(5, HIDDEN).to(kind_of(form))
    w.router[:-1] = 0  # so every score is the same number
    y = torch.zeros_like(x)
    first = replace(w, router=w.router[[0, -1]].contiguous(), **{
        name: packed(plain(getattr(w, name))[: size].float(), form)
        for name, size in (("gate_up", 2 * INNER), ("down", HIDDEN))
    })  # fmt: skip
    assert torch.equal(add_experts(y, x, w, 1), add_experts(y, x, first, 1))


def test_ties_are_broken_by_the_lower_number_and_shares_add_up() -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0, 0.0, 3.0, -1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 2.0]])
    ids, shares = choose(scores, 2)
    assert ids.tolist() == [[1, 2], [0, 1]]
    assert shares[:, :2].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert torch.equal(shares[:, 2], scores[:, 5].sigmoid())


@pytest.fixture
def copy(oracle: Callable[[str], Any], tmp_path: Path) -> Callable[[str], Copy]:
    return lambda shape: Copy(oracle(shape).path, tmp_path)


def stacked(changed: Copy) -> None:
    """As the files in bfloat16 are published: the experts of a layer in two tensors."""
    count, layers = changed.config["num_experts"], changed.config["num_hidden_layers"]
    for index in range(layers):
        stem = f"model.layers.{index}.mlp.experts"
        each = [
            {way: changed.tensors.pop(f"{stem}.{e}.{way}_proj.weight") for way in ("gate", "up", "down")}
            for e in range(count)
        ]
        changed.tensors[f"{stem}.gate_up_proj"] = torch.stack([torch.cat((e["gate"], e["up"])) for e in each])
        changed.tensors[f"{stem}.down_proj"] = torch.stack([e["down"] for e in each])


@pytest.mark.parametrize("bits", [None, 8, 4])
@pytest.mark.parametrize("shards", [1, 3])
def test_stacked_experts_are_those_that_are_apart(
    oracle: Callable[[str], Any], copy: Callable[[str], Copy], bits: int | None, shards: int
) -> None:
    changed = copy("crowd")
    stacked(changed)
    assert_equal_weights(load(changed.write(shards), bits=bits), load(oracle("crowd").path, bits=bits))


def test_a_stack_of_another_size_is_named(copy: Callable[[str], Copy]) -> None:
    changed = copy("mixed")
    stacked(changed)
    name = "model.layers.2.mlp.experts.down_proj"
    changed.tensors[name] = changed.tensors[name][:-1].clone()
    with pytest.raises(CheckpointError, match=r"layers\.2\.mlp\.experts\.down_proj: shape \[4, 48, 24\]"):
        load(changed.write())


def test_a_missing_expert_is_named(copy: Callable[[str], Copy]) -> None:
    changed = copy("mixed")
    del changed.tensors["model.layers.1.mlp.experts.3.up_proj.weight"]
    with pytest.raises(CheckpointError, match=r"layers\.1\.mlp\.experts\.3\.up_proj\.weight"):
        load(changed.write())


@pytest.mark.parametrize("keep", [False, True], ids=["unpacked", "packed"])
@pytest.mark.parametrize("publish", [to_fp8, to_int4])
def test_quantised_experts_equal_the_dequantised_reference(
    copy: Callable[[str], Copy], tmp_path_factory: pytest.TempPathFactory, publish: Callable[..., Any], keep: bool
) -> None:
    changed, other = copy("crowd"), copy("crowd")
    other.tensors, other.path = publish(changed, 16), tmp_path_factory.mktemp("plain")
    found, expected = load(changed.write(), packed=keep), load(other.write())
    assert_equal_weights(found, expected)
    held = found.model.layers[0].experts
    assert held is not None and isinstance(held.router, Tensor)
    assert isinstance(held.gate_up, Fp8Weight | Int4Weight) == keep == isinstance(held.down, Fp8Weight | Int4Weight)
    assert torch.allclose(logits(found), logits(expected), atol=1e-3)


def logits(loaded: LoadedWeights) -> Tensor:
    with torch.no_grad():
        return forward_whole(loaded.model, loaded.config, torch.arange(20)[None])


@pytest.mark.parametrize("swap", [("experts.0.up_proj", "experts.3.up_proj"), ("experts.1.", "experts.2."),
                                  ("experts.1.gate_proj", "experts.1.up_proj")], ids=str)  # fmt: skip
def test_a_swapped_expert_shows(
    oracle: Callable[[str], Any], copy: Callable[[str], Copy], swap: tuple[str, str]
) -> None:
    changed = copy("mixed")
    before = dict(changed.tensors)
    for name, value in before.items():
        if "layers.1." in name and swap[0] in name:
            other = name.replace(*swap)
            changed.tensors |= {name: before[other], other: value}
    with torch.no_grad():
        expected = oracle("mixed").model(torch.arange(20)[None]).logits
    assert float((logits(load(oracle("mixed").path)) - expected).abs().max()) < 1e-3
    assert float((logits(load(changed.write())) - expected).abs().max()) > 0.02


def test_the_memory_plan_is_what_is_loaded(oracle: Callable[[str], Any]) -> None:
    for bits, dtype in ((None, "float32"), (8, "int8"), (4, "int4")):
        ctx = ExecContext("cpu")
        kind = torch.float32 if dtype == "float32" else torch.bfloat16
        loaded = load_weights(oracle("crowd").path, ctx, kind, bits=bits)
        declared = sum(buffer.nbytes for buffer in ctx.buffers("llm"))
        assert model_bytes(loaded.config, dtype, 100) - model_bytes(loaded.config, dtype, 100, most=0) == declared


def test_a_saved_mixture_loads_in_transformers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    config = LLMConfig(
        vocab_size=64, hidden_size=32, intermediate_size=24, layer_types=(LINEAR, FULL), num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8,
        linear_value_head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
    )  # fmt: skip
    save_checkpoint(tmp_path, config, init_params(config, torch.Generator().manual_seed(0), 0.2), torch.float32)
    assert LLMConfig.read(tmp_path) == config
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    loaded = load(tmp_path)
    assert len(tensors_of(loaded.model)) > 20
    with torch.no_grad():
        assert torch.allclose(model(torch.arange(20)[None]).logits, logits(loaded), atol=1e-4)
