"""All that is captured on a GPU, run on a fake one in the published shapes: what a card refuses is refused here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from capsules import ExecContext, Role, ShapeKey
from capsules.errors import CaptureError
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.weights import DTYPES as STORED
from capsules.weights import catalogue
from llm_engine.config import LLMConfig
from llm_engine.graphs import EngineGraphs
from llm_engine.grid import capacity
from llm_engine.model import ModelWeights
from llm_engine.names import FP8_BLOCK, Kind, Part, made_as, parts
from llm_engine.state import EngineState
from tests.fakes.cuda import fake_cuda
from tests.tts_engine.miniature import CODEC, PUBLISHED, config_json, miniature_tensors
from tts_engine.codec import Codec, read_codec_config
from tts_engine.config import TTSConfig, load_config, parse_config
from tts_engine.dac_codec import dac_codec
from tts_engine.engine import _adopt
from tts_engine.graphs import Graphs, Shapes, plan_shapes
from tts_engine.istft_codec import CausalCodec, CodecShape
from tts_engine.state import declare
from tts_engine.steps import Steps, make_tables
from tts_engine.weights import CODEC_PREFIX, DTYPES, empty_weights, fused

pytestmark = pytest.mark.slow

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")
TINY_VOICE = Path(__file__).parents[2] / "tts_engine" / "tiny"
QWEN = {  # hidden, intermediate, query heads, key heads, linear value heads
    "4B": (2560, 9216, 16, 4, 32), "9B": (4096, 12288, 16, 4, 32), "27B": (5120, 17408, 24, 4, 48),
}  # fmt: skip


@pytest.mark.parametrize(("size", "stored"), [("4B", "plain"), ("4B", "made int4"), ("9B", "fp8"), ("27B", "int4")])
def test_every_variant_of_the_language_model_can_be_captured(
    size: str, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (Fp8Weight, Int4Weight):  # a step that made the plain matrix would move twenty times the bytes
        monkeypatch.setattr(kind, "unpack", None)
    hidden, inner, heads, groups, values = QWEN[size]
    config = LLMConfig(
        vocab_size=248320, hidden_size=hidden, intermediate_size=inner, num_attention_heads=heads,
        num_key_value_heads=groups, head_dim=256, linear_num_key_heads=16, linear_num_value_heads=values,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4,
        layer_types=("linear_attention", "full_attention"), tie_word_embeddings=hidden < 4096,
    )  # fmt: skip
    with fake_cuda() as ctx:
        made = {part.name: _weight(ctx, part, stored) for part in parts(config)}
        weights = ModelWeights.gather(config, made.__getitem__)
        rows = capacity(1000)
        state = EngineState.declare(ctx, config, torch.bfloat16, rows)
        graphs = EngineGraphs(ctx, config, weights, state, rows, "llm")
        graphs.capture_all()
        touched = graphs._decode.touched(ShapeKey(kv=256))
    assert {"llm.recurrent", "llm.window", "llm.kv", "llm.position", "llm.logits"} <= {b.name for b in touched}


def _weight(ctx: ExecContext, part: Part, stored: str) -> Any:
    def buffer(name: str, *shape: int, dtype: torch.dtype) -> Tensor:
        return ctx.buffer(f"llm.w.{name}", shape, dtype, role=Role.WEIGHT).tensor

    if part.kind is not Kind.MATRIX:
        return buffer(part.name, *part.shape, dtype=torch.float32)
    rows, columns = part.shape
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


def _published(device: torch.device) -> tuple[TTSConfig, Codec]:
    tensors = miniature_tensors(PUBLISHED, 0)
    codec = {name.removeprefix(CODEC): t.to(device, torch.bfloat16) for name, t in tensors.items() if CODEC in name}
    return parse_config(config_json(PUBLISHED)), dac_codec(codec, 8, device)


def _shipped(device: torch.device) -> tuple[TTSConfig, Codec]:
    tensors = {
        name.removeprefix(CODEC_PREFIX): torch.zeros(entry.shape, dtype=STORED[entry.dtype])
        for name, entry in catalogue(TINY_VOICE).items()
        if name.startswith(CODEC_PREFIX)
    }
    with device:
        codec = CausalCodec(CodecShape.parse(read_codec_config(TINY_VOICE)), tensors)
    return load_config(TINY_VOICE), codec


@pytest.mark.parametrize(
    ("voice", "dtype"),
    [(_published, "bfloat16"), (_published, "float8"), (_shipped, "float32")],
    ids=["published", "published float8", "shipped"],
)
def test_every_variant_of_the_voice_can_be_captured(
    voice: Callable[[torch.device], tuple[TTSConfig, Codec]], dtype: str
) -> None:
    with fake_cuda() as ctx:
        config, codec = voice(ctx.device)
        every = plan_shapes(4096, codec.left_frames, codec.right_frames)
        shapes = Shapes(every.buckets[-1:], every.chunks, (min(every.windows), max(every.windows)))
        state = declare(ctx, config, shapes.capacity, DTYPES[dtype], shapes.chunks[-1], max(shapes.windows))
        weights = empty_weights(config, ctx.device, dtype)
        tables = make_tables(config, shapes.capacity, DTYPES[dtype], ctx.device)
        _adopt(ctx, "w", fused(weights, config))
        _adopt(ctx, "codec", codec.tensors)
        _adopt(ctx, "table", vars(tables))
        graphs = Graphs(ctx, Steps(config, weights, tables, codec, state, 7), shapes, "a test")
        touched = graphs._decode.touched(ShapeKey(tokens=1, kv=shapes.capacity))
    assert {"tts.kv", "tts.rows", "tts.track", "tts.row", "tts.position", "tts.out"} <= {b.name for b in touched}


REFUSED: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "host tensor": (lambda x: x.copy_(torch.zeros(4)), "hands aten::copy_ a tensor on the processor"),
    "host scalar": (lambda x: x.copy_(torch.zeros(())), "hands aten::copy_ a tensor on the processor"),
    "host index": (lambda x: x[torch.arange(2)], "hands aten::index a tensor on the processor"),
    "move": (lambda x: x + torch.zeros(4).to(x.device), "hands aten::_to_copy a tensor on the processor"),
    "cpu": (lambda x: x.cpu(), "reads a tensor on the host"),
    "literal": (lambda x: x + torch.tensor([1.0] * 4, device=x.device), "host data"),
    "list index": (lambda x: x[[0, 2]], "host data"),
    "item": (lambda x: x.sum().item(), "reads a tensor on the host"),
    "mask": (lambda x: x[x > 0], "depends on data"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_the_fake_device_refuses_what_a_capture_cannot_take(why: str) -> None:
    bad, message = REFUSED[why]
    with fake_cuda() as ctx:
        x = ctx.buffer("a.x", [4], torch.float32, role=Role.IO).tensor
        stray = torch.zeros(4, device=ctx.device)
        with pytest.raises(CaptureError, match=message):
            ctx.graph("a.g").capture(ShapeKey(n=1), lambda: bad(x))
        with pytest.raises(CaptureError, match="declared buffer"):
            ctx.graph("a.h").capture(ShapeKey(n=1), lambda: x.add_(stray))
