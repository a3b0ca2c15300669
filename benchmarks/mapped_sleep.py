"""Sleep and wake of a language model whose weights are mapped from a prepared file: resident and private memory.

    python -m benchmarks.desk_shapes FOLDER --shape 0.8b
    python -m benchmarks.mapped_sleep FOLDER/llm [--dtype int8] [--rounds 5] [--json FILE]

The first run prepares the weights beside the model. Private bytes are those that lie in no file, so only swapping would
free them. Waking is timed together with one pass over all bytes, since mapped pages come back when they are read.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.start import RESULTS, machine
from capsules import ExecContext
from capsules.exec.away import Away
from capsules.nn.panels import BITS
from llm_engine import HybridLLM
from llm_engine.options import DTYPES
from llm_engine.weights import prepare_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", choices=sorted(BITS), default="int8")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", type=Path, default=RESULTS / "mapped_sleep.json", metavar="FILE")
    args = parser.parse_args()
    prepare_weights(args.folder, DTYPES[args.dtype], BITS[args.dtype], False, None, print)
    ctx = ExecContext("cpu")
    HybridLLM.load(args.folder, ctx, args.dtype, 512, eyes="off", capture=False)
    with tempfile.TemporaryDirectory() as folder:
        away = Away(ctx.buffers(), Path(folder))
        rounds = [one_round(ctx, away) for _ in range(args.rounds)]
        away.discard()
    middle = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    result = {"machine": machine(), "dtype": args.dtype, "median": middle, "raw": rounds}
    args.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(middle, indent=1))


def one_round(ctx: ExecContext, away: Away) -> dict[str, float]:
    whole = read_all(ctx)
    found = memory("awake")
    began = time.perf_counter()
    for _ in away.let_go():
        pass
    found |= {"falling asleep ms": (time.perf_counter() - began) * 1e3, "freed": away.nbytes} | memory("asleep")
    began = time.perf_counter()
    away.bring_back()
    assert read_all(ctx) == whole
    return found | {"waking ms": (time.perf_counter() - began) * 1e3} | memory("after")


def read_all(ctx: ExecContext) -> int:
    """Sum of one byte of every 512, so that every page is touched."""
    flat = (buffer.tensor.contiguous().view(-1).view(torch.uint8) for buffer in ctx.buffers())
    return sum(int(each[::512].sum()) for each in flat)


def memory(state: str) -> dict[str, float]:
    """Memory of this process, in bytes."""
    rollup = Path("/proc/self/smaps_rollup").read_text()
    held = {name: int(size) * 1024 for name, size in re.findall(r"(?m)^(\w+): +(\d+) kB", rollup)}
    return {f"{state}: resident": held["Rss"], f"{state}: private": held["Anonymous"] + held["Swap"]}


if __name__ == "__main__":
    main()
