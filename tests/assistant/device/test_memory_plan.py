"""The plan of a GPU's memory: its sums against what engines really declare, the published sizes, and its words."""

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
import torch

from assistant.app.config import GIB, PROFILES
from assistant.base.errors import AssistantError, SettingError
from assistant.device.execution import load_on
from assistant.device.memory_plan import LEAN_CHECKPOINTS, LEAN_VOICE_POSITIONS, WORKING_BYTES, Needs, plan
from capsules import ExecContext
from llm_engine import HybridLLM
from llm_engine import footprint as llm_footprint
from llm_engine.config import LLMConfig
from llm_engine.eyes import most_pixels
from llm_engine.names import published_shapes
from llm_engine.vision_config import VisionConfig
from llm_engine.vision_weights import tower_parts
from tests.tts_engine.miniature import PUBLISHED, config_json
from tts_engine import footprint as tts_footprint
from tts_engine.config import parse_config
from tts_engine.engine import HiggsTTS

ROOT = Path(__file__).parents[3]
CODEC_GB = 0.040 + 0.002  # decoder and codebooks, in float32; what encodes stays on the host
TEXT_GB = 0.778  # the voice's embedding of text, which stays there too
HIGGS_GB = 9.32  # as published, the copies of both embeddings that are not loaded included
EYES = VisionConfig.parse(
    {
        "depth": 24, "hidden_size": 1024, "num_heads": 16, "intermediate_size": 4096, "out_hidden_size": 2560,
        "num_position_embeddings": 2304,
    },
    {},
)  # fmt: skip
QWEN = {  # layers, hidden, intermediate, query and key heads, linear value heads, GB of bfloat16 weights
    "4B": (32, 2560, 9216, 16, 4, 32, 8.41), "9B": (32, 4096, 12288, 16, 4, 32, 17.91),
    "27B": (64, 5120, 17408, 24, 4, 48, 53.79), "35B-A3B": (40, 2048, 512, 16, 2, 32, 69.32),
}  # fmt: skip
EXPERTS = {"35B-A3B": {"num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512}}


def four_billion() -> LLMConfig:
    return LLMConfig(
        vocab_size=248320, hidden_size=2560, intermediate_size=9216, num_attention_heads=16, num_key_value_heads=4,
        head_dim=256, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128,
        linear_value_head_dim=128, linear_conv_kernel_dim=4, tie_word_embeddings=True,
        layer_types=("linear_attention", "linear_attention", "linear_attention", "full_attention") * 8,
    )  # fmt: skip


def test_the_language_models_plan_is_what_it_declares() -> None:
    path, ctx = ROOT / "llm_engine" / "tiny", ExecContext("cpu")
    llm = HybridLLM.load(path, ctx, max_positions=512, capture=False)
    held = llm_footprint.model_bytes(llm.config, "float32", 512, checkpoints=0)
    assert held == sum(buffer.nbytes for buffer in ctx.buffers("llm"))
    point = sum(b.nbytes for b in ctx.buffers("llm") if b.role == "state" and b.name != "llm.kv")
    assert llm_footprint.needed_bytes(path, "float32", 512) == held + 8 * point


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int4"])
def test_the_voices_plan_is_what_it_declares(dtype: str) -> None:
    path, ctx = ROOT / "tts_engine" / "tiny", ExecContext("cpu")
    HiggsTTS.load(path, ctx, dtype, max_positions=256)
    declared = sum(b.nbytes for b in ctx.buffers("tts") if not b.name.startswith("tts.table."))
    planned = tts_footprint.needed_bytes(path, dtype, 256)
    assert declared <= planned < 1.35 * declared, "what encodes is no buffer, and the windows here are shorter"


def published(size: str) -> LLMConfig:
    layers, hidden, inner, heads, groups, values, _ = QWEN[size]
    return LLMConfig(
        vocab_size=248320, hidden_size=hidden, intermediate_size=inner, num_attention_heads=heads,
        num_key_value_heads=groups, head_dim=256, linear_num_key_heads=16, linear_num_value_heads=values,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4,
        layer_types=("linear_attention",) * 3 * (layers // 4) + ("full_attention",) * (layers // 4),
        tie_word_embeddings=size == "4B", **EXPERTS.get(size, {}),
    )  # fmt: skip


@pytest.mark.parametrize("size", QWEN)
def test_a_plan_is_what_the_published_models_take(size: str) -> None:
    layers, _, _, _, groups, values, weights_gb = QWEN[size]
    recurrent = layers * 3 // 4 * values * 128 * 128 * 4
    kv = layers // 4 * 2 * 4160 * groups * 256 * 2
    llm = llm_footprint.model_bytes(published(size), "bfloat16", 4096)
    assert llm == pytest.approx(weights_gb * 1e9 + kv + 9 * recurrent, rel=0.005)


def test_desk_asks_for_what_both_models_take_in_bfloat16() -> None:
    voice = parse_config(config_json(replace(PUBLISHED, layers=36)))
    tts = tts_footprint.backbone_bytes(voice, "bfloat16", device="cuda")
    assert tts == pytest.approx(8.087e9 - TEXT_GB * 1e9 + 4352 * 144 * 1024, rel=0.002)
    llm = llm_footprint.model_bytes(published("4B"), "bfloat16", 4096)
    made = plan(PROFILES["desk"].gpu_bytes, Needs(llm, int(tts + CODEC_GB * 1e9)), 1 * GIB)
    assert made.room >= 0.98 * GIB, made.told


def needs(llm_dtype: str, tts_dtype: str, config: LLMConfig | None = None) -> Needs:
    """Of the 4B, with its eyes, or another size, and of the published voice on one GPU."""
    config, size = config or four_billion(), llm_footprint.model_bytes
    llm = size(config, llm_dtype, 4096, device="cuda")
    eyes = llm_footprint.eyes_bytes(EYES, torch.bfloat16, most_pixels(EYES, "cuda", 4096))
    spare, tts = llm - size(config, llm_dtype, 4096, LEAN_CHECKPOINTS, device="cuda"), 0
    if tts_dtype:
        voice = parse_config(config_json(replace(PUBLISHED, layers=36)))
        both = [tts_footprint.backbone_bytes(voice, tts_dtype, p, "cuda") for p in (None, LEAN_VOICE_POSITIONS)]
        tts, spare = int(both[0] + CODEC_GB * 1e9), spare + both[0] - both[1]
    return Needs(llm, tts, eyes, spare, packed=True)


@pytest.mark.parametrize(("name", "gib"), [("desk-8", 4.35), ("desk-12", 8.41), ("desk-16", 10.46)])
def test_a_card_holds_the_profile_of_its_size(name: str, gib: float) -> None:
    """A card never has all its memory free: the process's own context and a screen take up to one and a half GiB."""
    profile, card = PROFILES[name], int(name.partition("-")[2])
    wanted = needs(profile.dtype, profile.voice_dtype if profile.tts else "")
    assert (wanted.llm + wanted.tts + WORKING_BYTES["packed"]) / GIB == pytest.approx(gib, abs=0.02), "without eyes"
    assert wanted.eyes / GIB == pytest.approx(0.90, abs=0.02)
    assert gib + 0.3 < profile.gpu_bytes / GIB <= card - 1.5
    made = plan(int((card - 1.5) * GIB), wanted, GIB)
    assert made.eyes and not made.lean and made.room > GIB // 2, "a desktop's share taken off, it sees"
    assert not plan(profile.gpu_bytes, wanted, GIB).lean


@pytest.mark.parametrize(
    ("name", "size", "gib", "card"),
    [
        ("mind-9b", "9B", 7.41, 10), ("desk-9b", "9B", 11.48, 16), ("mind-27b", "27B", 18.03, 24),
        ("desk-27b", "27B", 22.10, 32), ("mind-35b", "35B-A3B", 20.55, 24),
    ],
)  # fmt: skip
def test_larger_models_ask_for_what_they_need_and_a_little_more(name: str, size: str, gib: float, card: int) -> None:
    profile = PROFILES[name]
    wanted = needs(profile.dtype, profile.voice_dtype if profile.tts else "", published(size))
    assert (wanted.llm + wanted.tts + WORKING_BYTES["packed"]) / GIB == pytest.approx(gib, abs=0.02), "without eyes"
    assert gib + 0.3 <= profile.gpu_bytes / GIB < gib + 1.3 and profile.gpu_bytes / GIB <= card - 1.5
    assert not plan(profile.gpu_bytes, wanted, GIB).lean


def test_eight_gigabytes_hold_both_models_in_four_bits() -> None:
    wanted = needs("int4", "int4")
    assert (wanted.llm + wanted.tts - wanted.spare + WORKING_BYTES["packed"]) / GIB == pytest.approx(6.45, abs=0.02)
    made = plan(13 * GIB // 2, wanted, GIB)
    assert made.lean and not made.eyes and made.room > 0
    assert "0.5 GiB less by fewer checkpoints and a shorter context of the voice" in made.told
    with pytest.raises(SettingError, match=r"do not fit the GPU"):
        plan(6 * GIB, wanted, GIB)


def test_what_is_fetched_for_a_desk_is_both_models_as_they_are_published() -> None:
    config = replace(four_billion(), mtp_layers=1)
    values = sum(map(prod, published_shapes(config, draft=True).values())) + sum(
        prod(part.shape) for part in tower_parts(EYES)
    )
    for name in ("laptop-4b", "desk-8", "desk-12", "desk-16", "desk"):
        profile = PROFILES[name]
        rest = profile.download_gb - 2 * values / 1e9 - (HIGGS_GB if profile.tts else 0)
        assert 0 < rest < 0.1, "the tokenizer"


def test_the_plan_is_told_and_gives_capsules_what_is_left() -> None:
    made = plan(23 * GIB, Needs(9 * GIB, 9 * GIB), 1 * GIB)
    assert made.told == (
        "23.0 GiB are free on the GPU; needed: the language model 9.0 GiB, the voice 9.0 GiB, work 2.3 GiB; up to 1.0 "
        "GiB for capsules"
    )
    assert made.room == 1 * GIB and made.eyes
    assert plan(18 * GIB + WORKING_BYTES["plain"] + 5, Needs(9 * GIB, 9 * GIB), 1 * GIB).room == 5


def test_eyes_are_left_out_where_they_alone_do_not_fit() -> None:
    assert plan(22 * GIB, Needs(9 * GIB, 9 * GIB, GIB), 1 * GIB).told.startswith(
        "22.0 GiB are free on the GPU; needed: the language model 9.0 GiB, its eyes 1.0 GiB, the voice 9.0 GiB"
    )
    made = plan(18 * GIB + WORKING_BYTES["plain"] + GIB // 2, Needs(9 * GIB, 9 * GIB, GIB), 1 * GIB)
    assert made.room == GIB // 2 and not made.eyes
    assert made.told.endswith("for capsules; its eyes (1.0 GiB) have no room and are left out")
    alone = plan(12 * GIB, Needs(9 * GIB, 0), 1 * GIB)
    assert "voice" not in alone.told, "it is elsewhere"


def test_models_that_do_not_fit_are_refused_before_loading() -> None:
    with pytest.raises(
        SettingError, match=r"do not fit the GPU: 15\.5 GiB are free .* 4\.8 GiB too much; .* --device cpu"
    ):
        plan(15 * GIB + GIB // 2, Needs(9 * GIB, 9 * GIB), 1 * GIB)


def test_a_gpu_that_fills_up_while_loading_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(size: int) -> None:
        raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size}")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (GIB, 24 * GIB))
    with pytest.raises(AssistantError, match=r"memory is full \(1\.0 of 24\.0 GiB free\).*--max-positions"):
        load_on(ExecContext("cpu"), load, 3)
    assert load_on(ExecContext("cpu"), max, 3, 4) == 4


@pytest.mark.parametrize(
    ("name", "hidden", "inner", "tower"),
    [("laptop", 1024, 3584, (12, 768, 3072)), ("laptop-2b", 2048, 6144, (24, 1024, 4096))],
)
def test_a_laptop_has_room_for_twice_its_language_model(
    name: str, hidden: int, inner: int, tower: tuple[int, int, int]
) -> None:
    """The rest is the libraries, the shipped voice, ears and what loading passes through. What is told of the download
    is that of its tensors, draft block and eyes included."""
    config = LLMConfig(
        vocab_size=248320, hidden_size=hidden, intermediate_size=inner, num_attention_heads=8, num_key_value_heads=2,
        head_dim=256, linear_num_key_heads=16, linear_num_value_heads=16, linear_key_head_dim=128,
        linear_value_head_dim=128, linear_conv_kernel_dim=4, tie_word_embeddings=True,
        layer_types=("linear_attention", "linear_attention", "linear_attention", "full_attention") * 6, mtp_layers=1,
    )  # fmt: skip
    depth, width, wide = tower
    eyes = {"depth": depth, "hidden_size": width, "num_heads": width // 64, "intermediate_size": wide}
    seeing = VisionConfig.parse(eyes | {"out_hidden_size": hidden, "num_position_embeddings": 2304}, {})
    values = sum(map(prod, published_shapes(config, draft=True).values()))
    values += sum(prod(part.shape) for part in tower_parts(seeing))
    assert 0 < PROFILES[name].download_gb - 2 * values / 1e9 < 0.1  # what is left is the tokenizer's
    assert 2 * llm_footprint.model_bytes(config, PROFILES[name].dtype, 4096) < PROFILES[name].host_bytes
    assert 2 * llm_footprint.model_bytes(published("4B"), "int4", 4096) < PROFILES["laptop-4b"].host_bytes
