"""All that is captured on a GPU, run on a fake one in the published shapes: what a card refuses is refused here."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsules import Role, ShapeKey
from capsules.errors import CaptureError
from capsules.exec.switches import ALL, PROVEN, Switch
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.weights import DTYPES as STORED
from capsules.weights import catalogue
from tests.fakes.cuda import fake_cuda
from tests.fakes.published import language_config, language_graphs, published_voice, voice_graphs
from tts_engine.codec import Codec, read_codec_config
from tts_engine.config import TTSConfig, load_config
from tts_engine.graphs import Shapes, plan_shapes
from tts_engine.istft_codec import CausalCodec, CodecShape
from tts_engine.weights import CODEC_PREFIX

pytestmark = pytest.mark.slow
either_way = pytest.mark.parametrize("switches", [PROVEN, ALL], ids=["proven", "all switches"])

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")
TINY_VOICE = Path(__file__).parents[2] / "tts_engine" / "tiny"


def forbid_plain_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that made them of packed ones would move twenty times the bytes."""
    for kind in (Fp8Weight, Int4Weight):
        monkeypatch.setattr(kind, "unpack", None)


@either_way
@pytest.mark.parametrize(("size", "stored"), [("4B", "plain"), ("4B", "made int4"), ("9B", "fp8"), ("27B", "int4")])
def test_every_variant_of_the_language_model_can_be_captured(
    size: str, stored: str, switches: frozenset[Switch], monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_plain_matrices(monkeypatch)
    with fake_cuda(switches=switches) as ctx:
        config = language_config(size, ("linear_attention", "full_attention"))
        graphs = language_graphs(ctx, config, stored, 1000)
        graphs.capture_all()
        touched = graphs._decode.touched(graphs._decode.keys[0])
    assert {"llm.recurrent", "llm.window", "llm.kv", "llm.position", "llm.logits"} <= {b.name for b in touched}


def _shipped(device: torch.device) -> tuple[TTSConfig, Codec]:
    tensors = {
        name.removeprefix(CODEC_PREFIX): torch.zeros(entry.shape, dtype=STORED[entry.dtype])
        for name, entry in catalogue(TINY_VOICE).items()
        if name.startswith(CODEC_PREFIX)
    }
    with device:
        codec = CausalCodec(CodecShape.parse(read_codec_config(TINY_VOICE)), tensors)
    return load_config(TINY_VOICE), codec


@either_way
@pytest.mark.parametrize(
    ("voice", "dtype"),
    [
        (published_voice, "bfloat16"), (published_voice, "float8"), (published_voice, "int4"), (_shipped, "float32"),
    ],
    ids=["published", "published float8", "published int4", "shipped"],
)
def test_every_variant_of_the_voice_can_be_captured(
    voice: Callable[[torch.device], tuple[TTSConfig, Codec]], dtype: str, switches: frozenset[Switch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    forbid_plain_matrices(monkeypatch)
    with fake_cuda(switches=switches) as ctx:
        config, codec = voice(ctx.device)
        every = plan_shapes(4096, codec.left_frames, codec.right_frames)
        shapes = Shapes(every.buckets[-1:], every.chunks, (min(every.windows), max(every.windows)))
        graphs = voice_graphs(ctx, config, codec, dtype, shapes)
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
