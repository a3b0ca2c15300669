"""Re-entry after an interruption against a normal turn, at talks of 1, 20 and 100 turns, in one interleaved run.

    python benchmarks/reentry.py [--rounds 10] [--json FILE] [model flags of `assistant ask`]

A normal turn is typed and answered aloud; then its reply is cut in the middle, as an interruption does, and the next
turn is typed. Compared are the times from the turn to the first sample of its reply. Typed, so that neither hearing
nor the wait for the end of a turn takes part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from pathlib import Path
from typing import Any

from assistant.commands._front import add_model_arguments, model_flags
from assistant.config import load_config
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
from assistant.ids import random_ids
from assistant.start import open_talks

LENGTHS = (1, 20, 100)
QUESTION, FOLLOW_UP = "what is 12 plus 30", "what time is it"


class Talk:
    """One session, driven turn by turn."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def fill(self, turns: int) -> None:
        """So many turns that were typed on both sides."""
        for index in range(turns - 1):
            for role, text in (("user", f"what is {index} plus 1"), ("assistant", f"{index} plus 1 is {index + 1}.")):
                await self.session.send(CreateItem(Message(random_ids("item"), role, (TextPart(text),))))

    async def turn(self, text: str) -> tuple[float, str, int]:
        """(ms to the first sample, item of the reply, its length in ms)."""
        await self.session.send(CreateItem(Message(random_ids("item"), "user", (TextPart(text),))))
        await self.session.send(CreateResponse())
        item, samples = "", 0
        while True:
            event = await self.session.events.receive()
            if isinstance(event, AudioDelta):
                item, samples = event.item_id, samples + event.pcm.size
            elif isinstance(event, ResponseDone):
                figures = event.timeline.figures if event.timeline is not None else {}
                return figures.get("ttfa_ms", float("nan")), item, samples // 24

    async def round(self) -> tuple[float, float]:
        """(a normal turn, the turn after a cut), ms."""
        normal, item, length_ms = await self.turn(QUESTION)
        again, item, length_ms = await self.turn(QUESTION)
        await self.session.send(TruncateItem(item, 0, length_ms // 2))
        await asyncio.sleep(0.3)  # the user is still speaking: the engines roll back meanwhile
        after, _, _ = await self.turn(QUESTION)
        return statistics.median([normal, again]), after


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    async with open_talks(load_config(model_flags(args)), print) as house:
        rows: dict[int, list[tuple[float, float]]] = {length: [] for length in LENGTHS}
        for _ in range(args.rounds):
            for length in LENGTHS:
                session = house.talks.open(Settings(turn_detection=None, paced=False, built_in_tools=True))
                running = asyncio.ensure_future(session.run())
                talk = Talk(session)
                await talk.fill(length)
                await talk.turn(FOLLOW_UP)  # folds the filled turns
                rows[length].append(await talk.round())
                session.close()
                await running
        return {
            str(length): {
                "n": len(pairs),
                "normal_ms": statistics.median(normal for normal, _ in pairs),
                "reentry_ms": statistics.median(after for _, after in pairs),
                "ratio": statistics.median(after / normal for normal, after in pairs),
            }
            for length, pairs in rows.items()
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    add_model_arguments(parser)
    args = parser.parse_args()
    figures = asyncio.run(measure(args))
    for length, row in figures.items():
        print(f"{length:>4} turns: normal {row['normal_ms']:7.1f} ms, re-entry {row['reentry_ms']:7.1f} ms, "
              f"ratio {row['ratio']:.2f} (n {row['n']})")  # fmt: skip
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
