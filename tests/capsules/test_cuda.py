"""The cuda backend on a machine without a card: what it says, what it sets, and in which order it calls torch."""

import gc
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from capsules import ExecContext, Role, ShapeKey
from capsules.errors import CaptureError
from capsules.exec.cuda import CudaBackend, kernel_trouble, unusable
from tests.fakes.cuda import fake_cuda


def test_a_torch_without_cuda_names_the_one_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")
    monkeypatch.setattr("capsules.exec.cuda.sys.platform", "linux")
    assert unusable().endswith("pip install --force-reinstall torch==2.13.0")
    monkeypatch.setattr("capsules.exec.cuda.sys.platform", "win32")
    assert "pytorch.org" in unusable() and "reinstall" not in unusable(), "pip would fetch the same build again"


def test_an_old_driver_is_told_in_torchs_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> bool:
        warnings.warn("The NVIDIA driver is too old (found version 11040). (Triggered at x)", stacklevel=1)
        return False

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", absent)
    told = unusable()
    assert told.startswith("The NVIDIA driver is too old (found version 11040).")
    assert "Triggered" not in told and told.endswith("needs 580 or newer, for CUDA 13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert unusable().startswith("no NVIDIA driver answers")


def test_what_triton_lacks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setattr("capsules.exec.cuda.find_spec", lambda name: object())
    monkeypatch.setattr("capsules.exec.cuda.sysconfig.get_paths", lambda: {"include": str(tmp_path)})
    assert kernel_trouble().endswith("apt install python3-dev, dnf install python3-devel")
    (tmp_path / "Python.h").touch()
    assert kernel_trouble() == ""
    monkeypatch.delenv("CC")
    monkeypatch.setattr("capsules.exec.cuda.shutil.which", lambda name: None)
    assert "apt install gcc" in kernel_trouble()
    monkeypatch.setattr("capsules.exec.cuda.find_spec", lambda name: None)
    assert "CUDA build of torch" in kernel_trouble()


FLAGS = [
    (torch.backends.cudnn, "deterministic"), (torch.backends.cudnn, "benchmark"), (torch.backends.cudnn, "allow_tf32"),
    (torch.backends.cuda.matmul, "allow_tf32"),
    (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def flags_as_before() -> Iterator[None]:
    before = [getattr(owner, flag) for owner, flag in FLAGS]
    yield
    for (owner, flag), value in zip(FLAGS, before, strict=True):
        setattr(owner, flag, value)


class Graph:
    """A CUDA graph that counts its replays."""

    replays = 0

    def replay(self) -> None:
        self.replays += 1


class Card:
    """What `CudaBackend` asks of torch.cuda, and what it did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] = (8, 9)) -> None:
        self.captures: list[tuple[Any, Any, Any]] = []
        self.graphs: list[weakref.ref[Graph]] = []
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        for name, value in {
            "is_available": lambda: True, "get_device_capability": lambda: capability, "current_device": lambda: 0,
            "get_device_name": lambda device=None: "Card", "synchronize": lambda device=None: None,
            "graph_pool_handle": object, "Stream": self._stream, "stream": self._inside, "CUDAGraph": self._graph,
            "graph": self._capture,
        }.items():  # fmt: skip
            monkeypatch.setattr(torch.cuda, name, value)

    def _stream(self, device: Any = None, priority: int = 0) -> Any:
        class Stream:
            def synchronize(self) -> None:
                return None

        return Stream()

    @contextmanager
    def _inside(self, stream: Any) -> Iterator[None]:
        yield

    def _graph(self) -> Graph:
        made = Graph()
        self.graphs.append(weakref.ref(made))
        return made

    @contextmanager
    def _capture(self, graph: Graph, pool: Any, stream: Any, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        self.captures.append((graph, pool, stream))
        try:
            yield
        except RuntimeError:
            raise RuntimeError("operation failed due to a previous error during capture")  # noqa: B904 (as torch does)


def test_an_old_card_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    Card(monkeypatch, (7, 5))
    with pytest.raises(ValueError, match=r"device 'cuda': Card has compute capability 7\.5; 8\.0 \(RTX 30\) or newer"):
        ExecContext("cuda")


def test_arithmetic_on_a_card_is_exact_and_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    Card(monkeypatch)
    for owner, flag in FLAGS:
        setattr(owner, flag, flag != "deterministic")
    assert CudaBackend(torch.device("cuda")).describe().startswith(f"cuda Card torch {torch.__version__} triton ")
    assert [getattr(owner, flag) for owner, flag in FLAGS] == [True, False, False, False, False]


@contextmanager
def on(card: Card) -> Iterator[ExecContext]:
    """A context of the real backend over fake tensors and that card."""
    with fake_cuda(CudaBackend(torch.device("cuda"))) as ctx:
        yield ctx


@pytest.mark.slow
def test_graphs_of_a_pool_share_memory_and_stream_and_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(monkeypatch)
    with on(card) as ctx:
        x = ctx.buffer("a.x", [4], torch.float32, role=Role.STATE).tensor
        y = ctx.buffer("b.x", [4], torch.float32, role=Role.STATE).tensor
        mine, other = ctx.graph("a.g", pool=ctx.pool("a")), ctx.graph("b.g", pool=ctx.pool("b"))
        for n in (1, 2):
            mine.capture(ShapeKey(n=n), lambda: x.add_(1))
        other.capture(ShapeKey(n=1), lambda: y.add_(1))
        pools, streams = ([capture[at] for capture in card.captures] for at in (1, 2))
        assert pools[0] is pools[1] is not pools[2] and streams[0] is streams[1] is not streams[2]
        mine.replay(ShapeKey(n=1))
        assert [capture[0].replays for capture in card.captures] == [1, 0, 0]
        card.captures.clear()
        mine.clear()
        gc.collect()
        assert all(graph() is not None for graph in card.graphs), "its destruction would free what the others write to"
        ctx.release("a")
        del mine
        gc.collect()
        assert [graph() is not None for graph in card.graphs] == [False, False, True]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (RuntimeError("not permitted when stream is capturing\nSearch for"), r"a\.g \(n=1\): .* stream is capturing$"),
        (torch.OutOfMemoryError("CUDA out of memory"), "CUDA out of memory"),
    ],
    ids=["refused", "full"],
)
def test_a_capture_that_fails_tells_its_first_cause(
    monkeypatch: pytest.MonkeyPatch, failure: RuntimeError, told: str
) -> None:
    with on(Card(monkeypatch)) as ctx:
        x = ctx.buffer("a.x", [4], torch.float32, role=Role.STATE).tensor
        runs = iter([False, True])

        def step() -> None:
            x.add_(1)
            if next(runs):
                raise failure

        full = isinstance(failure, torch.OutOfMemoryError)
        with pytest.raises(torch.OutOfMemoryError if full else CaptureError, match=told):
            ctx.graph("a.g").capture(ShapeKey(n=1), step)
