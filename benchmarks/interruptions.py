"""Which interruptions stop the reply, and which sounds do not: `python -m benchmarks.interruptions --cache DIR`.

The sounds of `recipes.turns` (make them with `python -m recipes.turns.sounds --cache DIR`) over a reply: people who cut
in, nods, coughs, laughs and hums. A whole session runs with the product's own detector and ears, on a loop whose time
jumps; language model and voice are fakes that tell a long story. Hearing takes as much loop time as it takes processor
time here, so the figures are those of an idle machine, whatever else runs on this one.

    yield     from the first sample of speech to the report at the front: a stock client flushes its player
              (`speech_started`), the page falls silent (held or stopped); for the real interruptions
    duck      to the moment in which the page is asked to lower its sound
    missed    share of the real interruptions over which the reply went on
    survived  share of the other sounds over which the reply was spoken whole
The front's own part comes on top: the page fades within 12 ms and has an output buffer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assistant.asr import open_asr
from assistant.contracts import ASR
from assistant.events import (
    AppendAudio,
    CreateItem,
    CreateResponse,
    Duck,
    Message,
    Nod,
    ResponseDone,
    ServerVad,
    Settings,
    SpeechStarted,
    StopPlayback,
    TextPart,
)
from recipes.turns.sounds import ACTORS, RATE, Studio, Take, overlaps
from tests.fakes.loop import run
from tests.fakes.talk import World

T = TypeVar("T")
FRONTS = {
    "stock": Settings(),
    "page": Settings(duck=True),
    "server_vad": Settings(turn_detection=ServerVad()),
}
STORY = "Once there was an old lighthouse keeper who counted every ship that passed him in the night. " * 4
AT_S = 2.0
"""The start of the sound; its speech comes half a second later."""
FRAME = RATE // 50


@dataclass(frozen=True, slots=True)
class Heard:
    """The outcome of one sound over a reply. Times are ms from its first sample of speech, None: it never happened."""

    name: str
    kind: str
    front: str
    ducked_ms: float | None
    silent_ms: float | None
    told_ms: float | None
    whole: bool
    nod: str


async def in_its_time(function: Callable[[], T]) -> T:
    """Call at once, and let the loop's time advance by the processor time used."""
    began = time.process_time()
    result = function()
    await asyncio.sleep(time.process_time() - began)
    return result


def over_a_reply(take: Take, front: str, asr: ASR) -> Heard:
    world = World(lambda prompt: [STORY], FRONTS[front], asr=asr, offload=in_its_time)

    async def talk() -> None:
        frames = [AppendAudio(take.sound[i : i + FRAME], RATE) for i in range(0, take.sound.size, FRAME)]
        steps = [(AT_S + (i + 1) * 0.02, frame) for i, frame in enumerate(frames)]
        question = CreateItem(Message("u", "user", (TextPart("a story"),)))
        until = AT_S + take.sound.size / RATE + 24
        await world.talk((0.0, question), (0.1, CreateResponse()), *steps, until=until, microphone=False)

    run(talk())
    first = AT_S + take.parts[0][0] / RATE

    def when(kind: type, level: float | None = None) -> float | None:
        moments = [
            (got.at - first) * 1000 for got in world.log
            if isinstance(got.event, kind) and (level is None or got.event.level == level)
        ]  # fmt: skip
        return round(moments[0], 1) if moments else None

    held, stopped, told = when(Duck, 0.0), when(StopPlayback), when(SpeechStarted)
    silent = min((one for one in (held, stopped) if one is not None), default=None)
    done = world.of(ResponseDone)
    whole = told is None and stopped is None and done[0].response.status == "completed"
    nods = " ".join(nod.text for nod in world.of(Nod))
    return Heard(take.name, take.kind, front, when(Duck, 0.25), silent, told, whole, nods)


def summary(heard: Sequence[Heard]) -> dict[str, Any]:
    cut_in = [one for one in heard if one.kind == "interruption"]
    rest = [one for one in heard if one.kind != "interruption"]
    page = heard[0].front == "page"
    yields = [ms for one in cut_in if not one.whole and (ms := one.silent_ms if page else one.told_ms) is not None]
    missed = round(sum(one.whole for one in cut_in) / len(cut_in), 3)
    figures: dict[str, Any] = {"interruptions": len(cut_in), "missed": missed, "yield_ms": spread(yields)}
    if page:
        figures["duck_ms"] = spread([one.ducked_ms for one in cut_in if one.ducked_ms is not None])
        figures["verdict_ms"] = spread([one.told_ms for one in cut_in if one.told_ms is not None])
    kinds: dict[str, list[bool]] = defaultdict(list)
    for one in rest:
        kinds[one.kind].append(one.whole)
    figures["survived"] = {"n": len(rest), "share": round(sum(one.whole for one in rest) / len(rest), 3)}
    figures["survived"] |= {kind: f"{sum(whole)} of {len(whole)}" for kind, whole in sorted(kinds.items())}
    return figures


def summaries(heard: Sequence[Heard]) -> dict[str, Any]:
    """Summaries for all sounds and for each voice; actors, who shout, count as one."""
    groups: dict[str, list[Heard]] = {"all": [*heard]}
    for one in heard:
        voice = one.name.split("/")[1]
        groups.setdefault("actors" if voice in (*ACTORS["dev"], *ACTORS["test"]) else voice, []).append(one)
    return {name: summary(group) for name, group in groups.items()}


def spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"n": 0}
    middle, ninety, last = (round(float(np.percentile(values, share))) for share in (50, 90, 99))
    return {"n": len(values), "median": middle, "p90": ninety, "p99": last}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--front", choices=sorted(FRONTS), action="append")
    parser.add_argument("--every", type=int, default=1, help="use only every N-th sound")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    asr, report = open_asr("moonshine"), {}
    takes = list(overlaps(Studio(args.cache), args.part))[:: args.every]
    for front in args.front or ("stock", "page"):
        heard = []
        for take in takes:
            heard.append(over_a_reply(take, front, asr))
            print(json.dumps(asdict(heard[-1])), file=sys.stderr, flush=True)
        figures = summaries(heard)
        report[front] = figures | {"rows": [asdict(one) for one in heard]}
        print(front, json.dumps(figures, indent=1))
    if args.json is not None:
        command = f"python -m benchmarks.interruptions --cache DIR --part {args.part}"
        args.json.write_text(json.dumps({"command": command, **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
