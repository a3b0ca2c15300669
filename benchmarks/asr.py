"""The cost of the ears and the time at which their words arrive, at real time: `python -m benchmarks.asr [WAV …]`.

Each recording is played to the product's own hearing stage at the pace of a microphone, with half a second of silence
before it and one and a half after. No language model judges whether the words are complete: turns end by silence and
pace. Recordings: those named; a file with the same name and .txt holds the words said and adds the word errors.
`--people DIR` uses the recordings that recipes.asr.people gathered. Without either: pieces of `two_cities.wav` from the
makers' wheel. `--busy N` lets N processes load the cores meanwhile, as the synthesis of a voice would.

    to text      from the last sample of speech to the arrival of the last pause's text, wall ms (150 are the silence)
    before end   share of turns whose text was there before the shortest turn end (200 ms of silence)
    before over  share of turns whose text was there before this turn's own end
    age          of a partial: from the last sample that it covers to its arrival, ms
    revised      words shown and then changed, per word of the transcript
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import soundfile

from assistant.app.places import shipped
from assistant.asr import open_asr
from assistant.asr.agreement import begin_alike
from assistant.asr.moonshine import shipped_weights
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE
from assistant.contracts import ASR, AsrFacts, Partial, SpeechDetector, Transcriber, Transcript
from assistant.events import AppendAudio, Pcm
from assistant.llm.small import SmallMind
from assistant.llm.small.reading import for_small_model
from assistant.talk.messages import UserBegan, UserEnded, UserProgress, UserWords
from assistant.talk.turn_end import SHORTEST_END_MS
from recipes.asr.ears import stage
from recipes.asr.score import every, human_clips

BLOCK = 320
"""20 ms, the block size of a microphone."""
BEFORE, AFTER = HEARING_RATE // 2, HEARING_RATE * 3 // 2


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass of the engine: how many samples of the utterance it began with, and when its words were there."""

    samples: int
    done: float


@dataclass(slots=True)
class Told:
    """A turn as reported to a front, and the passes over it. Times are the clock's seconds."""

    begin_ms: float
    passes: list[Pass] = field(default_factory=list)
    pauses: list[Pass] = field(default_factory=list)
    shown: list[list[str]] = field(default_factory=list)
    end_ms: float = 0.0
    over: float = 0.0
    text: str = ""


class Clocked:
    """A transcriber that records when it was asked and when it had answered, utterance by utterance."""

    def __init__(self, inner: Transcriber) -> None:
        self._inner = inner
        self.utterances: list[tuple[list[Pass], list[Pass]]] = []
        self._samples = 0
        self._before = Partial()

    @property
    def facts(self) -> AsrFacts:
        return self._inner.facts

    def push(self, pcm: Pcm) -> None:
        if not self._samples:
            self.utterances.append(([], []))
        self._samples += pcm.size
        self._inner.push(pcm)

    def partial(self, now: bool = False) -> Partial:
        samples = self._samples
        found = self._inner.partial(now)
        if found is not self._before and self.utterances:  # else no pass was due
            self.utterances[-1][0].append(Pass(samples, time.perf_counter()))
            self._before = found
        return found

    def pause(self) -> Partial:
        samples, at = self._samples, len(self.utterances) - 1
        found = self._inner.pause()
        self.utterances[at][1].append(Pass(samples, time.perf_counter()))
        return found

    def final(self) -> Transcript:
        self._samples = 0
        return self._inner.final()

    def expect(self, terms: Sequence[str]) -> None:
        self._inner.expect(terms)

    def reset(self) -> None:
        self._samples = 0
        self._inner.reset()

    def forget(self) -> None:
        self._samples = 0
        self._inner.forget()


class OneClocked:
    """Ears with one transcriber, which is timed."""

    def __init__(self, asr: ASR) -> None:
        self._asr = asr
        self.name = asr.name
        self.clocked = Clocked(asr.transcriber())

    def detector(self) -> SpeechDetector:
        return self._asr.detector()

    def transcriber(self) -> Transcriber:
        self.clocked.utterances = []
        return self.clocked

    def release(self, transcriber: Transcriber) -> None:
        transcriber.forget()

    def release_detector(self, detector: SpeechDetector) -> None:
        self._asr.release_detector(detector)


@dataclass(frozen=True, slots=True)
class Played:
    """One recording, played at real time; figures for each of its turns."""

    name: str
    seconds: float
    text: str
    to_text_ms: tuple[float, ...]
    to_over_ms: tuple[float, ...]
    ages_ms: tuple[float, ...]
    words_shown: int
    words_revised: int
    processor_s: float
    wrong: int | None = None
    of: int = 0


async def play(asr: OneClocked, name: str, sound: Pcm) -> Played:
    """Feed one recording block by block at real time, like a front."""
    sound = np.pad(sound, (BEFORE, AFTER))
    context, inlet, hearing = stage(asr, asyncio.to_thread)
    turns: dict[str, Told] = {}

    async def note() -> None:
        async for message in context.inbox:
            match message:
                case UserBegan():
                    turns[message.item_id] = Told(message.start_ms)
                case UserProgress() if message.text:
                    turns[message.item_id].shown.append(message.text.split())
                case UserEnded():
                    turns[message.item_id].end_ms = message.end_ms
                    turns[message.item_id].over = time.perf_counter()
                case UserWords():
                    turns[message.item_id].text = message.text

    processor = time.process_time()
    async with asyncio.TaskGroup() as group:
        group.create_task(note())
        running = group.create_task(hearing.run())
        began = time.perf_counter()
        for start in range(0, sound.size, BLOCK):
            await asyncio.sleep(max(0.0, began + (start + BLOCK) / HEARING_RATE - time.perf_counter()))
            await inlet.send(AppendAudio(sound[start : start + BLOCK], HEARING_RATE))
        inlet.close()
        await running
        context.inbox.close()
    used = time.process_time() - processor
    for turn, (passes, pauses) in zip(turns.values(), asr.clocked.utterances, strict=True):
        turn.passes, turn.pauses = passes, pauses
    return figures(name, sound.size / HEARING_RATE, began, list(turns.values()), used)


def figures(name: str, seconds: float, began: float, turns: Sequence[Told], processor_s: float) -> Played:
    """The figures for the turns of a recording, which began at this moment of the clock."""

    def since(done: float, input_ms: float) -> float:
        return (done - began) * 1000 - input_ms

    revised = 0
    for turn in turns:
        shown = [*turn.shown, turn.text.split()] if turn.text else turn.shown
        revised += sum(len(before) - begin_alike(before, after) for before, after in pairwise(shown))
    return Played(
        name, seconds, " ".join(turn.text for turn in turns if turn.text),
        tuple(since(turn.pauses[-1].done, turn.end_ms) for turn in turns if turn.pauses),
        tuple(since(turn.over, turn.end_ms) for turn in turns if turn.pauses),
        tuple(
            since(each.done, turn.begin_ms + each.samples * 1000 / HEARING_RATE)
            for turn in turns for each in turn.passes
        ),
        sum(len(turn.text.split()) for turn in turns), revised, processor_s,
    )  # fmt: skip


def errors(wanted: str, heard: str) -> tuple[int, int]:
    """Wrong words (inserted, left out, other) and wanted words, both written as the small model reads them."""
    a, b = for_small_model(wanted).lower().split(), for_small_model(heard).lower().split()
    row = list(range(len(b) + 1))
    for i, mine in enumerate(a, 1):
        row, before = [i], row
        for j, other in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (mine != other)))
    return row[-1], len(a)


def shipped_recordings() -> list[tuple[str, Pcm, str | None]]:
    """The Dickens of the makers' wheel, cut at its pauses into utterances of a few seconds."""
    sound, rate = soundfile.read(shipped_weights().parent / "two_cities.wav", dtype="float32")
    whole = resample(sound, rate, HEARING_RATE)
    cuts = (0.0, 4.75, 9.85, 14.0, 18.65, 24.3, 30.5)
    spans = [(a, b, slice(int(a * HEARING_RATE), int(b * HEARING_RATE))) for a, b in pairwise(cuts)]
    return [(f"two cities {a:g}-{b:g} s", whole[span], None) for a, b, span in spans]


def given_recording(path: Path) -> tuple[str, Pcm, str | None]:
    sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    text = path.with_suffix(".txt")
    said = text.read_text().strip() if text.is_file() else None
    return path.stem, resample(sound.mean(axis=1).astype(np.float32), rate, HEARING_RATE), said


def memory_mb() -> float:
    """Memory of this process in MB now; 0 if the system does not report it."""
    status = Path("/proc/self/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.is_file() else None
    return int(found[1]) / 1024 if found else 0.0


def summary(asr: ASR, played: Sequence[Played], load_s: float, memory: float) -> dict[str, object]:
    times = [ms for each in played for ms in each.to_text_ms]
    ends = [ms for each in played for ms in each.to_over_ms]
    ages = [age for each in played for age in each.ages_ms] or [0.0]
    wanted = sum(each.of for each in played)
    return {
        "engine": asr.name,
        "recordings": len(played),
        "turns": len(times),
        "load_s": round(load_s, 2),
        "memory_mb": round(memory),
        "to_text_ms_median": round(statistics.median(times)),
        "to_text_ms_p90": round(float(np.percentile(times, 90))),
        "before_end": round(sum(t <= SHORTEST_END_MS for t in times) / len(times), 2),
        "before_over": round(sum(t <= end for t, end in zip(times, ends, strict=True)) / len(times), 2),
        "over_ms_median": round(statistics.median(ends)),
        "age_ms_median": round(statistics.median(ages)),
        "age_ms_p90": round(float(np.percentile(ages, 90))),
        "revised_per_word": round(sum(e.words_revised for e in played) / max(1, sum(e.words_shown for e in played)), 2),
        "processor_s_per_s": round(sum(e.processor_s for e in played) / sum(e.seconds for e in played), 3),
        "words_wrong": round(sum(e.wrong or 0 for e in played) / wanted, 3) if wanted else None,
    }


def burn() -> None:
    while True:
        pass


def recordings(paths: Sequence[Path], people: Path | None, step: int) -> Iterator[tuple[str, Pcm, str | None]]:
    """Name, sound and, if known, the words."""
    if people is not None:
        for clip in every(human_clips(people), step):
            yield clip.name, clip.sound, clip.text
    elif paths:
        yield from map(given_recording, paths)
    else:
        yield from shipped_recordings()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path)
    parser.add_argument("--people", type=Path, help="the folder of recipes.asr.people")
    parser.add_argument("--every", type=int, default=1, help="of people: use every N-th recording of each source")
    parser.add_argument("--asr", default="auto", help="which ears, as in the product's setting")
    parser.add_argument("--busy", type=int, default=0, help="number of processes that load the cores meanwhile")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    a = parser.parse_args()
    beside = [multiprocessing.Process(target=burn, daemon=True) for _ in range(a.busy)]
    for each in beside:
        each.start()
    before, began = memory_mb(), time.perf_counter()
    asr = OneClocked(open_asr(a.asr, rescorer=SmallMind(shipped("llm")).rescorer))
    load_s = time.perf_counter() - began
    played, loads = [], []
    for name, sound, wanted in recordings(a.recordings, a.people, a.every):
        found = asyncio.run(play(asr, name, sound))
        loads.append(os.getloadavg()[0])
        if wanted is not None:
            wrong, of = errors(wanted, found.text)
            found = replace(found, wrong=wrong, of=of)
        played.append(found)
        ready = " ".join(f"{ms:.0f}" for ms in found.to_text_ms) or "no pause"
        print(
            f"{name[:28]:28} {found.seconds:5.1f} s  {ready:>9} ms  {found.processor_s:5.2f} s  {found.text}",
            flush=True,
        )
    table = summary(asr, played, load_s, memory_mb() - before)
    table |= {"busy": a.busy, "load_average": round(statistics.mean(loads), 1)}
    for key, value in table.items():
        print(f"{key:22} {value}")
    if a.json:
        held = json.loads(a.json.read_text()) if a.json.exists() else []
        a.json.write_text(json.dumps([*held, table], indent=1) + "\n")
    for each in beside:
        each.terminate()


if __name__ == "__main__":
    main()
