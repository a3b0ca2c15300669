"""The plan of memory against what is resident: a language model in four bits on a processor.

    python -m benchmarks.llm_memory [--shape 9b ...] [--folder DIR] [--out benchmarks/results/llm_memory.json]

Each shape is written with random weights in the published int4 layout and loaded in a process of its own, one after the
other, if its plan and its file's pages fit the free memory. Shapes up to 9B are whole. Four layers of the 27B and
of the mixture are loaded in their own width, between embedding and head, and the whole plan is printed beside them.
`plan` is what the assistant reckons with before it reads a byte, without room for checkpoints of talks; `declared` the
buffers of the engine; `resident` what the process's own memory grew by, with everything that a load leaves behind.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from assistant.base.memory import available_bytes
from benchmarks.llm_load import SHAPES, config_of, write_checkpoint
from llm_engine.config import LLMConfig

WHOLE = ("0.8b", "2b", "4b", "9b")
LAYERS = 4
POSITIONS = 4096
SPARE_BYTES = 2 << 30


def config_for(shape: str) -> LLMConfig:
    whole = config_of(shape)
    return whole if shape in WHOLE else replace(whole, layer_types=whole.layer_types[:LAYERS])


def own_bytes() -> int:
    """Memory of this process that is not a file's."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("RssAnon:"))


def load_and_measure(folder: Path) -> None:
    """In the child: print what a loaded engine takes, as JSON."""
    from assistant.app.config import load_config
    from assistant.device.execution import give_back_memory
    from capsules import ExecContext
    from llm_engine import HybridLLM

    before = own_bytes()
    ctx = ExecContext("cpu", load_config().compiled)
    llm = HybridLLM.load(folder, ctx, "int4", POSITIONS)
    llm.append(list(range(200)))
    llm.decode(4)
    give_back_memory()  # as the assistant does once it is ready
    declared = sum(buffer.nbytes for buffer in ctx.buffers("llm"))
    print(json.dumps({"declared": declared, "resident": own_bytes() - before}))


def measured(shape: str, folder: Path) -> dict[str, float]:
    from llm_engine.footprint import model_bytes, needed_bytes

    config, at = config_for(shape), folder / shape
    found: dict[str, float] = {"layers": len(config.layer_types)}
    for device in ("cpu", "cuda"):
        found[f"whole plan, {device}"] = model_bytes(config_of(shape), "int4", POSITIONS, 0, device=device)
    try:
        found["file"] = write_checkpoint(config, at, four_bits=True)
        found["plan"] = needed_bytes(at, "int4", POSITIONS, device="cpu", checkpoints=0)
        if available_bytes() < found["plan"] + SPARE_BYTES:
            raise SystemExit(f"{shape} needs {found['plan'] / 1e9:.1f} GB; {available_bytes() / 1e9:.1f} are free")
        command = [sys.executable, "-m", "benchmarks.llm_memory", "--child", os.fspath(at)]
        found |= json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    finally:
        shutil.rmtree(at, ignore_errors=True)
    return found


def report(rows: dict[str, dict[str, float]]) -> None:
    for shape, row in rows.items():
        gb = {name: f"{value / 1e9:.3f}" for name, value in row.items()}
        share = row["resident"] / row["plan"]
        print(f"{shape} ({row['layers']} layers): plan {gb['plan']} GB, declared {gb['declared']}, resident "
              f"{gb['resident']} = {share:.3f} x the plan; file {gb['file']}; whole: {gb['whole plan, cpu']} on a "
              f"processor, {gb['whole plan, cuda']} on a GPU")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "llm-memory")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.child:
        return load_and_measure(args.child)
    rows: dict[str, dict[str, float]] = {}
    for shape in args.shape:
        rows[shape] = measured(shape, args.folder)
        report({shape: rows[shape]})
    if args.out:
        args.out.write_text(json.dumps({"positions": POSITIONS, "bytes": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
