"""Folders in FP8, asymmetric int4, GPTQ and AWQ: every weight is what the format says, and four bits stay four."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from capsules import ExecContext
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.nn.panels import PanelWeight
from llm_engine import CheckpointError
from llm_engine.footprint import model_bytes, needed_bytes
from llm_engine.weights import LoadedWeights, load_weights
from tests.llm_engine.test_weights import LARGE, Copy, assert_equal_weights, load

GROUP = 32


@pytest.fixture
def copy(oracle: Callable[[str], Any], tmp_path: Path) -> Copy:
    return Copy(oracle("wide").path, tmp_path)


def large(changed: Copy) -> list[str]:
    return [name for name in changed.tensors if name.endswith(LARGE)]


def to_floats(changed: Copy, strategy: str) -> dict[str, Tensor]:
    """compressed-tensors' 8-bit floats, in place; returns the plain matrices."""
    plain = dict(changed.tensors)
    for name in large(changed):
        value = changed.tensors[name]
        peak = {
            "channel": value.abs().amax(1, keepdim=True), "tensor": value.abs().amax().view(1),
            "block": value.unflatten(1, (-1, 32)).unflatten(0, (-1, 32)).abs().amax((1, 3)),
        }[strategy]  # fmt: skip
        scale = (peak / 448).bfloat16()
        wide = scale.float()
        if strategy == "block":
            wide = wide.repeat_interleave(32, 0).repeat_interleave(32, 1)
        values = (value / wide).to(torch.float8_e4m3fn)
        stem = name.removesuffix("weight")
        changed.tensors |= {name: values, f"{stem}weight_scale": scale, f"{stem}input_scale": torch.ones(1)}
        plain[name] = values.float() * wide
    weights: dict[str, Any] = {"num_bits": 8, "type": "float", "strategy": strategy}
    if strategy == "block":
        weights["block_structure"] = [32, 32]
    changed.config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "float-quantized",
        "config_groups": {"group_0": {"weights": weights, "input_activations": {"dynamic": True}}},
    }  # fmt: skip
    return plain


def in_groups(value: Tensor, kind: torch.dtype, symmetric: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values 0 … 15 [O, I], scales and zero points [O, groups], and the plain matrix."""
    draw = torch.Generator().manual_seed(value.shape[0])
    tiles = value.unflatten(1, (-1, GROUP))
    zero = torch.randint(0, 16, tiles.shape[:2], generator=draw) if not symmetric else torch.full(tiles.shape[:2], 8)
    scale = (tiles.abs().amax(-1) / 7).to(kind)
    whole = (tiles / scale.float()[..., None] + zero[..., None]).round().clamp(0, 15)
    plain = ((whole - zero[..., None]) * scale.float()[..., None]).flatten(1)
    return whole.flatten(1).long(), scale, zero, plain


def words(values: Tensor, order: tuple[int, ...] = tuple(range(8))) -> Tensor:
    """[a, b] of 0 … 15 to [a, b / 8] int32; `order`: the value that stands in each four bits."""
    cut = values.long().unflatten(1, (-1, 8))
    packed = sum((cut[..., one] << (4 * place) for place, one in enumerate(order)), torch.zeros(()).long())
    return torch.where(packed >= 2**31, packed - 2**32, packed).int().contiguous()


def to_asymmetric(changed: Copy) -> dict[str, Tensor]:
    plain = dict(changed.tensors)
    for name in large(changed):
        whole, scale, zero, plain[name] = in_groups(changed.tensors.pop(name), torch.bfloat16)
        stem = name.removesuffix("weight")
        changed.tensors |= {
            f"{stem}weight_packed": words(whole), f"{stem}weight_scale": scale,
            f"{stem}weight_zero_point": words(zero.t()).t().contiguous(),
            f"{stem}weight_shape": torch.tensor(plain[name].shape),
        }  # fmt: skip
    weights = {"num_bits": 4, "type": "int", "group_size": GROUP, "symmetric": False, "actorder": "static"}
    changed.config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": weights}},
    }  # fmt: skip
    return plain


def to_gptq(changed: Copy, kind: torch.dtype = torch.float16, less: int = 1) -> dict[str, Tensor]:
    plain = dict(changed.tensors)
    for name in large(changed):
        whole, scale, zero, plain[name] = in_groups(changed.tensors.pop(name), kind, symmetric=True)
        stem = name.removesuffix("weight")
        changed.tensors |= {
            f"{stem}qweight": words(whole).t().contiguous(), f"{stem}scales": scale.t().contiguous(),
            f"{stem}qzeros": words(zero.t() - less), f"{stem}g_idx": torch.arange(whole.shape[1]).int() // GROUP,
        }  # fmt: skip
    changed.config["quantization_config"] = {
        "quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": True, "desc_act": False,
    }  # fmt: skip
    return plain


def to_awq(changed: Copy, kind: torch.dtype = torch.float16) -> dict[str, Tensor]:
    plain, order = dict(changed.tensors), (0, 2, 4, 6, 1, 3, 5, 7)
    for name in large(changed):
        whole, scale, zero, plain[name] = in_groups(changed.tensors.pop(name), kind)
        stem = name.removesuffix("weight")
        changed.tensors |= {
            f"{stem}qweight": words(whole.t(), order), f"{stem}scales": scale.t().contiguous(),
            f"{stem}qzeros": words(zero.t(), order),
        }  # fmt: skip
    changed.config["quantization_config"] = {
        "quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm",
    }  # fmt: skip
    return plain


def as_plain(changed: Copy, tensors: dict[str, Tensor], place: Path) -> LoadedWeights:
    config = {key: value for key, value in changed.config.items() if key != "quantization_config"}
    other = Copy.__new__(Copy)
    other.path, other.config, other.tensors = place, config, tensors
    return load(other.write())


FOUR: list[Callable[[Copy], dict[str, Tensor]]] = [to_asymmetric, to_gptq, to_awq]


@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
@pytest.mark.parametrize("strategy", ["channel", "tensor", "block"])
def test_floats_have_the_scales_of_their_strategy(
    copy: Copy, tmp_path_factory: pytest.TempPathFactory, strategy: str, packed: bool
) -> None:
    plain = to_floats(copy, strategy)
    found = load(copy.write(), packed=packed)
    assert_equal_weights(found, as_plain(copy, plain, tmp_path_factory.mktemp("plain")))
    assert isinstance(found.model.layers[0].down, Fp8Weight if packed else Tensor)


@pytest.mark.parametrize("publish", FOUR)
def test_four_bits_are_read_as_they_were_published(
    copy: Copy, tmp_path_factory: pytest.TempPathFactory, publish: Callable[[Copy], dict[str, Tensor]]
) -> None:
    plain = publish(copy)
    path = copy.write()
    expected = as_plain(copy, plain, tmp_path_factory.mktemp("plain"))
    assert_equal_weights(load(path), expected)
    for bits in (8, 4):
        down: Any = load(path, bits=bits).model.layers[0].down
        assert isinstance(down, PanelWeight) and down.bits == 4
        exact: Any = expected.model.layers[0].down
        if publish is to_asymmetric:  # its scales are bfloat16
            assert torch.equal(down.unpack(torch.float32), exact)
        else:
            assert float((down.unpack(torch.float32) - exact).norm() / exact.norm()) < 0.003


@pytest.mark.parametrize("made", [None, "fp8", "int4"])
@pytest.mark.parametrize("publish", FOUR)
def test_four_bits_stay_packed_for_a_gpu(
    copy: Copy, tmp_path_factory: pytest.TempPathFactory, publish: Callable[..., dict[str, Tensor]], made: str | None
) -> None:
    """With scales that bfloat16 holds: zero points are whole numbers, so nothing else is rounded."""
    plain = publish(copy) if publish is to_asymmetric else publish(copy, torch.bfloat16)
    path, ctx = copy.write(), ExecContext("cpu")
    found = load_weights(path, ctx, torch.bfloat16, packed=True, made=made)
    exact = as_plain(copy, plain, tmp_path_factory.mktemp("plain"))
    for ours, theirs in zip(found.model.layers, exact.model.layers, strict=True):
        for held, matrix in ((ours.down, theirs.down), (ours.gate_up, theirs.gate_up)):
            assert isinstance(held, Int4Weight) and held.scale.dtype == torch.bfloat16
            assert (held.shift is None) == (publish is to_gptq)
            assert torch.equal(held.unpack(torch.float32), matrix)
    dtype = {None: "bfloat16", "fp8": "float8", "int4": "int4"}[made]
    beside = model_bytes(found.config, dtype, 100, most=0, device="cuda")
    declared = sum(buffer.nbytes for buffer in ctx.buffers("llm"))
    planned = needed_bytes(path, dtype, 100, packed=True) - beside
    assert declared == planned if publish is not to_asymmetric else declared <= planned


def test_zero_points_of_either_version_of_gptq_are_eight(copy: Copy, tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = to_gptq(copy, less=0)
    assert_equal_weights(load(copy.write()), as_plain(copy, plain, tmp_path_factory.mktemp("plain")))


DOWN = "model.layers.0.mlp.down_proj."


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda t: t.pop(f"{DOWN}scales"), r"down_proj\.scales is missing"),
        (lambda t: t.update({f"{DOWN}qzeros": t[f"{DOWN}qzeros"] * 3}), "zero points differ from 8"),
        (lambda t: t.update({f"{DOWN}g_idx": t[f"{DOWN}g_idx"].flip(0)}), "desc_act"),
        (lambda t: t.update({f"{DOWN}scales": t[f"{DOWN}scales"][:, :-1].contiguous()}), r"scales: shape .* expected"),
        (lambda t: t.update({f"{DOWN}scales": t[f"{DOWN}scales"].double()}), "dtype F64"),
        (lambda t: t.update({f"x.{one}": t[DOWN + one].clone() for one in ("qweight", "qzeros", "scales")}), "takes x"),
    ],
)
def test_a_gptq_folder_that_contradicts_itself_is_refused(
    copy: Copy, edit: Callable[[dict[str, Tensor]], Any], said: str
) -> None:
    to_gptq(copy)
    edit(copy.tensors)
    with pytest.raises(CheckpointError, match=said):
        load(copy.write())
