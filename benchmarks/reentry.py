"""Re-entry after an interruption compared with a normal turn, in talks of 1, 20 and 100 turns, in one interleaved run.

    python benchmarks/reentry.py [--rounds 10] [--json FILE] [model flags of `assistant ask`]

A normal turn is typed and answered aloud; then its reply is cut in the middle, as an interruption does, and the next
turn is typed; then comes one more normal turn. The times from a turn to the first sample of its reply are compared: the
one after the cut with the mean of the normal turns before and after it. Turns are typed, so neither hearing nor the
wait for the end of a turn matters. Each round opens a new talk of each length; the parts are printed too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assistant.app.config import load_config
from assistant.app.start import open_talks
from assistant.base.ids import random_ids
from assistant.bench.figures import parts_of
from assistant.commands._front import add_model_arguments, model_flags
from assistant.events import (
    AudioDelta,
    CreateItem,
    CreateResponse,
    Message,
    ResponseDone,
    Settings,
    TextPart,
    TruncateItem,
)

LENGTHS = (1, 20, 100)
QUESTION, FOLLOW_UP = "what is 12 plus 30", "what time is it"
SPEAKING_S = 0.3
"""The user is speaking: meanwhile the engines roll back."""


@dataclass(frozen=True)
class Timed:
    """`ms` to the first sample, how they were spent, the reply's item and the length of its sound."""

    ms: float
    parts: dict[str, float]
    item: str
    length_ms: int


class MeasuredTalk:
    """One session, driven turn by turn."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def fill(self, turns: int) -> None:
        """Add this many turns, typed on both sides."""
        for index in range(turns - 1):
            for role, text in (("user", f"what is {index} plus 1"), ("assistant", f"{index} plus 1 is {index + 1}.")):
                await self.session.send(CreateItem(Message(random_ids("item"), role, (TextPart(text),))))

    async def turn(self, text: str) -> Timed:
        """Run one turn with its whole reply."""
        await self.session.send(CreateItem(Message(random_ids("item"), "user", (TextPart(text),))))
        await self.session.send(CreateResponse())
        item, samples = "", 0
        while True:
            event = await self.session.events.receive()
            if isinstance(event, AudioDelta):
                item, samples = event.item_id, samples + event.pcm.size
            elif isinstance(event, ResponseDone):
                assert event.timeline is not None
                return Timed(event.timeline.figures["ttfa_ms"], parts_of(event.timeline), item, samples // 24)

    async def round(self) -> tuple[Timed, Timed, Timed]:
        """A normal turn, the turn after that one was cut, another normal turn."""
        before = await self.turn(QUESTION)
        await self.session.send(TruncateItem(before.item, 0, before.length_ms // 2))
        await asyncio.sleep(SPEAKING_S)
        after = await self.turn(QUESTION)
        await asyncio.sleep(SPEAKING_S)
        return before, after, await self.turn(QUESTION)


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    async with open_talks(load_config(model_flags(args)), print) as app:
        rows: dict[int, list[tuple[Timed, Timed, Timed]]] = {length: [] for length in LENGTHS}
        for number in range(args.rounds):
            for length in LENGTHS:
                session = app.talks.open(Settings(turn_detection=None, paced=False, built_in_tools=True))
                running = asyncio.ensure_future(session.run())
                talk = MeasuredTalk(session)
                await talk.fill(length)
                await talk.turn(FOLLOW_UP)  # folds the filled turns
                rows[length].append(await talk.round())
                session.close()
                await running
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
    return {str(length): figures(rounds) for length, rounds in rows.items()}


def figures(rounds: Sequence[tuple[Timed, Timed, Timed]]) -> dict[str, Any]:
    """Medians in milliseconds, and the quartiles of the ratio."""
    ratios = [after.ms * 2 / (before.ms + behind.ms) for before, after, behind in rounds]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    normal = [turn for before, _, behind in rounds for turn in (before, behind)]
    after = [turn for _, turn, _ in rounds]
    return {
        "n": len(rounds),
        "normal_ms": round(statistics.median(turn.ms for turn in normal), 2),
        "reentry_ms": round(statistics.median(turn.ms for turn in after), 2),
        "ratio": round(middle, 3),
        "ratio_quartiles": [round(low, 3), round(high, 3)],
        "normal_parts": medians(normal),
        "reentry_parts": medians(after),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def medians(turns: Sequence[Timed]) -> dict[str, float]:
    names = dict.fromkeys(name for turn in turns for name in turn.parts)
    return {name: round(statistics.median(turn.parts.get(name, 0.0) for turn in turns), 2) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    add_model_arguments(parser)
    args = parser.parse_args()
    measured = asyncio.run(measure(args))
    for length, row in measured.items():
        low, high = row["ratio_quartiles"]
        print(f"{length:>4} turns: normal {row['normal_ms']:7.1f} ms, re-entry {row['reentry_ms']:7.1f} ms, "
              f"ratio {row['ratio']:.2f} (quartiles {low:.2f} to {high:.2f}, n {row['n']})")  # fmt: skip
        for name, ms in row["normal_parts"].items():
            print(f"      {name:<14}{ms:8.1f}{row['reentry_parts'].get(name, 0.0):8.1f}")
    if args.json is not None:
        args.json.write_text(json.dumps(measured, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
