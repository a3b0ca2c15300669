"""A whole spoken talk with the published 0.8B shape in packed weights: first sound, tokens a second, memory.

    python -m benchmarks.spoken_talk [--dtype int4] [--turns 20] [--threads 2] [--folder DIR]
                                     [--out benchmarks/results/spoken_talk_08b_int4.json]

Weights are random (`benchmarks.parrot`: real sizes, the shipped tokenizer, one sentence whatever is asked); voice and
ears are the shipped ones. The assistant's own voice asks in real time, over one open talk: N turns heard out, then N
turns whose replies are interrupted after a second. The output has the front's times of each turn, milliseconds of the
engine's own steps during the talk, and the resident memory after each turn. Captured steps and declared buffers are
counted before and after the turns: the numbers must not change. Some five minutes for 20 turns (1.6 GB of disk).
"""

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.bench.figures import distribution
from assistant.bench.turns import MeasuredTurn, hold, questions
from assistant.device.execution import give_back_memory
from assistant.events import SemanticVad
from assistant.llm.local import LocalLLM
from benchmarks.llm_load import config_of
from benchmarks.parrot import parrot

ASKED = ("what time is it", "who are you", "what is seven plus five", "what day is it today")
REPLY = "I can see a red cup, and beside it two green apples; some bread on an old table."


def memory_mb() -> dict[str, float]:
    """Memory of this process in MB: resident, resident without files, and the peak."""
    status = Path("/proc/self/status").read_text()
    kinds = {"resident": "VmRSS", "anonymous": "RssAnon", "peak": "VmHWM"}
    return {name: int(re.findall(rf"{key}:\s+(\d+)", status)[0]) / 1024 for name, key in kinds.items()}


class StepTimer:
    """Wall-clock milliseconds of the calls that decode, on the engines' thread."""

    def __init__(self, llm: LocalLLM) -> None:
        self.tokens, self.ms = 0, 0.0
        self._engine = llm.engine
        self._engine.step = self._timed(llm.engine.step, 1)  # type: ignore[method-assign]
        self._engine.catch_up = self._timed(llm.engine.catch_up, 0)  # type: ignore[method-assign]
        self._inside = False

    def _timed(self, call: Callable[..., Any], tokens: int) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            if self._inside:  # a step catches up by itself
                return call(*args)
            self._inside, began = True, time.perf_counter()
            try:
                return call(*args)
            finally:
                self._inside = False
                self.ms += (time.perf_counter() - began) * 1e3
                self.tokens += tokens

        return timed


def counted(app: App, llm: LocalLLM) -> dict[str, int]:
    buffers = app.models.contexts["llm"].buffers()
    return {"captured": llm.engine.graphs.captured, "buffers": len(buffers), "bytes": sum(b.nbytes for b in buffers)}


async def talk(app: App, turns: int, interrupt: bool) -> list[tuple[MeasuredTurn, dict[str, float]]]:
    """One talk; its last turn is heard out."""
    asked = await questions(app.talks.engines.tts, ASKED)
    session = app.talks.open(replace(app.talks.defaults, turn_detection=SemanticVad()))
    rows: list[tuple[MeasuredTurn, dict[str, float]]] = []
    await hold(session, asked, asked, turns, int(interrupt), lambda turn: rows.append((turn, memory_mb())))
    app.talks.forget(session.talk)
    return rows


def told(rows: list[tuple[MeasuredTurn, dict[str, float]]]) -> dict[str, Any]:
    """The figures; the first turn, which does everything for the first time, is listed separately."""
    times: dict[str, list[float]] = {}
    for turn, _ in rows[1:]:
        for name, ms in {**turn.figures, **({} if turn.timeline is None else turn.timeline.figures)}.items():
            times.setdefault(name, []).append(ms)
    figures = {name: vars_of(values) for name, values in sorted(times.items())}
    turns = [{"heard": turn.heard, "said": turn.said, **turn.figures, "memory_mb": memory} for turn, memory in rows]
    return {"figures": figures, "unanswered": sum("voice_to_voice" not in t.figures for t, _ in rows), "turns": turns}


def vars_of(values: list[float]) -> dict[str, float]:
    found = distribution(values)
    return {name: getattr(found, name) for name in ("n", "median", "p90", "most")}


async def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    flags = {"profile": "tiny", "llm": str(folder), "dtype": args.dtype, "threads": str(args.threads)}
    with tempfile.TemporaryDirectory() as home:
        async with open_talks(load_config(flags, {"ASSISTANT_HOME": home})) as app:
            llm = app.models.llm
            assert isinstance(llm, LocalLLM)
            give_back_memory()  # as the assistant does once it was idle for a while
            weights = sum(b.nbytes for b in app.models.contexts["llm"].buffers() if ".w." in b.name)
            result: dict[str, Any] = {"ready_s": app.ready_s, "weights_mb": weights / 2**20, "at_rest": memory_mb()}
            before, steps = counted(app, llm), StepTimer(llm)
            for name, interrupt in (("heard_out", False), ("interrupted", True)):
                result[name] = told(await talk(app, args.turns + interrupt, interrupt))
                show(name, result[name])
            result |= {"before": before, "after": counted(app, llm), "tokens": steps.tokens, "at_last": memory_mb()}
            result["ms_per_token"] = steps.ms / max(1, steps.tokens)
    return result


def show(name: str, found: dict[str, Any]) -> None:
    print(f"{name.replace('_', ' ')}, {found['unanswered']} without an answer")
    for figure in ("voice_to_voice", "ttfa_ms", "yield", "reentry_ms", "processor"):
        if figure in found["figures"]:
            row = found["figures"][figure]
            print(f"  {figure:16} median {row['median']:8.1f} ms, p90 {row['p90']:8.1f}, n {row['n']}")
    memory = [turn["memory_mb"]["resident"] for turn in found["turns"]]
    half = median(memory[len(memory) // 2 :])
    print(f"  resident         first turn {memory[0]:.0f} MB, second half {half:.0f}, most {max(memory):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=("bfloat16", "int8", "int4"), default="int4")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="folder that keeps the model between runs")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch) / "parrot"
        if not folder.exists():
            parrot(config_of("0.8b"), folder, REPLY)
        result = {"dtype": args.dtype, "threads": args.threads, "load": os.getloadavg()}
        result |= asyncio.run(measure(folder, args))
    print(f"{1e3 / result['ms_per_token']:.1f} tokens a second in the talk, {result['tokens']} of them")
    print(f"weights {result['weights_mb']:.0f} MB, at rest {result['at_rest']['resident']:.0f} MB")
    print(f"captured steps and buffers: {result['before']} before, {result['after']} after")
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    if result["before"] != result["after"]:
        raise SystemExit("steps were captured or buffers declared during the talk; both must be done before")


if __name__ == "__main__":
    main()
