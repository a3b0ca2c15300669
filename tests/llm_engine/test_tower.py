"""The vision tower against transformers, its loader, and its steps one by one."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from capsules import ExecContext
from llm_engine import CheckpointError, ConfigError, HybridLLM, StateError
from llm_engine.eyes import CAPTURED
from llm_engine.footprint import needed_bytes
from llm_engine.pictures import SeenPicture
from llm_engine.pixels import FittedPicture, fit, patches
from llm_engine.vision_config import VisionConfig
from tests.llm_engine.conftest import EYES, PAD
from tests.llm_engine.test_pixels import family, photograph

pytestmark = pytest.mark.slow

SIZES = [(32, 32), (32, 320), (320, 32), (64, 96), (160, 224), (256, 256), (96, 480), (416, 288)]


def picture(height: int, width: int, seed: int = 0) -> FittedPicture:
    return fit(photograph(height, width, seed), 1024, 1 << 30)


def look(llm: HybridLLM, shown: FittedPicture) -> SeenPicture:
    assert llm.eyes is not None
    work = llm.eyes.look(shown)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def looked_at(reference: Any, shown: FittedPicture) -> Tensor:
    seen = patches(torch.from_numpy(shown.pixels)).view(-1, 3, 1, 256).expand(-1, 3, 2, 256).flatten(1)
    grid = torch.tensor([[1, 2 * shown.grid.rows, 2 * shown.grid.columns]])
    with torch.no_grad():
        return reference.model.visual(seen.to(reference.dtype), grid).pooler_output.float()


@pytest.mark.parametrize("shape", EYES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_rows_are_the_oracles(
    oracle: Callable[[str], Any], engine: Callable[..., Any], shape: str, size: tuple[int, int]
) -> None:
    """GELU by tanh for erf, or the reverse, would be 1e-4 of the largest output."""
    shown = picture(*size)
    expected = looked_at(oracle(shape).model, shown)
    seen = look(engine(shape), shown)
    assert seen.grid == shown.grid
    assert float((seen.rows - expected).abs().max()) < 1e-5 * float(expected.abs().max())


def test_bfloat16_rows_are_as_close_to_float32_as_the_oracles(
    oracle: Callable[[str], Any], engine: Callable[..., Any]
) -> None:
    shown, reference = picture(160, 224), oracle("eyes 24").model
    exact = looked_at(reference, shown)
    rounded = looked_at(copy.deepcopy(reference).bfloat16(), shown)
    ours = look(engine("eyes 24", "bfloat16"), shown).rows.float()

    def error(rows: Tensor) -> float:
        return float((rows - exact).square().mean().sqrt() / exact.square().mean().sqrt())

    print(f"rms error to float32: ours {error(ours):.4f}, transformers {error(rounded):.4f}")
    assert error(ours) < 1.1 * error(rounded)


def test_the_same_picture_gives_the_same_bits_captured_replayed_and_forgotten(engine: Callable[..., Any]) -> None:
    llm = engine("eyes 12")
    shown = picture(160, 224)
    first = look(llm, shown).rows
    for side in range(CAPTURED + 1):
        look(llm, picture(64, 64 + 32 * side))
        assert torch.equal(look(llm, shown).rows, first)
    assert len(llm.eyes._sizes) <= CAPTURED


def test_two_who_look_at_once_get_what_they_would_alone(engine: Callable[..., Any]) -> None:
    llm = engine("eyes 12")
    shown = [picture(160, 224), picture(96, 128), picture(160, 224, seed=2)]
    alone = [look(llm, one).rows for one in shown]
    works = {index: llm.eyes.look(one) for index, one in enumerate([*shown, shown[0]])}
    found: dict[int, Tensor] = {}
    steps = 0
    while works:
        for index, work in list(works.items()):
            try:
                next(work)
                steps += 1
            except StopIteration as end:
                found[index] = end.value.rows
                del works[index]
    assert all(torch.equal(rows, alone[index % 3]) for index, rows in found.items())
    assert steps == 3 * llm.eyes.steps  # the same picture is looked at once


def test_what_is_given_up_goes_on_with_the_next_who_asks_or_makes_room(engine: Callable[..., Any]) -> None:
    llm = engine("eyes 12")
    shown, other = picture(160, 224), picture(96, 128)
    alone, others = look(llm, shown).rows, look(llm, other).rows
    begun = llm.eyes.look(shown)
    for _ in range(llm.eyes.steps - 1):
        next(begun)
    begun.close()
    again = llm.eyes.look(shown)
    next(again)
    with pytest.raises(StopIteration) as end:
        next(again)
    assert torch.equal(end.value.value.rows, alone)
    begun = llm.eyes.look(shown)
    next(begun)
    begun.close()
    assert torch.equal(look(llm, other).rows, others)
    assert torch.equal(look(llm, shown).rows, alone) and not llm.eyes._looks


def test_from_pixels_to_32_greedy_tokens(oracle: Callable[[str], Any], engine: Callable[..., Any]) -> None:
    """All of the road, the family's own image processor on the other side."""
    llm, reference = engine("eyes 32"), oracle("eyes 32").model
    sides, limits = [(75, 140), (200, 33), (64, 64)], (4096, 16_384)
    pixels = [photograph(*side) for side in sides]
    ids: list[int] = list(range(10))
    for index, one in enumerate(pixels):
        shown = fit(one, *limits)
        llm.pictures.put(shown.id, look(llm, shown))
        ids += [*[shown.id] * shown.grid.count, 7 + index, 9]
    theirs = family(*limits)(images=pixels, return_tensors="pt", input_data_format="channels_last")
    logits = llm.append(ids)
    reply = llm.decode(32)
    plain = torch.tensor([[i if i >= 0 else PAD for i in ids] + reply])
    reference.model.rope_deltas = None
    with torch.no_grad():
        expected = reference(plain, mm_token_type_ids=(plain == PAD).int(), use_cache=False, **theirs).logits[0]
    expected = expected[len(ids) - 1 :]
    assert float((logits.cpu() - expected[0]).abs().max()) < 1e-3
    assert reply == expected[:-1].argmax(-1).tolist()
    assert float((llm.logits.cpu() - expected[-1]).abs().max()) < 1e-3


def test_looking_leaves_no_trace_in_the_language_model(engine: Callable[..., Any]) -> None:
    llm = engine("eyes 12")
    llm.append(list(range(70)))
    before = dict(llm.snapshot().tensors)
    look(llm, picture(160, 224))
    after = llm.snapshot().tensors
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert not any(name.startswith("llm_eyes") for name in before)


# ------------------------------------------------------------------------------------------ loading


@pytest.fixture
def saved(oracle: Callable[[str], Any], tmp_path: Path) -> Path:
    """A checkpoint with a tower that a test may change."""
    return Path(shutil.copytree(oracle("eyes 12").path, tmp_path / "saved"))


def change(folder: Path, tensors: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    save_file(tensors(load_file(folder / "model.safetensors")), folder / "model.safetensors", metadata={"format": "pt"})


def configure(folder: Path, **vision: Any) -> None:
    raw = json.loads((folder / "config.json").read_text())
    raw["vision_config"] |= vision
    (folder / "config.json").write_text(json.dumps(raw))


def load(folder: Path, **options: Any) -> HybridLLM:
    return HybridLLM.load(folder, ExecContext("cpu"), max_positions=300, capture=False, **options)


@pytest.mark.parametrize("prefix", ["visual.", "vision_tower.", "language_model.visual."])
def test_every_prefix_is_read(saved: Path, prefix: str) -> None:
    expected = look(load(saved), picture(64, 96)).rows
    change(saved, lambda held: {name.replace("model.visual.", prefix): tensor for name, tensor in held.items()})
    assert torch.equal(look(load(saved), picture(64, 96)).rows, expected)


def test_a_kernel_with_its_channels_last_is_read(saved: Path) -> None:
    name = "model.visual.patch_embed.proj.weight"
    expected = look(load(saved), picture(64, 96)).rows
    change(saved, lambda held: held | {name: held[name].permute(0, 2, 3, 4, 1).contiguous()})
    assert torch.equal(look(load(saved), picture(64, 96)).rows, expected)
    change(saved, lambda held: held | {name: held[name].flatten(1)})
    with pytest.raises(CheckpointError, match="patch_embed"):
        load(saved)


def test_without_a_tower_or_without_the_wish_there_are_no_eyes(saved: Path) -> None:
    assert load(saved, eyes="off").eyes is None
    change(saved, lambda held: {name: t for name, t in held.items() if "visual" not in name})
    assert load(saved).eyes is None
    with pytest.raises(StateError, match="eyes is"):
        load(saved, eyes="on")


def test_quantised_and_missing_tensors_are_told_by_name(saved: Path) -> None:
    name = "model.visual.blocks.1.attn.qkv.weight"
    change(saved, lambda held: held | {name: held[name].to(torch.float8_e4m3fn)})
    with pytest.raises(CheckpointError, match=r"blocks\.1\.attn\.qkv\.weight is F8_E4M3.*eyes='off'"):
        load(saved)
    load(saved, eyes="off")
    change(saved, lambda held: {one: t for one, t in held.items() if one != name})
    with pytest.raises(CheckpointError, match=r"blocks\.1\.attn\.qkv\.weight"):
        load(saved)


@pytest.mark.parametrize(
    ("vision", "message"),
    [
        ({"deepstack_visual_indexes": [5, 11]}, "deepstack"), ({"patch_size": 14}, "patch_size"),
        ({"hidden_act": "gelu"}, "hidden_act"), ({"depth": 0}, "depth"), ({"num_position_embeddings": 35}, "square"),
        ({"windows": 3}, "unknown key 'windows'"), ({"out_hidden_size": 64}, "rows of 64"), ({"num_heads": 5}, "heads"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "yarn"),
    ],
)  # fmt: skip
def test_other_towers_are_refused_by_name_and_the_words_still_load(
    saved: Path, vision: dict[str, Any], message: str
) -> None:
    configure(saved, **vision)
    with pytest.raises(ConfigError, match=message):
        load(saved)
    load(saved, eyes="off")


def test_how_pictures_are_prepared_is_read_from_either_file(saved: Path) -> None:
    def limits() -> tuple[int, int]:
        config = VisionConfig.read(saved)
        assert config is not None
        return config.least_pixels, config.most_pixels

    assert limits() == (65_536, 16_777_216)
    size = {"shortest_edge": 16_384, "longest_edge": 32_768}
    (saved / "processor_config.json").write_text(json.dumps({"image_processor": {"size": size}}))
    assert limits() == (16_384, 32_768)
    (saved / "preprocessor_config.json").write_text(json.dumps({"size": {"longest_edge": 70_000}, "patch_size": 16}))
    assert limits() == (65_536, 70_000)
    (saved / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.48, 0.45, 0.4]}))
    with pytest.raises(ConfigError, match="image_mean"):
        limits()


def test_details_are_budgets_and_what_is_too_large_is_refused(engine: Callable[..., Any]) -> None:
    eyes = engine("eyes 12").eyes
    if engine("eyes 12")._ctx.device.type == "cpu":
        assert eyes.pixels_of("auto")[1] == 131_072 and eyes.pixels_of("low") == (65_536, 65_536)
    for detail in ("low", "auto", "high", "original"):
        for size in ((1, 200), (200, 1), (33, 2000), (2000, 65), (700, 900)):
            next(eyes.look(fit(photograph(*size), *eyes.pixels_of(detail))))
    with pytest.raises(StateError, match="detail"):
        eyes.pixels_of("huge")
    with pytest.raises(StateError, match="pixels"):
        next(eyes.look(FittedPicture(np.zeros((2048, 2048, 3), np.uint8), b"0" * 16)))


def test_the_plan_of_memory_holds_what_is_declared(saved: Path) -> None:
    ctx = ExecContext("cpu")
    llm = HybridLLM.load(saved, ctx, max_positions=300, capture=False)
    declared = sum(buffer.nbytes for buffer in ctx.buffers("llm_eyes"))
    seeing = needed_bytes(saved, "float32", 300, eyes="auto", device="cpu")
    assert declared < seeing - needed_bytes(saved, "float32", 300, eyes="off") < 2 * declared
    assert llm.eyes is not None
