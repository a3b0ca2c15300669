"""Loading: prefixes, tying, skipped and kept tensors, quantised files, and refusals by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from capsules import ExecContext, Role
from capsules.nn import PackedWeight
from capsules.nn.fp8 import Fp8Weight, quantise_fp8, unpack_fp8
from capsules.nn.int4 import Int4Weight, quantise_int4, unpack_int4
from capsules.nn.panels import BITS, FORMS, PanelWeight, pack_panels
from llm_engine import CheckpointError, HybridLLM, Sampling, StateError
from llm_engine.footprint import model_bytes, needed_bytes
from llm_engine.model import ModelWeights
from llm_engine.names import FP8_BLOCK
from llm_engine.options import MADE, LLMOptions
from llm_engine.weights import LoadedWeights, load_weights

LARGE = ("_proj.weight", "in_proj_qkv.weight", "in_proj_z.weight")


def load(
    path: Path, dtype: torch.dtype = torch.float32, packed: bool = False, bits: int | None = None,
    made: str | None = None,
) -> LoadedWeights:  # fmt: skip
    return load_weights(path, ExecContext("cpu"), dtype, packed=packed, bits=bits, made=made)


def tensors_of(model: ModelWeights) -> list[Tensor]:
    """All tensors, packed ones unpacked, in a fixed order."""

    def plain(weight: Any) -> Tensor:
        return weight.unpack(torch.float32) if isinstance(weight, PackedWeight) else weight

    out = [plain(model.embed), model.norm, plain(model.head)]
    for layer in model.layers:
        out += [layer.norm_in, layer.norm_post, plain(layer.gate_up), plain(layer.down)]
        experts = vars(layer.experts) if layer.experts is not None else {}
        out += [plain(value) for value in (*vars(layer.mixer).values(), *experts.values())]
    return out


def assert_equal_weights(one: LoadedWeights, two: LoadedWeights) -> None:
    for a, b in zip(tensors_of(one.model), tensors_of(two.model), strict=True):
        assert torch.equal(a, b)


class Copy:
    """A changed copy of a checkpoint."""

    def __init__(self, source: Path, path: Path) -> None:
        self.path = path
        self.config = json.loads((source / "config.json").read_text())
        self.tensors = load_file(source / "model.safetensors")

    def write(self, shards: int = 1) -> Path:
        (self.path / "config.json").write_text(json.dumps(self.config))
        if shards == 1:
            save_file(self.tensors, self.path / "model.safetensors")
            return self.path
        names, where = sorted(self.tensors), {}
        for shard in range(shards):
            file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            mine = names[shard::shards]
            save_file({name: self.tensors[name] for name in mine}, self.path / file)
            where |= dict.fromkeys(mine, file)
        (self.path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
        return self.path


@pytest.fixture
def copy(oracle: Callable[[str], Any], tmp_path: Path) -> Callable[[str], Copy]:
    return lambda shape: Copy(oracle(shape).path, tmp_path)


@pytest.mark.parametrize("prefix", ["model.language_model.", "language_model.model.", "language_model."])
def test_every_prefix_shards_vision_and_the_outer_config(
    oracle: Callable[[str], Any], copy: Callable[[str], Copy], prefix: str
) -> None:
    changed = copy("two")
    head = "language_model.lm_head.weight" if prefix == "language_model.model." else "lm_head.weight"
    renamed = {name.replace("model.", prefix, 1): t for name, t in changed.tensors.items() if name != "lm_head.weight"}
    renamed |= {head: changed.tensors["lm_head.weight"], "model.visual.pos_embed.weight": torch.ones(3)}
    changed.tensors = renamed
    text = changed.config | {"tie_word_embeddings": None}
    changed.config = {"model_type": "qwen3_5", "text_config": text, "tie_word_embeddings": False}
    found = load(changed.write(shards=3))
    assert_equal_weights(found, load(oracle("two").path))
    assert found.skipped == ("model.visual.pos_embed.weight",)


def test_tying_comes_from_the_files_if_the_config_is_silent(copy: Callable[[str], Copy]) -> None:
    changed = copy("two")
    changed.config.pop("tie_word_embeddings")
    assert load(changed.write()).config.tie_word_embeddings is False
    changed.tensors.pop("lm_head.weight")
    found = load(changed.write())
    assert found.config.tie_word_embeddings is True and found.model.head is found.model.embed


def test_a_tied_head_that_is_stored_anyway_is_skipped(copy: Callable[[str], Copy]) -> None:
    changed = copy("one")
    changed.tensors["lm_head.weight"] = changed.tensors["model.embed_tokens.weight"].clone()
    assert load(changed.write()).skipped == ("lm_head.weight",)


def draft_block(changed: Copy) -> dict[str, Tensor]:
    """What a checkpoint with a draft block of one layer has besides, at random."""
    h = changed.config["hidden_size"]
    layer = {
        name.replace("model.layers.3.", "mtp.layers.0."): torch.randn_like(t)
        for name, t in changed.tensors.items()
        if name.startswith("model.layers.3.")
    }
    norms = {f"mtp.{name}.weight": torch.randn(h) for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")}
    return layer | norms | {"mtp.fc.weight": torch.randn(h, 2 * h)}


def test_the_draft_block_is_neither_loaded_nor_planned_for(copy: Callable[[str], Copy]) -> None:
    """A checkpoint with it and one without make the same engine: weights, plan, fingerprint, tokens."""
    changed, seen = copy("one"), []
    without = dict(changed.tensors)
    changed.config["mtp_num_hidden_layers"] = 1
    for drafts in ({}, draft_block(changed), draft_block(changed)):
        changed.tensors = without | drafts
        path, ctx = changed.write(), ExecContext("cpu")
        llm = HybridLLM.load(path, ctx, max_positions=100)
        assert set(llm.loaded.skipped) == drafts.keys()
        llm.append([1, 2, 3])
        plans = [needed_bytes(path, "float32", 100, packed=packed) for packed in (False, True)]
        held = {buffer.name: buffer.nbytes for buffer in ctx.buffers("llm", Role.WEIGHT)}
        seen.append((llm.fingerprint, plans, held, llm.decode(8, Sampling.greedy())))
    assert seen[0] == seen[1] == seen[2]
    assert sum(seen[0][2].values()) == seen[0][1][0] - model_bytes(llm.config, "float32", 100, most=0)


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
def test_decay_and_gated_norm_keep_every_bit_of_what_is_stored(
    copy: Callable[[str], Copy], stored: torch.dtype
) -> None:
    changed = copy("one")
    for name in changed.tensors:
        small = name.endswith(("A_log", "linear_attn.norm.weight"))
        changed.tensors[name] = changed.tensors[name].to(stored if small else torch.bfloat16)
    found = load(changed.write(), torch.bfloat16)
    mixer: Any = found.model.layers[0].mixer
    expected = -changed.tensors["model.layers.0.linear_attn.A_log"].float().exp()
    assert mixer.decay.dtype == torch.float32 and torch.equal(mixer.decay, expected)
    assert torch.equal(mixer.norm, changed.tensors["model.layers.0.linear_attn.norm.weight"].float())
    assert mixer.qkvz.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("edit", "name"),
    [
        (lambda t: t.pop("model.norm.weight"), r"lacks model\.norm\.weight"),
        (lambda t: t.update({"model.layers.9.mlp.up_proj.weight": torch.ones(2)}), r"takes model\.layers\.9"),
        (lambda t: t.update({"model.norm.weight": torch.ones(7)}), r"model\.norm\.weight: shape"),
        (
            lambda t: t.update({"model.layers.0.mlp.up_proj.weight": torch.ones(80, 47)}),
            r"layers\.0\.mlp\.up_proj\.weight: shape",
        ),
        (
            lambda t: t.update({"model.layers.0.mlp.up_proj.weight": torch.ones(80, 48, dtype=torch.int32)}),
            r"layers\.0\.mlp\.up_proj\.weight: dtype",
        ),
        (
            lambda t: t.update({"model.layers.0.mlp.up_proj.weight": torch.ones(80, 48).to(torch.float8_e4m3fn)}),
            r"up_proj\.weight is quantised \(fp8\) but .*scale_inv is missing",
        ),
        (
            lambda t: t.update({"model.layers.0.linear_attn.in_proj_qkvz.weight": torch.ones(4)}),
            r"takes model\.layers\.0\.linear_attn\.in_proj_qkvz",
        ),
        (lambda t: t.pop("model.embed_tokens.weight"), r"no embed_tokens\.weight"),
        (lambda t: t.update({"model.layers.0.linear_attn.A_log": torch.ones(2, dtype=torch.int64)}), "A_log: dtype"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    copy: Callable[[str], Copy], edit: Callable[[dict[str, Tensor]], Any], name: str
) -> None:
    changed = copy("one")
    edit(changed.tensors)
    with pytest.raises(CheckpointError, match=name):
        load(changed.write())


def to_fp8(changed: Copy, block: int) -> dict[str, Tensor]:
    """Quantise in place; returns the dequantised reference."""
    reference = dict(changed.tensors)
    for name, tensor in list(changed.tensors.items()):
        if name.endswith(LARGE) and "in_proj_a" not in name and "in_proj_b" not in name:
            rows, columns = (-(-size // block) for size in tensor.shape)
            scale = torch.ones(rows, columns)
            for i in range(rows):
                for j in range(columns):
                    part = tensor[i * block : (i + 1) * block, j * block : (j + 1) * block]
                    scale[i, j] = part.abs().max() / 448
            scale = scale.bfloat16()
            wide = scale.float().repeat_interleave(block, 0)[: tensor.shape[0]]
            wide = wide.repeat_interleave(block, 1)[:, : tensor.shape[1]]
            values = (tensor / wide).to(torch.float8_e4m3fn)
            changed.tensors |= {name: values, name + "_scale_inv": scale}
            reference[name] = values.float() * wide
    changed.config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [block, block], "fmt": "e4m3"}
    return reference


def to_int4(changed: Copy, group: int) -> dict[str, Tensor]:
    reference = dict(changed.tensors)
    for name, tensor in list(changed.tensors.items()):
        if name.endswith(LARGE):
            out, inner = tensor.shape
            grouped = tensor.unflatten(1, (inner // group, group))
            scale = (grouped.abs().amax(-1) / 7).bfloat16()
            values = (grouped / scale.float()[..., None]).round().clamp(-8, 7)
            reference[name] = (values * scale.float()[..., None]).flatten(1)
            nibbles = (values.flatten(1).long() + 8).unflatten(1, (inner // 8, 8))
            packed = sum(nibbles[..., i] << (4 * i) for i in range(8))
            packed = torch.where(packed >= 2**31, packed - 2**32, packed).int()
            stem = name.removesuffix("weight")
            changed.tensors.pop(name)
            changed.tensors |= {
                stem + "weight_packed": packed,
                stem + "weight_scale": scale,
                stem + "weight_shape": torch.tensor([out, inner]),
            }
    weights = {"num_bits": 4, "type": "int", "group_size": group, "symmetric": True}
    changed.config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": weights}},
    }
    return reference


@pytest.mark.parametrize("packed", [False, True], ids=["unpacked", "packed"])
@pytest.mark.parametrize(("form", "size"), [("fp8", 16), ("fp8", 32), ("int4", 16)])
def test_quantised_files_equal_the_dequantised_reference(
    copy: Callable[[str], Copy], tmp_path_factory: pytest.TempPathFactory, form: str, size: int, packed: bool
) -> None:
    changed = copy("two")
    reference = (to_fp8 if form == "fp8" else to_int4)(changed, size)
    found = load(changed.write(), packed=packed)
    plain = copy("two")
    plain.tensors, plain.path = reference, tmp_path_factory.mktemp("plain")
    expected = load(plain.write())
    assert_equal_weights(found, expected)
    kinds = [type(found.model.layers[0].gate_up).__name__, type(found.model.layers[0].down).__name__]
    small = "Fp8Weight" if form == "fp8" else "Int4Weight"
    joined = "Tensor" if size == 32 else small  # 80 rows of gate do not end at a 32-row block, so up cannot follow
    assert kinds == ([joined, small] if packed else ["Tensor", "Tensor"])


@pytest.mark.slow
def test_a_packed_model_talks_like_its_unpacked_self(copy: Callable[[str], Copy]) -> None:
    changed = copy("two")
    to_int4(changed, 16)
    path, replies = changed.write(), []
    for packed in (False, True):
        llm = HybridLLM.load(path, ExecContext("cpu"), max_positions=100, packed=packed)
        llm.append(list(range(40)))
        replies.append(llm.decode(10, Sampling.greedy()))
    assert replies[0] == replies[1]


def test_a_packed_models_memory_plan_covers_what_it_declares(copy: Callable[[str], Copy]) -> None:
    changed = copy("two")
    to_int4(changed, 16)
    path, ctx = changed.write(), ExecContext("cpu")
    HybridLLM.load(path, ctx, max_positions=100, packed=True, capture=False)
    declared = sum(buffer.nbytes for buffer in ctx.buffers("llm"))
    planned = needed_bytes(path, "float32", 100, packed=True)
    assert declared <= planned < needed_bytes(path, "float32", 100)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8", "int4"])
@pytest.mark.parametrize("publish", [lambda changed: to_fp8(changed, 32), lambda changed: to_int4(changed, 16)])
def test_the_plan_counts_what_is_published_packed_as_it_stays(
    copy: Callable[[str], Copy], dtype: str, publish: Callable[[Copy], Any]
) -> None:
    """Whatever else is made of the rest: eight published bits do not become four."""
    changed = copy("wide")
    publish(changed)
    path, ctx = changed.write(), ExecContext("cpu")
    loaded = load_weights(path, ctx, torch.bfloat16, packed=True, made=MADE.get(dtype))
    weights = sum(buffer.nbytes for buffer in ctx.buffers("llm"))
    beside = model_bytes(loaded.config, dtype, 100, most=0, device="cuda")
    assert weights <= needed_bytes(path, dtype, 100, packed=True) - beside


def repacked(value: Any, bits: int) -> Tensor:
    """What packing leaves of a matrix."""
    return PanelWeight(*pack_panels(value, FORMS[bits]), value.shape).unpack(torch.float32)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("shape", ["two", "three"])
def test_matrices_packed_while_loading_are_those_packed_whole(
    oracle: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, shape: str, bits: int
) -> None:
    monkeypatch.setattr("capsules.weights._STRIP_VALUES", 16 * 48)  # a panel at a time
    plain, found = load(oracle(shape).path).model, load(oracle(shape).path, bits=bits).model
    assert torch.equal(found.embed.unpack(torch.float32), repacked(plain.embed, 8))  # type: ignore[union-attr]
    for ours, theirs in zip(found.layers, plain.layers, strict=True):
        for name, value in vars(theirs.mixer).items() | {("gate_up", theirs.gate_up), ("down", theirs.down)}:
            held = getattr(ours, name, None) if name in ("gate_up", "down") else getattr(ours.mixer, name)
            if isinstance(held, PanelWeight):
                assert torch.equal(held.unpack(torch.float32), repacked(value, bits))
            else:  # 104 rows do not end at a panel's edge
                assert torch.equal(held, value) and (name in ("qkvz", "ba") or value.dim() == 1 or name == "conv")
        assert isinstance(ours.gate_up, PanelWeight) and ours.gate_up.bits == bits
        assert shape == "three" or isinstance(getattr(ours.mixer, "qkvz", ours.gate_up), PanelWeight)


@pytest.mark.parametrize(("form", "bits"), [("fp8", 8), ("int4", 8), ("int4", 4)])
def test_quantised_files_are_packed_anew(copy: Callable[[str], Copy], form: str, bits: int) -> None:
    """Published four bits lose nothing: they stay four, also where eight are asked for."""
    changed = copy("wide")
    reference = (to_fp8 if form == "fp8" else to_int4)(changed, 32)
    found, name = load(changed.write(), bits=bits), "model.layers.0.mlp.down_proj.weight"
    down: Any = found.model.layers[0].down
    expected = reference[name] if form == "int4" else repacked(reference[name], bits)
    assert isinstance(down, PanelWeight) and down.bits == (4 if form == "int4" else 8)
    assert torch.equal(down.unpack(torch.float32), expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_a_model_packed_while_loading_talks_like_its_unpacked_self(
    oracle: Callable[[str], Any], copy: Callable[[str], Copy], kernel_folder: Path, dtype: str
) -> None:
    changed, path = copy("wide"), oracle("wide").path
    for name, value in changed.tensors.items():
        if value.dim() == 2 and "in_proj_a" not in name and "in_proj_b" not in name:
            changed.tensors[name] = repacked(value, 8 if "embed" in name or "lm_head" in name else BITS[dtype])
    unpacked, ids = changed.write(), list(range(100))

    def logits(place: Path, form: str, folder: Path | None = None) -> Tensor:
        llm = HybridLLM.load(place, ExecContext("cpu", folder), form, max_positions=200)
        return torch.stack([llm.append(ids), *(llm.append([token]) for token in ids[:20])])

    exact = logits(unpacked, "float32")

    def error(found: Tensor) -> float:
        return float((found - exact).norm() / exact.norm())

    rounded, packing = error(logits(unpacked, "bfloat16")), error(logits(path, "float32"))
    plain, kernels = error(logits(path, dtype)), error(logits(path, dtype, kernel_folder))
    print(f"bfloat16 {rounded:.4f}, {dtype} {plain:.4f}, by kernels {kernels:.4f}, lost by packing {packing:.4f}")
    assert plain < rounded * 1.1
    assert kernels < packing * 1.3  # inputs in eight bits cost about what the weights in eight bits did


def made_again(value: Any, form: str) -> Tensor:
    """What making a matrix "fp8" or "int4" leaves of it."""
    if form == "fp8":
        return unpack_fp8(*quantise_fp8(value, FP8_BLOCK), FP8_BLOCK)
    return unpack_int4(*quantise_int4(value))


@pytest.mark.parametrize("form", ["fp8", "int4"])
@pytest.mark.parametrize("shape", ["two", "wide"])
def test_matrices_made_for_a_gpu_while_loading_are_those_made_whole(
    oracle: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, shape: str, form: str
) -> None:
    monkeypatch.setattr("capsules.weights._STRIP_VALUES", 32 * 48)  # a block's height at a time
    plain, found = load(oracle(shape).path).model, load(oracle(shape).path, made=form).model
    kinds = set()
    for ours, theirs in zip(found.layers, plain.layers, strict=True):
        mixers = ((name, getattr(ours.mixer, name), value) for name, value in vars(theirs.mixer).items())
        for name, held, value in [*mixers, ("gate_up", ours.gate_up, theirs.gate_up), ("down", ours.down, theirs.down)]:
            if isinstance(held, Tensor):
                assert torch.equal(held, value)
            else:
                kinds.add(kind := {Fp8Weight: "fp8", Int4Weight: "int4"}[type(held)])
                assert name != "ba" and torch.equal(held.unpack(torch.float32), made_again(value, kind))
    assert form in kinds and (form == "fp8" or isinstance(found.embed, Fp8Weight))


def test_published_four_bits_stay_as_they_are_beside_matrices_that_are_made(copy: Callable[[str], Copy]) -> None:
    changed = copy("wide")
    to_int4(changed, 16)
    path = changed.write()
    published, found = load(path, packed=True), load(path, packed=True, made="fp8")
    assert_equal_weights(found, published)
    assert isinstance(found.model.layers[0].down, Int4Weight)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["fp8", "int4"])
def test_a_model_made_for_a_gpu_says_what_its_unpacked_self_says(
    oracle: Callable[[str], Any], copy: Callable[[str], Copy], form: str
) -> None:
    """Bit for bit: on a processor both sides are torch's product with the very same matrix."""
    changed, ids = copy("wide"), list(range(100))
    for name, value in changed.tensors.items():
        wide = "embed" in name or "lm_head" in name
        if value.dim() == 2 and "in_proj_a" not in name and "in_proj_b" not in name and not (wide and form == "fp8"):
            changed.tensors[name] = made_again(value, "fp8" if wide else form)

    def logits(path: Path, made: str | None) -> Tensor:
        ctx = ExecContext("cpu")
        options = LLMOptions("bfloat16", max_positions=200)
        llm = HybridLLM(ctx, load_weights(path, ctx, torch.bfloat16, made=made), options, None)
        llm.warm()
        return torch.stack([llm.append(ids), *(llm.append([token]) for token in ids[:20])])

    assert torch.equal(logits(oracle("wide").path, form), logits(changed.write(), None))


@pytest.mark.parametrize("dtype", ["float8", "int4"])
def test_the_plan_of_a_model_made_for_a_gpu_is_what_it_declares(oracle: Callable[[str], Any], dtype: str) -> None:
    for shape in ("two", "three"):
        ctx = ExecContext("cpu")
        loaded = load_weights(oracle(shape).path, ctx, torch.bfloat16, made=MADE[dtype])
        HybridLLM(ctx, loaded, LLMOptions("bfloat16", 100), None)
        declared = sum(buffer.nbytes for buffer in ctx.buffers("llm"))
        assert model_bytes(loaded.config, dtype, 100, checkpoints=0, device="cuda") == declared


def test_eight_bits_of_a_processor_are_refused_on_a_gpu() -> None:
    with pytest.raises(StateError, match=r"int8 on cuda.*take float8"):
        LLMOptions("int8").forms_on(torch.device("cuda"))


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_the_plan_of_a_model_packed_while_loading_is_what_it_declares(
    oracle: Callable[[str], Any], dtype: str
) -> None:
    for shape in ("two", "three"):
        path, ctx = oracle(shape).path, ExecContext("cpu")
        llm = HybridLLM.load(path, ctx, dtype, max_positions=100, capture=False)
        declared = sum(buffer.nbytes for buffer in ctx.buffers("llm"))
        assert model_bytes(llm.config, dtype, 100, checkpoints=0) == declared


def test_a_quantised_file_without_its_description_is_refused(copy: Callable[[str], Copy]) -> None:
    changed = copy("two")
    to_int4(changed, 16)
    del changed.config["quantization_config"]
    with pytest.raises(CheckpointError, match=r"config\.json describes no quantisation"):
        load(changed.write())


def test_unpacking_is_the_formula() -> None:
    values = torch.randn(5, 7).to(torch.float8_e4m3fn)
    scale = torch.rand(2, 3)
    expected = torch.stack([values[i].float() * scale[i // 4].repeat_interleave(3)[:7] for i in range(5)])
    assert torch.equal(unpack_fp8(values, scale, (4, 3)), expected)
    packed = torch.tensor([[0x76543210, -0x01234568]], dtype=torch.int32)  # 0xFEDCBA98
    assert unpack_int4(packed, torch.tensor([[1.0, 10.0]])).tolist() == [
        [-8, -7, -6, -5, -4, -3, -2, -1, 0, 10, 20, 30, 40, 50, 60, 70]
    ]
