"""Scores the whole loop: spoken questions through hearing, language model, tools and voice, judged by listeners.

Run:  python -m recipes.loop_score --turns 200 --json FILE
      (needs espeak-ng, festival, festvox-kdlpc16k, festvox-us-slt-hts; for the human-like voices what
      `recipes.asr.voices` needs)

Questions come in synthetic voices, half of them robots and half human-like, faster than real time: a second and a half
of silence ends each turn, found by the detector as in a talk. The clock of the tools stands still. An answer is right
if a listener hears its key words in order. There are three listeners: pocketsphinx *fitted* to the assistant's sort of
sentences (a trigram of replies), pocketsphinx with the package's *general* model, and, the strongest, the product's own
*ears* for open English, which were fitted to no voice and no reply. The same questions are also typed, which shows the
result of perfect hearing. The score continues where an earlier run with the same `--work` stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import samplerate
import soundfile
from pocketsphinx import Config as EarConfig
from pocketsphinx import Decoder, get_model_path

from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.base.ids import random_ids
from assistant.events import (
    REPLY_RATE,
    AppendAudio,
    AudioCleared,
    AudioCommitted,
    AudioDelta,
    ClearAudio,
    CreateItem,
    CreateResponse,
    Message,
    Pcm,
    ResponseCreated,
    ResponseDone,
    ResponseParams,
    SemanticVad,
    Settings,
    SpokenText,
    TextDelta,
    TextPart,
    ToolUsed,
    TranscriptCompleted,
)
from assistant.llm.small.reading import for_small_model
from assistant.talk import Session
from assistant.text.written import as_written
from recipes.asr import ears
from recipes.hearing import count_grams, pronunciations, write_arpa
from recipes.hearing_score import plain
from recipes.loop_questions import NOW, Exercise, talks
from recipes.texts.talks import reply_sentences
from tts_engine.text import speech_text

ROBOTS: dict[str, list[str]] = {
    "espeak us +f2": ["espeak-ng", "-v", "en-us+f2", "-s", "150", "-w", "{out}", "{text}"],
    "espeak nyc +m7": ["espeak-ng", "-v", "en-us-nyc+m7", "-s", "145", "-w", "{out}", "{text}"],
    "espeak rp +m3": ["espeak-ng", "-v", "en-gb-x-rp+m3", "-s", "150", "-w", "{out}", "{text}"],
    "espeak scotland +f4": ["espeak-ng", "-v", "en-gb-scotland+f4", "-s", "145", "-w", "{out}", "{text}"],
    "festival ked": ["text2wave", "-eval", "(voice_ked_diphone)", "-o", "{out}"],
    "festival slt hts": ["text2wave", "-eval", "(voice_cmu_us_slt_arctic_hts)", "-o", "{out}"],
}
"""The last one is also the voice from which the assistant's own was made."""
HUMAN_LIKE = ("heart", "joe", "kumo", "alpha", "nezumi", "tebukuro")
VOICES = tuple(voice for pair in zip(HUMAN_LIKE, ROBOTS, strict=True) for voice in pair)
PERSONAS = ("ada", "ben")
BEFORE_S, AFTER_S = 0.3, 1.5
REPLIES = 30_000
"""Number of sentences behind the fitted listener."""


@dataclass
class ScoredTurn:
    """One turn and its outcome."""

    talk: int
    place: int
    kind: str
    voice: str
    persona: str
    asked: str
    keys: tuple[str, ...]
    needs: int
    heard: str = ""
    commits: int = 0
    tools: list[str] = field(default_factory=list)
    said: str = ""
    typed: str = ""
    typed_tools: list[str] = field(default_factory=list)
    fitted: str = ""
    general: str = ""
    ears: str = ""

    @property
    def heard_right(self) -> bool:
        return _bare(for_small_model(self.heard)) == _bare(for_small_model(self.asked))

    def right(self, words: Sequence[str]) -> bool:
        """Whether one of the keys appears in these words, in order. For a count, nothing else may appear."""
        wanted = [spoken_words(key) for key in self.keys]
        return list(words) in wanted if self.kind == "count" else any(_within(key, words) for key in wanted)

    @property
    def thought_right(self) -> bool:
        return self.right(spoken_words(self.said))


def _bare(text: str) -> list[str]:
    return text.lower().replace("'s", " is").split()


def spoken_words(text: str) -> list[str]:
    """The words of a written text as they are spoken."""
    return plain(speech_text(text))


def _within(wanted: Sequence[str], words: Sequence[str]) -> bool:
    left = iter(words)
    return bool(wanted) and all(word in left for word in wanted)


# ------------------------------------------------------------------------------------------------ talking


def question_sound(text: str, voice: str, path: Path) -> Pcm:
    """float32 at 24 kHz, peak 0.5, silence before and after; kept in `path`."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if voice in ROBOTS:
            command = [part.format(out=path, text=text) for part in ROBOTS[voice]]
            subprocess.run(command, check=True, input=text.encode())
        else:
            soundfile.write(path, *human_like(voice)(text))
    wave, rate = soundfile.read(path, dtype="float32")
    wave = samplerate.resample(wave, REPLY_RATE / rate, "sinc_medium")
    wave = wave / max(1e-6, float(np.abs(wave).max())) * 0.5
    before, after = (np.zeros(int(s * REPLY_RATE), np.float32) for s in (BEFORE_S, AFTER_S))
    return np.concatenate([before, wave, after]).astype(np.float32)


@cache
def human_like(voice: str) -> Callable[[str], tuple[Pcm, int]]:
    """A text → its sound and rate."""
    from recipes.asr.voices import VOICES as MAKERS

    return MAKERS[voice]()


class Examiner:
    """One session, turn by turn; nobody waits for real time."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def aloud(self, sound: Pcm, row: ScoredTurn) -> Pcm:
        """Speak; fills in the words heard and said, returns the reply's sound."""
        send = self._session.send
        await send(AppendAudio(sound, REPLY_RATE))
        await send(ClearAudio())  # answered when all of the sound has been digested
        parts: list[Pcm] = []
        waiting, digested, heard = 0, False, []
        async for event in self._session.events:
            match event:
                case AudioCleared():
                    digested = True
                case AudioCommitted():
                    row.commits += 1
                case TranscriptCompleted():
                    heard.append(event.transcript)
                case ResponseCreated():
                    waiting, row.said, row.tools, parts = waiting + 1, "", [], []
                case ResponseDone():
                    waiting -= 1
                case ToolUsed():
                    row.tools.append(f"{event.name} {event.arguments} -> {event.output}")
                case SpokenText():
                    row.said += event.delta
                case AudioDelta():
                    parts.append(event.pcm)
            if digested and not waiting:
                break
        row.heard = " ".join(heard)
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    async def typed(self, text: str, row: ScoredTurn) -> None:
        await self._session.send(CreateItem(Message(random_ids("item"), "user", (TextPart(text),))))
        await self._session.send(CreateResponse(ResponseParams(modality="text")))
        async for event in self._session.events:
            match event:
                case TextDelta():
                    row.typed += event.delta
                case ToolUsed():
                    row.typed_tools.append(f"{event.name} {event.arguments} -> {event.output}")
                case ResponseDone():
                    return


async def hold(app: App, number: int, questions: Sequence[Exercise], work: Path) -> list[ScoredTurn]:
    """One talk, spoken in one session and typed in another."""
    voice, persona = VOICES[number % len(VOICES)], PERSONAS[number // len(VOICES) % len(PERSONAS)]
    rows = [
        ScoredTurn(number, place, q.kind, voice, persona, q.spoken, q.keys, q.needs)
        for place, q in enumerate(questions)
    ]
    for spoken in (True, False):
        app.home.change([(slot, row, None) for slot in app.home.slots for row in app.home.rows(slot)])
        detection = SemanticVad("low") if spoken else None
        session = app.talks.open(Settings(persona=persona, paced=False, turn_detection=detection))
        running = asyncio.ensure_future(session.run())
        caller = Examiner(session)
        for row in rows:
            if not spoken:
                await caller.typed(as_written(row.asked), row)
                continue
            name = f"{number:03d}-{row.place}.wav"
            sound = await asyncio.to_thread(question_sound, row.asked, voice, work / "questions" / name)
            reply = await caller.aloud(sound, row)
            (work / "replies").mkdir(exist_ok=True)
            soundfile.write(work / "replies" / name, reply, REPLY_RATE)
        session.close()
        await running
        app.talks.forget(session.talk)
    return rows


# ------------------------------------------------------------------------------------------------ judging


class Listener:
    """A pocketsphinx decoder that hears each reply alone, with dither and silence around it."""

    def __init__(self, **files: str) -> None:
        self._decoder = Decoder(EarConfig(**files, loglevel="FATAL"))
        self._first = self._decoder.get_cmn(False)

    def __call__(self, pcm: Pcm) -> str:
        """float32 at 24 kHz -> the words heard."""
        wave = samplerate.resample(pcm, 16_000 / REPLY_RATE, "sinc_medium") * 20_000
        wave = np.concatenate([np.zeros(3_000), wave, np.zeros(5_000)])
        wave += np.random.default_rng(0).standard_normal(len(wave)) * 50
        self._decoder.set_cmn(self._first)
        self._decoder.start_utt()
        self._decoder.process_raw(np.clip(wave, -32768, 32767).astype("<i2").tobytes(), full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return " ".join(plain(hypothesis.hypstr)) if hypothesis else ""


def fitted_files(work: Path) -> dict[str, str]:
    """A trigram of the assistant's replies as they are spoken, and its dictionary; kept in `work`."""
    arpa, words = work / "replies.arpa", work / "replies.dict"
    if not (arpa.exists() and words.exists()):
        known = pronunciations()
        texts = [" ".join(spoken_words(text)) for text in reply_sentences(7, REPLIES)]
        texts = [text for text in texts if text and all(word in known for word in text.split())]
        used = sorted({word for text in texts for word in text.split()})
        words.write_text("".join(f"{line}\n" for word in used for line in known[word]))
        write_arpa(count_grams(texts), arpa)
    return {"lm": str(arpa), "dict": str(words)}


class Listeners:
    """All of them."""

    def __init__(self, work: Path) -> None:
        self._fitted = Listener(**fitted_files(work))
        self._general = Listener(lm=get_model_path("en-us/en-us.lm.bin"))
        self._ears = ears.words("moonshine")

    def hear(self, rows: Iterable[ScoredTurn], work: Path) -> None:
        """Fill in the words that they hear in the replies."""
        for row in rows:
            pcm, _ = soundfile.read(work / "replies" / f"{row.talk:03d}-{row.place}.wav", dtype="float32")
            if pcm.size:
                row.fitted, row.general = self._fitted(pcm), self._general(pcm)
                row.ears = " ".join(spoken_words(self._ears(ears.utterance(pcm, REPLY_RATE))))


# --------------------------------------------------------------------------------------------- the table


def blame(rows: Sequence[ScoredTurn]) -> dict[tuple[int, int], str]:
    """The cause of each turn's failure, first cause first; `right` if the fitted listener heard it."""
    told: dict[tuple[int, int], str] = {}
    for row in rows:
        before = told.get((row.talk, row.place - row.needs)) if row.needs else "right"
        if row.right(row.fitted.split()):
            cause = "right"
        elif row.thought_right:
            cause = "spoken unclearly"
        elif before not in ("right", "spoken unclearly"):
            cause = "an earlier turn"
        elif not row.heard_right:
            cause = "heard wrong"
        else:
            cause = "thought wrong"
        told[row.talk, row.place] = cause
    return told


def shares(rows: Sequence[ScoredTurn], causes: dict[tuple[int, int], str]) -> dict[str, Any]:
    """Fractions of these turns. `right` and `clear` refer to the fitted listener unless one is named; `clear` is out of
    those with right words, `thought` out of those that were heard right."""

    def share(of: Sequence[ScoredTurn], right: Sequence[bool]) -> float | None:
        return round(sum(right) / len(of), 3) if of else None

    good_words = [row for row in rows if row.thought_right]
    well_heard = [row for row in rows if row.heard_right]
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[causes[row.talk, row.place]] += 1
    return {
        "n": len(rows),
        "right": share(rows, [row.right(row.fitted.split()) for row in rows]),
        "right, general listener": share(rows, [row.right(row.general.split()) for row in rows]),
        "right, the product's ears": share(rows, [row.right(row.ears.split()) for row in rows]),
        "right in words": share(rows, [row.thought_right for row in rows]),
        "right in words, typed": share(rows, [row.right(spoken_words(row.typed)) for row in rows]),
        "heard to the letter": share(rows, [row.heard_right for row in rows]),
        "thought": share(well_heard, [row.thought_right for row in well_heard]),
        "clear": share(good_words, [row.right(row.fitted.split()) for row in good_words]),
        "clear, the product's ears": share(good_words, [row.right(row.ears.split()) for row in good_words]),
        "causes": dict(counts),
    }


def grouped(rows: Sequence[ScoredTurn], causes: dict[tuple[int, int], str], name: str) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[ScoredTurn]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, name)].append(row)
    return {key: shares(group, causes) for key, group in sorted(groups.items())}


def table(figures: dict[str, dict[str, Any]]) -> list[str]:
    heads = {
        "right": "right", "right, general listener": "general", "right, the product's ears": "ears",
        "right in words": "in words",
        "right in words, typed": "typed", "heard to the letter": "heard", "clear": "clear",
    }  # fmt: skip
    lines = [f"{'':<26}{'n':>5}" + "".join(f"{head:>10}" for head in heads.values())]
    for key, row in figures.items():
        told = ["–" if row[name] is None else f"{100 * row[name]:.0f} %" for name in heads]
        lines.append(f"{key:<26}{row['n']:>5}" + "".join(f"{value:>10}" for value in told))
    return lines


# ------------------------------------------------------------------------------------------------- the run


async def run_talks(args: argparse.Namespace, kept: Path) -> list[ScoredTurn]:
    """All talks, each written down when it is over; those already written are not held again."""
    rows = [ScoredTurn(**json.loads(line)) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {row.talk for row in rows}
    share, of = args.share
    wanted = enumerate(talks(args.seed, args.turns))
    left = [(number, questions) for number, questions in wanted if number not in done and number % of == share]
    if not left:
        return rows
    listeners = Listeners(args.work)
    flags = {"profile": "tiny", "threads": args.threads, "llm": args.llm, "tts": args.tts}
    config = load_config(flags, {"ASSISTANT_HOME": str(args.work / "home")})  # no timers and lists of a person
    async with open_talks(config, now=lambda: NOW) as app:
        for number, questions in left:
            made = await hold(app, number, questions, args.work)
            await asyncio.to_thread(listeners.hear, made, args.work)
            with kept.open("a") as file:
                file.writelines(json.dumps(asdict(row)) + "\n" for row in made)
            rows += made
            print(f"\r{len(rows)} turns", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def part(text: str) -> tuple[int, int]:
    """I/N. Raises ArgumentTypeError unless 0 ≤ I < N."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; two processes use 0/2 and 1/2")
    return int(index), int(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--work", type=Path, default=Path(".training/loop"))
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--share", type=part, default=(0, 1), metavar="I/N", help="run only every N-th talk, from talk I on"
    )
    parser.add_argument("--threads", default="1")
    parser.add_argument("--llm", help="model directory (default: the shipped one)")
    parser.add_argument("--tts", help="model directory (default: the shipped one)")
    parser.add_argument("--show", type=int, default=0, help="print this many turns that failed")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    rows = asyncio.run(run_talks(args, args.work / "turns.jsonl"))
    causes = blame(rows)
    figures = {
        "all": shares(rows, causes),
        "kinds": grouped(rows, causes, "kind"),
        "voices": grouped(rows, causes, "voice"),
        "personas": grouped(rows, causes, "persona"),
    }
    print("\n".join(table({"all": figures["all"], **figures["personas"], **figures["voices"], **figures["kinds"]})))
    print("causes:", ", ".join(f"{cause} {count}" for cause, count in figures["all"]["causes"].items()))
    for row in [row for row in rows if causes[row.talk, row.place] != "right"][: args.show]:
        print(f"  {causes[row.talk, row.place]}: {row.asked} | {row.heard} | {row.said} | {row.fitted}")
    if args.json is not None:
        turns = [{**asdict(row), "cause": causes[row.talk, row.place]} for row in rows]
        command = " ".join(["python -m recipes.loop_score", *sys.argv[1:]])
        report = {"command": command, **figures, "turns": turns}
        args.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
