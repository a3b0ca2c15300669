"""Measure how long turns take: spoken in real time, some interrupted; prints median, p90 and p99 of every part.

  assistant bench                       40 turns with this machine's models, about five seconds each
  assistant bench --turns 200 --json out.json
  assistant bench --interrupt-every 0   without interruptions
  assistant bench --without candidates  begin no reply before the turn is certain
  assistant bench --turn-end server     end a turn after 500 ms of silence, the default of stock clients
  assistant bench --beside 1            with somebody speaking in another talk all the time

The assistant's own voice speaks the questions. The first turn is reported separately. `front` figures are measured
outside the session, from the sound that goes in and comes out. Each part is also given as its share of all waiting, and
a step of either model as a multiple of reading its weights once. Times are wall-clock times on this machine. With
--json FILE each turn is saved in FILE.turns as it ends, so a run that is stopped loses nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError
from assistant.commands._front import JSON_HELP, add_model_arguments, check_writable, model_flags, save

if TYPE_CHECKING:
    from assistant.bench.turns import MeasuredTurn

NAME = "bench"
USAGE = "[OPTIONS]"
HELP = "measure the time to the first sound, turn by turn"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, default=40, metavar="N", help="number of turns (40)")
    parser.add_argument("--interrupt-every", type=int, default=4, metavar="K", help="interrupt every K-th reply (4)")
    parser.add_argument("--turn-end", choices=["semantic", "server"], default="semantic",
                        help="how the end of a turn is found (semantic, as the page does)")  # fmt: skip
    parser.add_argument("--beside", type=int, default=0, metavar="N", help="number of concurrent talks (0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help=JSON_HELP)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.commands._run import run_async

    for name, least in (("turns", 1), ("interrupt_every", 0), ("beside", 0)):
        if (given := getattr(args, name)) < least:
            raise AssistantError(f"--{name.replace('_', '-')} must be {least} or more, not {given}")
    check_writable(args.json)
    return run_async(bench(args))


async def bench(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.app.start import open_talks
    from assistant.bench.floor import floors
    from assistant.bench.turns import LONG, SHORT, hold, questions, speak_without_end
    from assistant.events import SemanticVad, ServerVad

    def say(line: str) -> None:
        print(f"· {line}", file=sys.stderr, flush=True)

    begin, turns = time.monotonic(), list["MeasuredTurn"]()
    told = None if args.json is None else args.json.with_name(args.json.name + ".turns").open("w", encoding="utf-8")

    def take(turn: MeasuredTurn) -> None:
        turns.append(turn)
        if told is not None:
            told.write(json.dumps(turn_json(turn)) + "\n")
            told.flush()
        pace = (time.monotonic() - begin) / len(turns)
        left = (args.turns - len(turns)) * pace / 60
        print(f"\r{len(turns)} of {args.turns} turns, {left:.1f} minutes left ", end="", file=sys.stderr, flush=True)

    process: Process | None = None
    try:
        async with open_talks(load_config(model_flags(args)), say) as app:
            short, long = [await questions(app.talks.engines.tts, texts) for texts in (SHORT, LONG)]
            begin, before = time.monotonic(), resident_bytes()
            detection = SemanticVad() if args.turn_end == "semantic" else ServerVad()
            settings = replace(app.talks.defaults, turn_detection=detection)
            async with asyncio.TaskGroup() as group:
                others = [app.talks.open(settings) for _ in range(args.beside)]
                speaking = [group.create_task(speak_without_end(other, long)) for other in others]
                await hold(app.talks.open(settings), short, long, args.turns, args.interrupt_every, take)
                for task in speaking:
                    task.cancel()
            grown = resident_bytes() - before
            process = Process(grown, app.facts, await floors(app.models), app.talks.metrics.outcomes)
    finally:
        print(file=sys.stderr)
        if told is not None:
            told.close()
        report(args, turns, process)
    return 0 if any(turn.timeline is not None for turn in turns) else 1


@dataclass(frozen=True)
class Process:
    """Figures of the process, taken after the last turn."""

    memory_grown_bytes: int
    facts: Mapping[str, object]
    floors: Mapping[str, Mapping[str, float]]
    """See `assistant.bench.floor`; empty where a model is remote."""
    candidates: Mapping[str, int]
    """How many replies that were begun before the turn was certain were released, late or dropped."""


def report(args: argparse.Namespace, turns: Sequence[MeasuredTurn], process: Process | None) -> None:
    """Print and save what there is. `process` None: the talk was stopped."""
    from assistant.bench.figures import figures_of, shares_of, summary, table

    answered = [turn for turn in turns if turn.timeline is not None]
    if not answered:
        print("no turn was answered; `assistant doctor` may say why", file=sys.stderr)
        return
    timelines = [turn.timeline for turn in answered if turn.timeline is not None]
    first, later = timelines[0], timelines[1:] or timelines
    values = figures_of(later)
    for turn in answered[1:]:
        for name, ms in turn.figures.items():
            values.setdefault(f"front: {name}_ms", []).append(ms)
    shares = shares_of(later)
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} processors; milliseconds, first turn left out")
    print("\n".join(table(values, shares)))
    told = ", ".join(f"{name} {value:.0f}" for name, value in first.figures.items() if name.endswith("_ms"))
    print(f"first turn: {told}")
    for name, floor in process.floors.items() if process is not None else ():
        told = f"{floor['ratio']:.1f} x reading its weights ({floor['read_ms']:.2f} ms)"
        print(f"{name}: {floor['step_ms']:.2f} ms, {told}")
    if process is not None and process.candidates:
        told = ", ".join(f"{count} {name}" for name, count in process.candidates.items())
        print(f"replies begun before the turn was certain: {told}")
    grown = "" if process is None else f"; memory grew by {process.memory_grown_bytes / 1e6:.1f} MB"
    print(f"{len(turns) - len(answered)} of {len(turns)} turns without an answer{grown}")
    if args.json is not None:
        whole = {
            "command": " ".join(["assistant", *sys.argv[1:]]),
            "machine": platform.platform(),
            "processors": os.cpu_count(),
            "turns": len(turns),
            "unanswered": len(turns) - len(answered),
            "first": dict(first.figures),
            "later": summary(values),
            "shares": {name: round(share, 4) for name, share in shares.items()},
            **({} if process is None else asdict(process)),
        }
        save(args.json, (json.dumps(whole, indent=1) + "\n").encode())


def turn_json(turn: MeasuredTurn) -> dict[str, object]:
    """One turn as JSON values."""
    from assistant.telemetry.trace import to_json

    return {
        "question": turn.question,
        "interrupted": turn.interrupted,
        "heard": turn.heard,
        "said": turn.said.strip(),
        "tools": turn.tools,
        "front_ms": {name: round(ms, 3) for name, ms in turn.figures.items()},
        "timeline": None if turn.timeline is None else to_json(turn.timeline),
    }


def resident_bytes() -> int:
    """Memory of this process now; on systems without /proc the most it ever had."""
    try:
        fields = Path("/proc/self/statm").read_text("ascii").split()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(fields[1]) * 4096
