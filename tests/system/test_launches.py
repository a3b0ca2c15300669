"""How many kernels each step launches on a GPU, in the published shapes: figures that may only fall.

A launch costs two microseconds even in a graph, so they are a third of a token's time. They stand in
`benchmarks/results/launches.json`; lower them there as soon as they fall.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from capsules import ShapeKey
from capsules.exec.switches import ALL, PROVEN
from tests.fakes.cuda import FakeCudaBackend, fake_cuda
from tests.fakes.published import language_config, language_graphs, published_voice, voice_graphs
from tts_engine.graphs import plan_shapes

pytestmark = [
    pytest.mark.slow, pytest.mark.parametrize(("name", "switches"), [("proven", PROVEN), ("all switches", ALL)])
]  # fmt: skip

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")
FIGURES = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "launches.json").read_text("utf-8"))
LAYERS = ("linear_attention", "linear_attention", "linear_attention", "full_attention")
Counted = dict[str, int]


def of_all(count: Callable[[int], Counted], few: int, whole: int) -> Counted:
    """With `whole` layers or groups of them, from `few` and from one more: each further one launches the same again."""
    some, more = count(few), count(few + 1)
    return {what: launches + (whole - few) * (more[what] - launches) for what, launches in some.items()}


def test_a_token_and_a_chunk(name: str, switches: frozenset[str]) -> None:
    def counted(groups: int) -> Counted:
        backend = FakeCudaBackend()
        with fake_cuda(backend, switches) as ctx:
            graphs = language_graphs(ctx, language_config("4B", LAYERS * groups), "plain")
            graphs.capture_all()
            tables = (graphs._chunk, graphs._decode, graphs._sample)
            found = dict(zip([(t.name, key) for t in tables for key in t.keys], backend.launches, strict=True))
        token, chunk = graphs._decode.keys[0], ShapeKey(rows=64, kv=graphs._chunk.keys[0]["kv"], head=1)
        return {
            "token": found["llm.decode", token],
            "token greedy": found["llm.decode", token] + found["llm.sample", ShapeKey(greedy=1)],
            "token sampled": found["llm.decode", token] + found["llm.sample", ShapeKey(greedy=0)],
            "chunk of 64": found["llm.chunk", chunk],
            "all graphs": sum(backend.launches),
        }

    assert of_all(counted, 1, 8) == FIGURES[name]["language model"]


def test_a_row_and_a_window(name: str, switches: frozenset[str]) -> None:
    def counted(layers: int) -> Counted:
        backend = FakeCudaBackend()
        with fake_cuda(backend, switches) as ctx:
            config, codec = published_voice(ctx.device, layers=layers)
            shapes = plan_shapes(4096, codec.left_frames, codec.right_frames)
            voice_graphs(ctx, config, codec, "bfloat16", shapes)
        row, prefill, *_ = backend.launches
        return {
            "row": row,
            "prefill of a chunk": prefill,
            "window of 21": backend.launches[-len(shapes.windows)],
            "window of 45": backend.launches[-1],
            "all graphs": sum(backend.launches),
        }

    assert of_all(counted, 2, 36) == FIGURES[name]["voice"]
