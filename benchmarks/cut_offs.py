"""Is a request with a pause inside answered whole? `python -m benchmarks.cut_offs --work DIR [--part dev|test]`.

The requests of `recipes/turns/paused.tsv` in the voices of `recipes.asr.voices`, with a pause of 300 to 900 ms after a
filler or an open phrase, and the same sound without the pause as the control. Whole sessions run with a client's
defaults: detector, ears, turn ends, candidates, reopening, tools and the shipped language model are real.
The voice is a fake that speaks at a person's pace: 60 ms to its first sound, and nobody listens.

Time is the processor's (`recipes.turns.processor_time`), so other load on the machine does not change the figures.

    right     the answer's words are right, as in `recipes.loop_score`, and the talk contains exactly one turn
    early     a turn was certain before the request was over
    reopened  share of these that were taken back when the user went on
    wait      from the last sample of a control to the moment in which its turn is certain, ms
    kept      right with the pause, among those that are right without
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.events import (
    AppendAudio,
    AudioCommitted,
    ItemDeleted,
    ResponseCreated,
    ResponseDone,
    SpokenText,
    ToolUsed,
    TranscriptCompleted,
)
from assistant.talk import Session
from assistant.talk.talks import Talks
from recipes.loop_questions import NOW
from recipes.loop_score import _within, spoken_words
from recipes.turns.processor_time import ProcessorLoop
from recipes.turns.sounds import RATE, Studio, Take, take
from recipes.turns.texts import Part
from tests.fakes.models import FakeTTS

TEXTS = Path(__file__).parents[1] / "recipes" / "turns" / "paused.tsv"
VOICES: dict[Part, tuple[str, ...]] = {"dev": ("joe", "kumo"), "test": ("heart", "alpha")}
"""Each voice says all requests of its set. The two sets share no request and no voice; each has one with an accent."""
PAUSES_MS = (300, 500, 700, 900)
JOINT_MS = 40
"""Gap between the two parts of a control: too short for the detector to see a pause."""
FIRST_SOUND_S = 0.06
BLOCK = RATE // 50
AFTER_S = 3.0
"""Time after the last sample in which a turn ends, is answered, and could be reopened."""
PATIENCE_S = 60.0


# -------------------------------------------------------------------------------------------------- requests


@dataclass(slots=True)
class PausedRequest:
    """The course of one request. Moments are ms from its last sample."""

    name: str
    part: Part
    voice: str
    pause_ms: int
    text: str
    keys: list[str]
    heard: list[str] = field(default_factory=list)
    said: str = ""
    tools: list[str] = field(default_factory=list)
    certain_ms: list[int] = field(default_factory=list)
    """One entry per turn."""
    reopened: int = 0

    @property
    def early(self) -> bool:
        return any(moment < 0 for moment in self.certain_ms)

    @property
    def right(self) -> bool:
        words = spoken_words(self.said)
        found = any(_within(spoken_words(key), words) for key in self.keys)
        return found and len(self.certain_ms) - self.reopened == 1


def requests(studio: Studio, part: Part) -> Iterator[tuple[Take, PausedRequest]]:
    """Every request, each with its pause and without."""
    with TEXTS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["part"] == part]
    for i, row in enumerate(rows):
        halves = [row["first"], row["second"]]
        for place, voice in enumerate(VOICES[part]):
            spoken = [studio.say(voice, half) for half in halves]
            for pause_ms in (PAUSES_MS[(i // 2 + (i + place) % 2) % len(PAUSES_MS)], 0):
                name = f"{part}/{voice}/{i:02d}-{pause_ms}"
                sound = take(name, "paused", voice, " ".join(halves), spoken, pause_ms or JOINT_MS)
                yield sound, PausedRequest(name, part, voice, pause_ms, sound.text, row["keys"].split(" / "))


class Speaker:
    """Asks in one session, and records the outcome."""

    def __init__(self, session: Session, asked: PausedRequest) -> None:
        self._session, self._asked = session, asked
        self._end = 0.0
        self._turns: set[str] = set()
        self._making = 0
        self._idle = asyncio.Event()

    async def ask(self, one: Take) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        self._end = begin + one.parts[-1][1] / RATE
        sound = np.pad(one.sound, (0, int(AFTER_S * RATE)))[: one.parts[-1][1] + int(AFTER_S * RATE)]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._session.run())
            group.create_task(self._note())
            for start in range(0, sound.size - BLOCK, BLOCK):
                await asyncio.sleep(begin + (start + BLOCK) / RATE - loop.time())
                await self._session.send(AppendAudio(sound[start : start + BLOCK], RATE))
            with suppress(TimeoutError):  # a story may take longer; its first words are enough
                async with asyncio.timeout(PATIENCE_S):
                    while self._making:
                        self._idle.clear()
                        await self._idle.wait()
            self._session.close()

    async def _note(self) -> None:
        asked, now = self._asked, asyncio.get_running_loop().time
        async for event in self._session.events:
            match event:
                case AudioCommitted():
                    self._turns.add(event.item_id)
                    asked.certain_ms.append(round((now() - self._end) * 1000))
                case ItemDeleted() if event.item_id in self._turns:
                    asked.reopened += 1
                case TranscriptCompleted():
                    asked.heard.append(event.transcript)
                case ResponseCreated():
                    asked.said, asked.tools, self._making = "", [], self._making + 1
                case SpokenText():
                    asked.said += event.delta
                case ToolUsed():
                    asked.tools.append(f"{event.name} {event.arguments} -> {event.output}")
                case ResponseDone():
                    self._making -= 1
                    self._idle.set()


async def ask_all(wanted: Sequence[tuple[Take, PausedRequest]], kept: Path) -> list[PausedRequest]:
    """Ask all requests. Each is written to `kept` when it is over; those already there are not asked again."""
    done = {row.name: row for row in map(_read, kept.read_text().splitlines())} if kept.exists() else {}
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ProcessorLoop)
    with tempfile.TemporaryDirectory() as home:
        config = load_config({"profile": "tiny", "threads": "1"}, {"ASSISTANT_HOME": home})
        async with open_talks(config, now=lambda: NOW) as app:
            loop.engines = app.models.deployment.thread
            talks = _talks(app)
            for one, asked in wanted:
                if asked.name in done:
                    continue
                app.home.change([(slot, row, None) for slot in app.home.slots for row in app.home.rows(slot)])
                session = talks.open()
                await Speaker(session, asked).ask(one)
                talks.forget(session.talk)
                done[asked.name] = asked
                with kept.open("a") as file:
                    file.write(json.dumps(asdict(asked)) + "\n")
                print(f"\r{len(done)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [replace(done[asked.name], keys=asked.keys) for _, asked in wanted]


def _read(line: str) -> PausedRequest:
    return PausedRequest(**json.loads(line))


def _talks(app: App) -> Talks:
    """Talks as in the app, with a voice that needs no computation."""
    services = app.talks._services
    voice = FakeTTS(prefill_s=FIRST_SOUND_S)
    return Talks(replace(services, engines=replace(services.engines, tts=voice)), settings=app.talks.defaults)


# --------------------------------------------------------------------------------------------------- figures


def summary(rows: Sequence[PausedRequest]) -> dict[str, Any]:
    controls = {row.name.rsplit("-", 1)[0]: row for row in rows if not row.pause_ms}
    paused = [row for row in rows if row.pause_ms]
    fair = [row for row in paused if controls[row.name.rsplit("-", 1)[0]].right]
    early = [row for row in paused if row.early]
    waits = [row.certain_ms[0] for row in controls.values() if len(row.certain_ms) == 1]
    return {
        "n": len(paused),
        "right": _share([row.right for row in paused]),
        "right without the pause": _share([row.right for row in controls.values()]),
        "kept": _share([row.right for row in fair]),
        "kept of": len(fair),
        "early": _share([row.early for row in paused]),
        "reopened": _share([row.reopened > 0 for row in early]),
        "wait_ms": {f"p{share}": round(float(np.percentile(waits, share))) for share in (50, 90)} if waits else {},
    }


def groups(rows: Sequence[PausedRequest]) -> dict[str, list[PausedRequest]]:
    """All rows, by voice, and by the length of the pause; a request and its control are neighbours."""
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    return {
        "all": [*rows],
        **{voice: [row for row in rows if row.voice == voice] for voice in sorted({row.voice for row in rows})},
        **{f"{ms} ms": [row for pair in pairs for row in pair if pair[0].pause_ms == ms] for ms in PAUSES_MS},
    }


def _share(of: Sequence[bool]) -> float | None:
    return round(sum(of) / len(of), 3) if of else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--part", choices=("dev", "test"), action="append")
    parser.add_argument("--every", type=int, default=1, help="use only every N-th request")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    studio, report = Studio(args.work / "sound"), {}
    for part in args.part or ("dev", "test"):
        wanted = [pair for i, pair in enumerate(requests(studio, part)) if i // 2 % args.every == 0]
        with asyncio.Runner(loop_factory=ProcessorLoop) as runner:
            rows = runner.run(ask_all(wanted, args.work / f"cut_offs-{part}.jsonl"))
        figures = {name: summary(group) for name, group in groups(rows).items() if group}
        print(part, json.dumps(figures, indent=1))
        report[part] = figures | {"rows": [asdict(row) | {"right": row.right} for row in rows]}
    if args.json is not None:
        command = "python -m benchmarks.cut_offs --work DIR"
        args.json.write_text(json.dumps({"command": command, **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
