"""A model's start from its prepared file, compared with a normal load and with reading the file once; raw JSON.

    python -m benchmarks.prepared [--shape 0.8b|4b] [--dtype int4] [--rounds 5] [--folder DIR] [--out FILE]

Random weights of the published shape, the file in the page cache, each load in a separate process, taking turns.
`mapped` is the load, `touched` also reads every page; `once` reads the file with plain reads of 4 MiB;
`loaded` is the load without the file. 0.8b takes two minutes and 4 GB of disk, 4b some ten minutes and 18 GB.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from benchmarks.llm_load import config_of, write_checkpoint

WAYS = ("once", "mapped", "touched", "loaded")


def measure(folder: Path, dtype: str, way: str) -> dict[str, float]:
    """In the child: wall-clock and processor seconds, and resident bytes of this process afterwards."""
    import gc

    import torch

    from capsules import ExecContext, Role
    from capsules.nn.panels import BITS
    from llm_engine.options import DTYPES
    from llm_engine.weights import load_weights

    torch.set_num_threads(1)
    ctx = ExecContext("cpu")
    kept = folder / f"weights.{dtype}.prepared"
    gc.freeze()  # as at a start: else the collector walks over everything torch imported, in mid-load
    began, busy = perf_counter(), process_time()
    if way == "once":
        buffer = bytearray(4 << 20)
        with kept.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    else:
        load_weights(folder, ctx, DTYPES[dtype], bits=BITS.get(dtype))
    if way == "touched":
        for held in ctx.buffers(role=Role.WEIGHT):
            flat = held.tensor if held.tensor.is_contiguous() else held.tensor.t()
            flat.reshape(-1).view(torch.uint8)[::4096].sum()
    seconds, cpu = perf_counter() - began, process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "processor_seconds": cpu, "peak_resident_bytes": peak}


def child(folder: Path, dtype: str, way: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.prepared", "--folder", os.fspath(folder), "--dtype", dtype]
    told = subprocess.run([*command, "--child", way], check=True, capture_output=True, text=True).stdout
    return dict(json.loads(told.splitlines()[-1]))


def prepare(folder: Path, dtype: str) -> None:
    from capsules.nn.panels import BITS
    from llm_engine.options import DTYPES
    from llm_engine.weights import prepare_weights

    assert prepare_weights(folder, DTYPES[dtype], BITS.get(dtype), False, None, print)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=("0.8b", "4b"), default="0.8b")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "int8", "int4"), default="int4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(measure(args.folder, args.dtype, args.child)))
        return
    folder = args.folder or Path(tempfile.mkdtemp()) / "model"
    if not folder.exists():
        write_checkpoint(config_of(args.shape), folder)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    kept = folder / f"weights.{args.dtype}.prepared"
    try:
        prepare(folder, args.dtype)
        for _ in range(args.rounds):
            for way in WAYS:
                if way == "loaded":
                    kept.rename(kept.with_suffix(".away"))
                found[way].append(child(folder, args.dtype, way))
                if way == "loaded":
                    kept.with_suffix(".away").rename(kept)
        result = {
            "shape": args.shape, "dtype": args.dtype, "file_bytes": kept.stat().st_size, "rounds": args.rounds,
            "processor": platform.processor() or platform.machine(),
            "median_seconds": {way: median(row["seconds"] for row in rows) for way, rows in found.items()},
            "median_processor_seconds": {
                way: median(row["processor_seconds"] for row in rows) for way, rows in found.items()
            },
            "raw": found,
        }  # fmt: skip
    finally:
        if args.folder is None:
            shutil.rmtree(folder.parent)
    print(json.dumps({name: value for name, value in result.items() if name != "raw"}, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
