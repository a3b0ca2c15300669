"""Scores pauses, corrections and sounds behind a question, spoken to the whole pipeline in human-like voices.

Run:  python -m recipes.pause_score --work DIR --part test [--kind pause] [--json FILE]
      (needs what `recipes.asr.voices` needs)

Requests are those of `turns/broken_off.tsv`, in parts with silence between them. Detector, ears, turn ends, language
model, tools and voice are real, with a client's default settings. Time is the processor's, so other load changes no
figure. The score continues where an earlier run with the same `--work` stopped.

    pause       a request with a pause of 300 to 900 ms inside. A *false start* is any sound that is sent to the front
                before the request is over
    filler      the same for `turns/paused.tsv`, most of whose first parts end in a filler
    complete    requests without a pause: the wait from the last sample to the first sound
    correction  a request that is corrected behind a pause of 300 to 700 ms. Heard rightly: the words of both parts.
                Joined: one turn stands in the talk, all that was heard, and the model's state holds nothing else.
                Right: the answer is to the whole, and nothing of the first part is stored
                `--scripted`: a model that takes every pause for the end and notes down the request that it was given.
                So what is stored shows what became of the first part, however little a model understands
    behind      a question with an "uh" or a cleared throat 100, 250 or 400 ms behind it. Restarted: any sound of an
                answer was taken back
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
from assistant.contracts import Prompt
from assistant.events import (
    AppendAudio,
    AudioCommitted,
    AudioDelta,
    AudioPart,
    ItemDeleted,
    Message,
    ResponseCreated,
    ResponseDone,
    SpokenText,
    ToolUsed,
    TranscriptCompleted,
)
from assistant.talk import Session
from assistant.talk.talks import Talks
from assistant.tools.rows import Promise
from recipes.loop_questions import NOW
from recipes.loop_score import _within, spoken_words
from recipes.turns.processor_time import ProcessorLoop
from recipes.turns.sounds import RATE, Studio, Take, take
from recipes.turns.texts import COMPLETE, Part
from tests.fakes.models import Answer, FakeLLM

TEXTS = Path(__file__).parent / "turns" / "broken_off.tsv"
EARLIER = Path(__file__).parent / "turns" / "paused.tsv"
VOICES: dict[Part, tuple[str, ...]] = {"dev": ("joe", "kumo", "nezumi"), "test": ("heart", "alpha", "tebukuro")}
"""The two sets share no request and no voice."""
KINDS = ("pause", "filler", "complete", "correction", "behind")
PAUSES_MS = {"pause": (300, 500, 700, 900), "filler": (300, 500, 700, 900), "correction": (300, 500, 700)}
ASKED = (
    ("What time is it?", "3:25"), ("What is six times seven?", "42"),
    ("Set a timer for ten minutes.", "10 minutes"), ("How do you spell winter?", "w i n t e r"),
)  # fmt: skip
BEHIND, BEHIND_MS = ("Uh.", "Ahem.", "Hm.", "Um."), (100, 250, 400)
BLOCK = RATE // 50
AFTER_S = 3.0
"""Time after the last sample in which a turn ends, is answered, and could be reopened."""
PATIENCE_S = 60.0


@dataclass(slots=True)
class BrokenOff:
    """The course of one request. Moments are ms from its last sample."""

    name: str
    kind: str
    voice: str
    pause_ms: int
    text: str
    keys: list[str]
    gone: str = ""
    heard: list[str] = field(default_factory=list)
    said: str = ""
    tools: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    talk: list[str] = field(default_factory=list)
    """The user's turns that stand in the talk at the end."""
    rolled_back: str | None = None
    """How the model's state had to be changed to be that of this talk."""
    turns_ms: list[int] = field(default_factory=list)
    sounds_ms: list[int] = field(default_factory=list)
    """First sound of each response that sounded."""
    early: str = ""
    """The words of what sounded early."""
    reopened: int = 0

    @property
    def false_start(self) -> bool:
        return any(moment < 0 for moment in self.sounds_ms)

    @property
    def answered(self) -> bool:
        return self._holds(spoken_words(self.said))

    @property
    def heard_rightly(self) -> bool:
        heard = spoken_words(self.heard[-1]) if self.heard else []
        return _within(spoken_words(self.text), heard)

    @property
    def joined(self) -> bool:
        return self.heard[-1:] == self.talk and self.rolled_back is None

    @property
    def right(self) -> bool:
        """The answer or what is stored fits the whole, and nothing stored is of the first part alone."""
        stored = spoken_words(" ".join(self.stored))
        gone = bool(self.stored) and _within(spoken_words(self.gone), stored)
        return (self.answered or self._holds(stored)) and not gone and len(self.turns_ms) - self.reopened == 1

    @property
    def stored_alone(self) -> bool:
        """One thing is stored, the whole request as it was heard."""
        return len(self.stored) == 1 and spoken_words(self.stored[0]) == spoken_words(self.heard[-1])

    def _holds(self, words: list[str]) -> bool:
        return any(_within(spoken_words(key), words) for key in self.keys)


def requests(studio: Studio, part: Part, kind: str) -> Iterator[tuple[Take, BrokenOff]]:
    voices = VOICES[part]
    if kind in PAUSES_MS:
        with (EARLIER if kind == "filler" else TEXTS).open(newline="") as file:
            rows = [row for row in csv.DictReader(file, delimiter="\t") if row["part"] == part]
        rows = [row for row in rows if row.get("kind", kind) == kind]
        for i, row in enumerate(rows):
            voice, pause_ms = voices[i % len(voices)], PAUSES_MS[kind][i // len(voices) % len(PAUSES_MS[kind])]
            halves, gone = [row["first"], row["second"]], row.get("gone", "")
            yield spoken(studio, f"{part}/{kind}-{i:02d}", kind, voice, halves, pause_ms, row["keys"], gone)
    elif kind == "complete":
        for i, text in enumerate(COMPLETE[part]):
            yield spoken(studio, f"{part}/{kind}-{i:02d}", kind, voices[i % len(voices)], [text], 0, text)
    else:
        for i in range(24):
            (text, keys), gap_ms = ASKED[i % len(ASKED)], BEHIND_MS[i % len(BEHIND_MS)]
            spoken_parts = [text, BEHIND[i // len(ASKED) % len(BEHIND)]]
            yield spoken(
                studio, f"{part}/{kind}-{i:02d}", kind, voices[i // 3 % len(voices)], spoken_parts, gap_ms, keys
            )


def spoken(
    studio: Studio, name: str, kind: str, voice: str, parts: Sequence[str], pause_ms: int, keys: str, gone: str = ""
) -> tuple[Take, BrokenOff]:
    text = parts[0] if kind == "behind" else " ".join(parts)
    sound = take(name, kind, voice, text, [studio.say(voice, part) for part in parts], pause_ms)
    return sound, BrokenOff(name, kind, voice, pause_ms, text, keys.split(" / "), gone)


class Asker:
    """Asks in one session, and records the outcome."""

    def __init__(self, session: Session, asked: BrokenOff, end_s: float) -> None:
        self._session, self._asked, self._end_s = session, asked, end_s
        self._begin = 0.0
        self._turns: set[str] = set()
        self._sounded: set[str] = set()
        self._making = 0
        self._idle = asyncio.Event()

    async def ask(self, one: Take) -> None:
        loop = asyncio.get_running_loop()
        self._begin = loop.time()
        sound = np.pad(one.sound, (0, int(AFTER_S * RATE)))[: one.parts[-1][1] + int(AFTER_S * RATE)]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._session.run())
            group.create_task(self._note())
            for start in range(0, sound.size - BLOCK, BLOCK):
                await asyncio.sleep(self._begin + (start + BLOCK) / RATE - loop.time())
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
            ms = round((now() - self._begin - self._end_s) * 1000)
            match event:
                case AudioCommitted():
                    self._turns.add(event.item_id)
                    asked.turns_ms.append(ms)
                case ItemDeleted() if event.item_id in self._turns:
                    asked.reopened += 1
                case TranscriptCompleted():
                    asked.heard.append(event.transcript)
                case ResponseCreated():
                    asked.said, asked.tools, self._making = "", [], self._making + 1
                case AudioDelta() if event.response_id not in self._sounded:
                    self._sounded.add(event.response_id)
                    asked.sounds_ms.append(ms)
                case SpokenText():
                    asked.said += event.delta
                    asked.early = asked.said if ms < 0 else asked.early
                case ToolUsed():
                    asked.tools.append(f"{event.name} {event.arguments} -> {event.output}")
                case ResponseDone():
                    self._making -= 1
                    self._idle.set()


def note_down(prompt: Prompt) -> Sequence[Answer]:
    """Write the latest request down, and say so."""
    last = prompt.lines[-1]
    return ["I wrote that down."] if last.role == "tool" else [("note_add", {"text": last.text})]


def scripted_talks(app: App) -> Talks:
    """Talks as in the app, with a model that notes down every request."""
    services = app.talks._services
    llm: Any = FakeLLM(note_down)  # it keeps no capsules for programs
    llm.complete = 1.0
    return Talks(replace(services, engines=replace(services.engines, llm=llm)), settings=app.talks.defaults)


async def ask_all(wanted: Sequence[tuple[Take, BrokenOff]], kept: Path, scripted: bool) -> list[BrokenOff]:
    """Ask all requests. Each is written to `kept` when it is over; those already there are not asked again."""
    done = {row.name: row for row in map(_read, kept.read_text().splitlines())} if kept.exists() else {}
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ProcessorLoop)
    with tempfile.TemporaryDirectory() as home:
        config = load_config({"profile": "tiny", "threads": "1"}, {"ASSISTANT_HOME": home})
        async with open_talks(config, now=lambda: NOW) as app:
            loop.engines = app.models.deployment.thread
            talks = scripted_talks(app) if scripted else app.talks
            for one, asked in wanted:
                if asked.name in done:
                    continue
                app.home.change([(slot, row, None) for slot in app.home.slots for row in app.home.rows(slot)])
                session = talks.open()
                end = one.parts[0 if asked.kind == "behind" else -1][1]
                await Asker(session, asked, end / RATE).ask(one)
                asked.stored, asked.talk = _stored(app), _turns(session)
                if (llm := talks.engines.llm.state) is not None:
                    asked.rolled_back = (await llm.sync(session.talk, session.prompt_as(config.persona))).what
                talks.forget(session.talk)
                done[asked.name] = asked
                with kept.open("a") as file:
                    file.write(json.dumps(asdict(asked)) + "\n")
                print(f"\r{len(done)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [done[asked.name] for _, asked in wanted]


def _stored(app: App) -> list[str]:
    rows = [row for slot in app.home.slots for row in app.home.rows(slot)]
    return [f"{row.words} {row.at:%d %H:%M}" if isinstance(row, Promise) else row.words for row in rows]


def _turns(session: Session) -> list[str]:
    """The words of the user's turns that stand in the talk."""
    users = [item for item in session.items if isinstance(item, Message) and item.role == "user"]
    return [part.transcript or "" for item in users for part in item.content if isinstance(part, AudioPart)]


def _read(line: str) -> BrokenOff:
    return BrokenOff(**json.loads(line))


def summary(rows: Sequence[BrokenOff]) -> dict[str, Any]:
    firsts = [min((ms for ms in row.sounds_ms if ms >= 0), default=None) for row in rows]
    waits = [ms for ms in firsts if ms is not None]
    heard = [row for row in rows if row.heard_rightly]
    return {
        "n": len(rows),
        "false starts": sum(row.false_start for row in rows),
        "reopened": sum(row.reopened > 0 for row in rows),
        "heard rightly": len(heard),
        "joined": sum(row.joined for row in rows),
        "stored as heard, alone": sum(row.stored_alone for row in rows),
        "right": sum(row.right for row in rows),
        "right of those heard rightly": sum(row.right for row in heard),
        "sounded more than once": sum(len(row.sounds_ms) > 1 for row in rows),
        "wait_ms": {f"p{share}": round(float(np.percentile(waits, share))) for share in (50, 90)} if waits else {},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--every", type=int, default=1, help="use only every N-th request")
    parser.add_argument("--scripted", action="store_true", help="with a model that notes down every request")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    studio, report = Studio(args.work / "sound"), {}
    model = "-scripted" if args.scripted else ""
    for kind in args.kind or KINDS:
        wanted = list(requests(studio, args.part, kind))[:: args.every]
        with asyncio.Runner(loop_factory=ProcessorLoop) as runner:
            rows = runner.run(ask_all(wanted, args.work / f"{args.part}-{kind}{model}.jsonl", args.scripted))
        report[kind] = summary(rows) | {"rows": [asdict(row) | {"right": row.right} for row in rows]}
        print(args.part, kind, json.dumps(summary(rows)))
    if args.json is not None:
        command = f"python -m recipes.pause_score --work DIR --part {args.part}"
        args.json.write_text(json.dumps({"command": command, **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
