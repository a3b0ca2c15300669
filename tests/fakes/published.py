"""Both models in their published shapes on the fake card: all that is captured, and nothing that takes memory."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from capsules import ExecContext, Role
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from llm_engine.config import LLMConfig
from llm_engine.graphs import EngineGraphs
from llm_engine.grid import capacity
from llm_engine.model import ModelWeights
from llm_engine.names import FP8_BLOCK, Kind, Part, made_as, parts
from llm_engine.state import EngineState
from tests.tts_engine.miniature import CODEC, PUBLISHED, config_json, miniature_tensors
from tts_engine.codec import Codec
from tts_engine.config import TTSConfig, parse_config
from tts_engine.dac_codec import dac_codec
from tts_engine.engine import _adopt
from tts_engine.graphs import Graphs, Shapes
from tts_engine.state import declare
from tts_engine.steps import Steps, make_tables
from tts_engine.weights import DTYPES, empty_weights, fused

QWEN = {  # hidden, intermediate, query heads, key heads, linear value heads
    "4B": (2560, 9216, 16, 4, 32), "9B": (4096, 12288, 16, 4, 32), "27B": (5120, 17408, 24, 4, 48),
}  # fmt: skip


def language_config(size: str, layers: tuple[str, ...]) -> LLMConfig:
    hidden, inner, heads, groups, values = QWEN[size]
    return LLMConfig(
        vocab_size=248320, hidden_size=hidden, intermediate_size=inner, num_attention_heads=heads,
        num_key_value_heads=groups, head_dim=256, linear_num_key_heads=16, linear_num_value_heads=values,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, layer_types=layers,
        tie_word_embeddings=hidden < 4096,
    )  # fmt: skip


def language_graphs(ctx: ExecContext, config: LLMConfig, stored: str, max_positions: int = 4096) -> EngineGraphs:
    """stored: "plain", "fp8", "int4" as published, or "made int4" as loading makes them."""
    made = {part.name: _weight(ctx, part, stored) for part in parts(config)}
    weights = ModelWeights.gather(config, made.__getitem__)
    rows = capacity(max_positions)
    state = EngineState.declare(ctx, config, torch.bfloat16, rows)
    return EngineGraphs(ctx, config, weights, state, rows, "llm")


def _weight(ctx: ExecContext, part: Part, stored: str) -> Any:
    def buffer(name: str, *shape: int, dtype: torch.dtype) -> Tensor:
        return ctx.buffer(f"llm.w.{name}", shape, dtype, role=Role.WEIGHT).tensor

    if part.kind is not Kind.MATRIX:
        return buffer(part.name, *part.shape, dtype=torch.float32)
    rows, columns = part.shape
    if part.name.endswith(".ba"):
        stored = "plain"
    if stored == "made int4":
        stored = made_as(part, "int4") or "plain"
        if part.name == "embed":
            assert stored == "fp8"
            scale = buffer("embed.scale", rows // 32, columns // 128, dtype=torch.float32)
            return Fp8Weight(buffer("embed", rows, columns, dtype=torch.float8_e4m3fn), scale, FP8_BLOCK)
    if stored == "fp8" and part.name != "embed":
        scale = buffer(f"{part.name}.scale", -(-rows // 128), -(-columns // 128), dtype=torch.float32)
        return Fp8Weight(buffer(part.name, rows, columns, dtype=torch.float8_e4m3fn), scale, (128, 128))
    if stored == "int4" and part.name != "embed":
        scale = buffer(f"{part.name}.scale", rows, columns // 128, dtype=torch.float32)
        return Int4Weight(buffer(part.name, rows, columns // 8, dtype=torch.int32), scale)
    return buffer(part.name, rows, columns, dtype=torch.bfloat16)


def published_voice(device: torch.device, layers: int = 2) -> tuple[TTSConfig, Codec]:
    shape = replace(PUBLISHED, layers=layers)
    tensors = miniature_tensors(PUBLISHED, 0)
    codec = {name.removeprefix(CODEC): t.to(device, torch.bfloat16) for name, t in tensors.items() if CODEC in name}
    return parse_config(config_json(shape)), dac_codec(codec, 8, device)


def voice_graphs(ctx: ExecContext, config: TTSConfig, codec: Codec, dtype: str, shapes: Shapes) -> Graphs:
    """Captures all of them."""
    state = declare(ctx, config, shapes.capacity, DTYPES[dtype], shapes.chunks[-1], max(shapes.windows))
    weights = empty_weights(config, ctx.device, dtype)
    opening = torch.zeros(1, config.backbone.hidden, dtype=DTYPES[dtype])
    tables = make_tables(config, shapes.capacity, DTYPES[dtype], ctx.device, opening)
    _adopt(ctx, "w", fused(weights, config))
    _adopt(ctx, "codec", codec.tensors)
    _adopt(ctx, "table", vars(tables))
    return Graphs(ctx, Steps(config, weights, tables, codec, state, 7), shapes, "a test")
