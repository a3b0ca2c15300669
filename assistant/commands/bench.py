"""Measure turns as a person has them: real time, spoken, some interrupted; median, p90 and p99 of every part.

  assistant bench                       40 turns with the models of this machine
  assistant bench --turns 200 --json out.json
  assistant bench --interrupt-every 0   nobody interrupts

The questions are spoken by the assistant's own voice. The first turn is told apart, and so is what the process's
memory grew by. Times are wall-clock on this machine, with whatever else runs on it.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

from assistant.commands._front import add_model_arguments, model_flags

NAME = "bench"
HELP = "measure the time to first sound, turn by turn"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, default=40, metavar="N")
    parser.add_argument("--interrupt-every", type=int, default=4, metavar="K", help="interrupt each K-th reply (4)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all figures here")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.cli import run_async

    return run_async(bench(args))


async def bench(args: argparse.Namespace) -> int:
    from assistant.bench.figures import figures_of, summary, table
    from assistant.bench.turns import hold, questions
    from assistant.config import load_config
    from assistant.start import open_talks

    def say(line: str) -> None:
        print(f"· {line}", file=sys.stderr, flush=True)

    async with open_talks(load_config(model_flags(args)), say) as process:
        asked = await questions(process.talks.engines.speaker)
        before = resident_bytes()
        measured = await hold(process.talks.open(), asked, args.turns, args.interrupt_every)
        grown = resident_bytes() - before
        facts = process.facts
    if not measured.timelines:
        print("no turn was answered; `assistant doctor` may say why", file=sys.stderr)
        return 1
    first, later = measured.timelines[0], figures_of(measured.timelines[1:] or measured.timelines)
    print(f"{facts['llm']} and {facts['tts']} on {facts['device']}, {platform.processor() or platform.machine()}; ms")
    print("\n".join(table(later)))
    told = ", ".join(f"{name} {value:.0f}" for name, value in first.figures.items() if name.endswith("_ms"))
    print(f"first turn: {told}")
    print(f"{measured.unanswered} of {args.turns} turns without an answer; memory grew by {grown / 1e6:.1f} MB")
    if args.json is not None:
        report = {
            "command": " ".join(sys.argv),
            "machine": platform.platform(),
            "facts": facts,
            "turns": args.turns,
            "unanswered": measured.unanswered,
            "first": dict(first.figures),
            "later": summary(later),
            "memory_grown_bytes": grown,
        }
        args.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return 0


def resident_bytes() -> int:
    """Memory of this process now; on systems without /proc the most it ever had."""
    try:
        fields = Path("/proc/self/statm").read_text("ascii").split()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(fields[1]) * 4096
