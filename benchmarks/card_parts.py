"""The parts of `benchmarks.card`: each measures one thing and yields rows as soon as they are known.

A row is a dict with a `case`, and milliseconds, errors or rates beside it; `old` and `new` are the sides of a switch,
taken in turns in one process. On a processor every part runs with small shapes, where both sides are the same code.
"""

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.desk_shapes import write_language_model
from capsules import ExecContext, Role, ShapeKey
from capsules.exec.switches import ALL, PROVEN, Switch, switched
from capsules.nn import linear
from capsules.nn.fp8 import empty_fp8, quantise_fp8
from capsules.nn.int4 import Int4Weight, quantise_int4
from llm_engine import HybridLLM, Sampling
from llm_engine.options import LLMOptions
from tests.tts_engine.miniature import PUBLISHED, write_miniature
from tts_engine.engine import HiggsTTS
from tts_engine.sampling import VoiceSampling

Row = dict[str, Any]
ROUNDS = 8
SIDES = {"old": PROVEN, "new": ALL}
TINY = Path(__file__).parents[1]
WARM = Sampling(temperature=0.7, top_k=20, top_p=0.95, seed=3)


class CardBench:
    """The place to measure: a device, and a folder for checkpoints."""

    def __init__(self, device: str, folder: Path) -> None:
        self.device, self.folder = device, folder
        self.dry = device == "cpu"

    def context(self, switches: frozenset[Switch] = PROVEN) -> ExecContext:
        """Without a card the parts, which load the same models, record their steps once."""
        return ExecContext(self.device, recordings=self.folder / "recordings", switches=switches)

    def wait(self) -> None:
        if not self.dry:
            torch.cuda.synchronize()

    def timed(self, work: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
        """Milliseconds of each call, the first left out; one without a card, where they say nothing."""
        found = []
        for _ in range(2 if self.dry else rounds + 1):
            self.wait()
            began = time.perf_counter()
            work()
            self.wait()
            found.append((time.perf_counter() - began) * 1e3)
        return found[1:]

    def both(self, sides: dict[str, Callable[[], object]]) -> Row:
        """Medians of both sides in turns, A B A B, with the spread of each."""
        taken: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(2):
            for side, work in sides.items():
                taken[side] += self.timed(work, max(1, ROUNDS // 2))
        return {side: statistics.median(ms) for side, ms in taken.items()} | {
            f"{side} spread": max(ms) - min(ms) for side, ms in taken.items()
        }


def facts(bench: CardBench) -> Iterator[Row]:
    """The card, its ceilings, and what a node of a graph costs."""
    if bench.dry:
        yield {"case": "device", "name": "a processor", "torch": torch.__version__}
    else:
        free, total = torch.cuda.mem_get_info()
        yield {
            "case": "device", "name": torch.cuda.get_device_name(), "capability": torch.cuda.get_device_capability(),
            "torch": torch.__version__, "cuda": torch.version.cuda, "free_gib": free / 2**30, "gib": total / 2**30,
        }  # fmt: skip
    rows = 1 << (10 if bench.dry else 20)
    matrix = torch.ones(rows, 1024, dtype=torch.bfloat16, device=bench.device)
    row = torch.ones(1, 1024, dtype=torch.bfloat16, device=bench.device)
    with torch.no_grad():
        ms = min(bench.timed(partial(linear, row, matrix)))
        copied = min(bench.timed(matrix.clone))
    yield {"case": "read", "ms": ms, "tb_s": matrix.nbytes / ms / 1e9}
    yield {"case": "copy", "ms": copied, "tb_s": 2 * matrix.nbytes / copied / 1e9}
    ctx = ExecContext(bench.device)
    cell, graph = ctx.buffer("card.cell", [1], torch.float32, role=Role.STATE).tensor, ctx.graph("card.nodes")
    count = 20 if bench.dry else 1000

    def nodes() -> None:
        for _ in range(count):
            cell.add_(1)

    graph.capture(ShapeKey(n=1), nodes)
    yield {"case": "node", "us": min(bench.timed(lambda: graph.replay(ShapeKey(n=1)))) * 1e3 / count}


def packed(kind: str, outputs: int, inputs: int, device: str) -> Any:
    """A random matrix in a form, as loading makes it."""
    matrix = torch.randn(outputs, inputs, device=device) / inputs**0.5
    if kind == "plain":
        return matrix.bfloat16()
    if kind == "int4":
        return Int4Weight(*quantise_int4(matrix))
    found = empty_fp8(outputs, inputs, (32, 128), torch.device(device))
    values, scale = quantise_fp8(matrix, (32, 128))
    found.values.copy_(values)
    found.scale.copy_(scale)
    return found


def shapes(bench: CardBench) -> list[tuple[int, int]]:
    """Outputs and inputs of the products of the 4B and of the voice."""
    if bench.dry:
        return [(64, 128), (96, 256)]
    return [(12288, 2560), (18432, 2560), (2560, 9216), (2560, 4096), (6144, 2560), (248320, 2560)]


def products(bench: CardBench) -> Iterator[Row]:
    """Every product of the published shapes, plain, FP8 and int4, with 1, 24 and 64 rows: GB/s and the error."""
    for outputs, inputs in shapes(bench):
        for kind in ("plain", "float8", "int4"):
            weight = packed(kind, outputs, inputs, bench.device)
            exact = weight.double() if isinstance(weight, Tensor) else weight.unpack(torch.float32).double()
            nbytes = weight.nbytes if isinstance(weight, Tensor) else weight.values.nbytes + weight.scale.nbytes
            for rows in (1, 24, 64):
                x = torch.randn(rows, inputs, dtype=torch.bfloat16, device=bench.device)
                want = x.double() @ exact.T

                def side(on: frozenset[Switch], x: Tensor = x, weight: Any = weight) -> Tensor:
                    with torch.no_grad(), switched(on):
                        return linear(x, weight)

                row = bench.both({name: partial(side, on) for name, on in SIDES.items()})
                row |= {f"{name} GB/s": nbytes / row[name] / 1e6 for name in SIDES}
                row |= {f"{name} error": distance(side(on), want) for name, on in SIDES.items()}
                row["repeats"] = torch.equal(side(ALL), side(ALL))
                yield {"case": f"{kind} {rows} x {inputs} to {outputs}"} | row
            del weight, exact


def distance(got: Tensor, want: Tensor) -> float:
    return float((got.double() - want).norm() / want.norm())


def language(bench: CardBench, dtype: str) -> Iterator[Row]:
    """A token, appends and a restored turn of the 4B: two engines over the same weights, a side each."""
    path = checkpoint(bench, "llm")
    engines = twins(bench, path, dtype)
    vocabulary = min(engines["old"].config.vocab_size, 1000)
    ids = torch.randint(0, vocabulary, (1100,), generator=torch.Generator().manual_seed(1)).tolist()
    room = engines["old"].max_positions
    logits = [llm.append(ids[:24]).double() for llm in engines.values()]
    yield {"case": f"logits, {dtype}", "error": distance(logits[1], logits[0])}
    for name, sampling in (("token greedy", Sampling.greedy()), ("token sampled", WARM)):

        def decode(llm: HybridLLM, sampling: Sampling = sampling) -> None:
            llm.decode(8, sampling)
            llm.catch_up()

        for llm in engines.values():
            llm.reset()
            llm.append(ids[:24])
        row = bench.both({side: partial(decode, llm) for side, llm in engines.items()})
        yield {"case": f"{name}, {dtype}"} | {key: ms / 8 for key, ms in row.items()}
    for count in (8, 24, 64, 256, 1024):
        if count < room:
            yield {"case": f"append {count}, {dtype}"} | bench.both(
                {side: partial(fresh, llm, ids[:count]) for side, llm in engines.items()}
            )
    long = min(1000, room - 100)
    kept = {}
    for side, llm in engines.items():
        fresh(llm, ids[:long])
        kept[side] = llm.snapshot("card")
    turn = {side: partial(warm_turn, llm, kept[side], ids[:24]) for side, llm in engines.items()}
    yield {"case": f"24 after a restored {long}, {dtype}"} | bench.both(turn)
    yield from laws(engines["new"], ids, dtype)


def fresh(llm: HybridLLM, ids: list[int]) -> None:
    llm.reset()
    llm.append(ids)


def warm_turn(llm: HybridLLM, capsule: Any, ids: list[int]) -> None:
    llm.restore(capsule)
    llm.append(ids)


def laws(llm: HybridLLM, ids: list[int], dtype: str) -> Iterator[Row]:
    """The short form: restoring and appending is a cold run, going on is never having left."""
    fresh(llm, ids[:72])
    cold = {name: tensor.clone() for name, tensor in llm.snapshot().tensors.items()}
    fresh(llm, ids[:64])
    cell = llm.snapshot("a cell")
    said = llm.decode(6, WARM)
    llm.restore(cell)
    again = llm.decode(6, WARM)
    llm.restore(cell)
    llm.append(ids[64:72])
    warm = llm.snapshot().tensors
    equal = all(torch.equal(warm[name], tensor) for name, tensor in cold.items() if name != "llm.generated")
    yield {"case": f"laws, {dtype}", "restore and append is a cold run": equal, "restore goes on": said == again}


def twins(bench: CardBench, path: Path, dtype: str) -> dict[str, HybridLLM]:
    """One engine with every switch off, and one with all on over the very same weights."""
    old = HybridLLM.load(path, bench.context(), dtype, 2048 if not bench.dry else 256)
    ctx = bench.context(ALL)
    for buffer in old._ctx.buffers(role=Role.WEIGHT):
        ctx.adopt(buffer.name, buffer.tensor)
    new = HybridLLM(ctx, old.loaded, LLMOptions(dtype, old.max_positions, eyes="off"), old.end_of_turn)
    new.warm()
    return {"old": old, "new": new}


def voice(bench: CardBench, dtype: str) -> Iterator[Row]:
    """A row, prefills, windows and first sounds of the voice, one side after the other: both would not fit a card."""
    path, text = checkpoint(bench, "tts"), "The weather is fine today, and the train leaves in ten minutes."
    found: dict[str, Row] = {}
    for side, on in SIDES.items():
        tts = HiggsTTS.load(path, bench.context(on), dtype, 512 if bench.dry else None)
        found.setdefault("row", {})[side] = tts.measure().row_ms
        for case, work in voice_cases(tts, text, 24 if bench.dry else 160):
            found.setdefault(case, {})[side] = statistics.median(bench.timed(work))
        del tts
        gc.collect()
    for case, row in found.items():
        yield {"case": f"{case}, {dtype}"} | row


def voice_cases(tts: HiggsTTS, text: str, rows: int) -> Iterator[tuple[str, Callable[[], object]]]:
    tts.set_sampling(VoiceSampling(seed=1))
    for window in (min(tts._graphs.shapes.windows), max(tts._graphs.shapes.windows)):
        yield f"window of {window}", partial(tts._graphs.window, window)

    for words in (20, 250):
        ids = [5] * min(words, tts.max_positions // 4)
        yield f"prefill of {words}", partial(tts._generator._open_piece, ids, [])

    def first(policy: str) -> None:
        tts.open()
        tts.begin(text, policy, max_rows=rows)
        while tts.take_audio() is None and tts.step().kind != "idle":
            pass

    for policy in ("exact", "fast"):
        yield f"first sound {policy}", partial(first, policy)


def profile(bench: CardBench) -> Iterator[Row]:
    """Kernels of a token and of a chunk that take above one per cent of it, both sides."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watch

    activity = ProfilerActivity.CPU if bench.dry else ProfilerActivity.CUDA
    for side, llm in twins(bench, checkpoint(bench, "llm"), "float32" if bench.dry else "bfloat16").items():
        for case, work in (("token", partial(llm.decode, 4)), ("chunk of 64", partial(fresh, llm, [5] * 64))):
            fresh(llm, [5] * 24)
            work()
            with watch(activities=[activity]) as seen:
                work()
            kind = "self_cpu_time_total" if bench.dry else "self_device_time_total"
            times = {event.key: float(getattr(event, kind)) for event in seen.key_averages()}
            whole = sum(times.values()) or 1.0
            large = {name[:60]: round(us, 1) for name, us in times.items() if us > whole / 100}
            yield {"case": f"{case}, {side}", "us": large}


def memory(bench: CardBench) -> Iterator[Row]:
    """Both models beside a block that leaves what a desktop leaves of 8 and 12 GB; what is free after it all."""
    for gib, llm_dtype, tts_dtype, lean in ((10.5, "int4", "float8", False), (6.5, "int4", "int4", True)):
        block = None
        if not bench.dry:
            free, _ = torch.cuda.mem_get_info()
            block = torch.empty(max(0, free - int(gib * 2**30)), dtype=torch.uint8, device=bench.device)
        ctx = bench.context()
        room, voice_room = (256, 512) if bench.dry else (4096, 2048 if lean else None)
        form = "float32" if bench.dry else tts_dtype
        path = checkpoint(bench, "llm")
        llm = HybridLLM.load(path, ctx, llm_dtype, room, checkpoints=4 if lean else 8, eyes="off")
        tts = HiggsTTS.load(checkpoint(bench, "tts"), ctx, form, voice_room)
        llm.append([5] * 100)
        llm.decode(8, WARM)
        for _ in tts.speak("It fits."):
            break
        left = 0.0 if bench.dry else torch.cuda.mem_get_info()[0] / 2**30
        yield {"case": f"{gib} GiB free: {llm_dtype} and {tts_dtype}", "left_gib": left}
        del block, llm, tts, ctx
        gc.collect()
        if not bench.dry:
            torch.cuda.empty_cache()


def checkpoint(bench: CardBench, model: str) -> Path:
    """Random weights in the published shapes, written once; the shipped models where there is no card."""
    if bench.dry:
        return TINY / f"{model}_engine" / "tiny"
    path = bench.folder / model
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=bench.folder) as made:
            if model == "llm":
                write_language_model("4b", Path(made) / "one")
            else:
                write_miniature(Path(made) / "one", published(), drawn=torch.bfloat16)
            (Path(made) / "one").rename(path)
    return path


def published() -> Any:
    from dataclasses import replace

    return replace(PUBLISHED, layers=36, hubert_layers=12)
