"""The parts of `benchmarks.card` that need other programs, another library, or the whole assistant.

A program that is not on this machine is named in a row, and the next part begins. On a processor every part runs with
the shipped models, but for the programs that only look at a card.
"""

import csv
import gc
import io
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.card_parts import SIDES, CardBench, Row, checkpoint, fresh
from capsules.exec.switches import Switch
from llm_engine import HybridLLM

METRICS = {
    "gpu__time_duration.sum": "us", "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory_percent",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "units_percent",
}  # fmt: skip
"""Counters of ncu by their names, and the keys of a row."""
WATCHED = "regex:gemv|packed_row|delta|attention|snake|convolution|add_norm|heads"
PEER_ROUNDS = 2
PROFILES = {"desk-12": 10.5, "desk-8": 6.5}
"""Profiles that are served beside a block, and what the block leaves free."""


def command(bench: CardBench, what: Sequence[str]) -> Iterator[Row]:
    """Another program; its last line."""
    began, case = time.monotonic(), " ".join(Path(word).name if word.startswith("/") else word for word in what[-4:])
    if shutil.which(what[0]) is None:
        yield {"case": case, "told": f"{what[0]} is not on this machine"}
        return
    done = subprocess.run(what, capture_output=True, text=True, check=False)
    last = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[-1]
    yield {"case": case, "exit": done.returncode, "s": time.monotonic() - began, "told": last}


def on_card(bench: CardBench, what: Sequence[str]) -> Iterator[Row]:
    """A program that has nothing to look at on a processor: there only whether it is here."""
    if not bench.dry:
        yield from command(bench, what)
    else:
        yield {"case": what[0], "here": str(shutil.which(what[0]))}


def picture(bench: CardBench) -> Iterator[Row]:
    """A picture through a tower, the first time with its captures and then again, and its rows through the model."""
    from benchmarks.pictures import PUBLISHED, SMALL, with_tower

    text = checkpoint(bench, "llm")
    config = json.loads((text / "config.json").read_text("utf-8"))
    size = int(config.get("text_config", config)["hidden_size"])
    with tempfile.TemporaryDirectory(dir=bench.folder) as made:
        folder = with_tower(text, Path(made) / "eyes", SMALL if bench.dry else PUBLISHED, size)
        found: dict[str, Row] = {}
        for side, on in SIDES.items():
            for case, ms in pictured(bench, folder, on).items():
                found.setdefault(case, {})[side] = ms
            gc.collect()
    for case, row in found.items():
        yield {"case": case} | row


def pictured(bench: CardBench, folder: Path, on: frozenset[Switch]) -> dict[str, float]:
    """Medians in milliseconds of one side."""
    from benchmarks.pictures import shown

    dtype, room = ("float32", 256) if bench.dry else ("bfloat16", 2048)
    llm = HybridLLM.load(folder, bench.context(on), dtype, room)
    fitted, eyes = shown(8, 8, 0) if bench.dry else shown(24, 32, 0), llm.eyes
    assert eyes is not None
    began = time.perf_counter()
    seen = ended(eyes.look(fitted))
    bench.wait()
    first = (time.perf_counter() - began) * 1e3
    llm.pictures.put(-1, seen)
    again = bench.timed(lambda: ended(eyes.look(fitted)))
    rows = bench.timed(partial(fresh, llm, [-1] * seen.grid.count))
    case = f"picture of {seen.grid.count} rows"
    return {
        f"{case}: tower, first": first, f"{case}: tower": statistics.median(again),
        f"{case}: its rows": statistics.median(rows),
    }  # fmt: skip


def ended(work: Generator[None, None, Any]) -> Any:
    """The value of a generator once it has run."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def peer(bench: CardBench) -> Iterator[Row]:
    """The same weights in the plain library, transformers, and here on both sides: one after the other."""
    from benchmarks.llm import Ours, measure
    from benchmarks.peers.transformers_peer import TransformersPeer

    path, dtype = checkpoint(bench, "llm"), "float32" if bench.dry else "bfloat16"
    ids = torch.randint(0, 200, (300,), generator=torch.Generator().manual_seed(2)).tolist()
    ways: dict[str, Callable[[], Any]] = {
        **{side: partial(Ours, path, 512, None, dtype, bench.device, on) for side, on in SIDES.items()},
        "transformers": partial(TransformersPeer, path, getattr(torch, dtype), bench.device),
    }
    found: dict[str, Row] = {}
    for who, load in ways.items():
        one = load()
        rounds = [measure(one, ids) for _ in range(1 if bench.dry else PEER_ROUNDS)]  # the first warms up
        for case, ms in rounds[-1].items():
            found.setdefault(f"beside transformers: {case}", {})[who] = ms
        del one
        gc.collect()
    for case, row in found.items():
        yield {"case": case} | row


def llama(bench: CardBench) -> Iterator[Row]:
    """llama.cpp's own benchmark over the same weights, if a build for this card is on the path."""
    if shutil.which("llama-bench") is None:
        yield {"case": "llama.cpp", "told": "llama-bench is not on this machine"}
        return
    from benchmarks.peers.gguf_file import write_gguf

    for kind in ("BF16", "Q4_0"):
        file = bench.folder / f"llm-{kind}.gguf"
        if not file.exists():
            write_gguf(checkpoint(bench, "llm"), file, kind)
        sizes = ("8,16", "8") if bench.dry else ("24,256,1024", "64")
        what = ["llama-bench", "-m", str(file), "-p", sizes[0], "-n", sizes[1], "-r", "2", "-o", "json"]
        done = subprocess.run(what, capture_output=True, text=True, check=True)
        yield from llama_rows(kind, done.stdout)


def llama_rows(kind: str, told: str) -> Iterator[Row]:
    """Milliseconds of llama-bench's report: of a prompt, or of one token."""
    for run in json.loads(told):
        case = f"append {run['n_prompt']}" if run["n_prompt"] else "token"
        yield {"case": f"llama.cpp {kind}: {case}", "ms": run["avg_ns"] / 1e6 / max(1, run["n_gen"])}


def serve(bench: CardBench) -> Iterator[Row]:
    """The whole assistant: asked awake, put to sleep, woken by a request; beside a block, as on a smaller card."""
    for profile, gib in ({"tiny": 0.0} if bench.dry else PROFILES).items():
        asked, block = ["--profile", profile], None
        if not bench.dry:
            free, _ = torch.cuda.mem_get_info()
            block = torch.empty(max(0, free - int(gib * 2**30)), dtype=torch.uint8, device=bench.device)
            asked += ["--llm", str(checkpoint(bench, "llm"))]
            asked += ["--tts", str(checkpoint(bench, "tts"))] if profile == "desk-12" else []
        out = bench.folder / f"serve-{profile}.json"
        what = [sys.executable, "-m", "benchmarks.sleep", "--rounds", "1" if bench.dry else "3", "--json", str(out)]
        what += ["--settle", "0" if bench.dry else "3", "--", *asked]
        began = time.monotonic()
        done = subprocess.run(what, capture_output=True, text=True, check=False)
        del block
        if done.returncode:
            yield {"case": f"serve {profile}", "told": (done.stderr.strip() or "nothing").splitlines()[-1]}
            continue
        measured = json.loads(out.read_text("utf-8"))["median"]
        yield {"case": f"serve {profile}", "s": time.monotonic() - began} | measured


def counters(bench: CardBench) -> Iterator[Row]:
    """Counts of ncu in the kernels of a token and a chunk: microseconds, shares of memory and of the units."""
    what = ["ncu", "--csv", "--page", "raw", "--graph-profiling", "node", "--target-processes", "all"]
    what += ["--kernel-name", WATCHED, "--launch-count", "200", "--metrics", ",".join(METRICS)]
    if bench.dry or shutil.which("ncu") is None:
        yield {"case": "ncu", "here": str(shutil.which("ncu"))}
        return
    child = [sys.executable, "-m", "benchmarks.card", "--part", "profile", "--folder", str(bench.folder)]
    with tempfile.TemporaryDirectory() as aside:
        done = subprocess.run(
            [*what, *child, "--out", str(Path(aside) / "rows")], capture_output=True, text=True, check=False
        )
    yield from counted(done.stdout)


def counted(told: str) -> Iterator[Row]:
    """A row per kernel from ncu's table, the most expensive first: medians over its launches, and their sum."""
    lines = told.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches: dict[str, list[dict[str, float]]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[begin:]))):
        if row.get("ID"):  # the line below the names holds units
            number = {short: float(row[name].replace(",", "")) for name, short in METRICS.items()}
            launches.setdefault(row["Kernel Name"], []).append(number)
    for name, seen in sorted(launches.items(), key=lambda one: -sum(launch["us"] for launch in one[1])):
        middle = {key: statistics.median(launch[key] for launch in seen) for key in METRICS.values()}
        yield {"case": f"ncu {name[:50]}", "launches": len(seen), "all_us": sum(one["us"] for one in seen)} | middle
