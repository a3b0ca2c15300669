"""A switch of the language model: how long it takes, and the most memory that the process held meanwhile.

    python -m benchmarks.switch --shape 120m --switches 20 --out benchmarks/results/switch.json

Switches go to a model with random weights and back, as the page's chooser makes them: from the choice to the moment
from which requests are served. `load` is the load of the machine. Peaks are Linux's own, reset before each switch.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from assistant.app.config import Config, load_config
from assistant.app.standing import Standing
from assistant.app.start import App, open_talks
from assistant.app.switching import Choices, run_switching
from assistant.base.memory import resident_bytes, share_heaps
from assistant.device.execution import give_back_memory
from benchmarks.llm import SHAPES
from benchmarks.parrot import parrot
from tests.fakes.gguf_files import write_decoder

MB = 1e6
FIGURES = ("s", "processor_s", "peak_mb", "after_mb", "load")
Row = dict[str, float | str]
STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))


async def measure(first: Config, chosen: Sequence[Config]) -> list[Row]:
    """One row for each choice, in turn."""
    choices, served, rows = Choices(), asyncio.Queue[str](), list[Row]()

    async def pause() -> None:
        """Nobody talks."""

    def serve(app: App) -> None:
        served.put_nowait(app.models.llm.name)

    opened = partial(open_talks, standing=Standing())
    keeping = asyncio.create_task(run_switching(first, choices, opened, serve, pause, give_back_memory))
    await _served(keeping, served)
    for number, config in enumerate(chosen):
        Path("/proc/self/clear_refs").write_text("5")
        began, worked, before = time.perf_counter(), time.process_time(), resident_bytes()
        choices.choose(str(number), config)
        name = await _served(keeping, served)
        assert choices.state.phase == "done", choices.state
        seconds, worked_s = time.perf_counter() - began, time.process_time() - worked
        give_back_memory()
        rows.append({
            "to": name, "s": round(seconds, 2), "processor_s": round(worked_s, 2), "before_mb": before / MB,
            "peak_mb": peak_bytes() / MB, "after_mb": resident_bytes() / MB, "load": os.getloadavg()[0],
        })
        print(rows[-1], flush=True)
    keeping.cancel()
    await asyncio.wait([keeping])
    return rows


def medians(rows: Sequence[Row]) -> dict[str, tuple[int, dict[str, float]]]:
    """By model: the count of its switches, and their medians. The first one, which warms up, counts only if it is the
    only one."""
    found = {}
    for to in sorted({str(row["to"]) for row in rows}):
        every = [row for row in rows if row["to"] == to]
        own = every[1:] or every
        found[to] = len(own), {name: round(statistics.median(float(row[name]) for row in own), 2) for name in FIGURES}
    return found


async def _served(keeping: asyncio.Task[None], served: asyncio.Queue[str]) -> str:
    waiting = asyncio.ensure_future(served.get())
    await asyncio.wait([keeping, waiting], return_when=asyncio.FIRST_COMPLETED)
    if keeping.done():
        keeping.result()
    return waiting.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="", help="of the random model: 120m, 0.8b; without: a decoder of 2 layers")
    parser.add_argument("--dtype", default="int8", help="of the random model")
    parser.add_argument("--threads", default="1", help="of the models (1); 0: as each model has it by itself")
    parser.add_argument("--switches", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "switch-bench")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    share_heaps()
    with tempfile.TemporaryDirectory() as home:
        first = load_config({"profile": "tiny", "threads": args.threads}, {"ASSISTANT_HOME": home})
        if args.shape:
            path = args.folder / f"parrot-{args.shape}"
            if not path.is_dir():
                parrot(SHAPES[args.shape], path, "Hello there.")
        else:
            write_decoder(path := Path(home) / "random.gguf")
        dtype = f"{args.dtype},float32" if args.shape else ",float32"
        other = replace(first, llm=str(path), dtype=dtype)
        rows = asyncio.run(measure(first, [(other, first)[number % 2] for number in range(args.switches)]))
    if args.out:
        args.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    for to, (count, told) in medians(rows).items():
        print(to, count, told)


if __name__ == "__main__":
    main()
