"""What the ears cost and when their words are there, at real time: `python -m benchmarks.asr [WAV …]`.

Each recording is played block by block as a microphone would bring it, with half a second of silence before it and one
second after. Beside it the words so far are asked for as hearing does; at a pause of 150 ms the text is asked
for. Without recordings: pieces of `two_cities.wav` from the makers' wheel. A line `text` beside a recording (same name,
.txt) gives words wrong. `--busy N` lets N processes turn the cores beside it, as a voice that is being made would.

    to text     from the last sample of speech to the text of the pause being there, wall ms (150 of it is the silence)
    before end  share of recordings whose text was there before the shortest turn end (200 ms of silence)
    age         of a partial: from the last sample it knows of to its being there, ms
    revised     words of partials taken back, per word of the transcript
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import soundfile

from assistant.asr.agreement import begin_alike
from assistant.asr.detector import SileroDetector
from assistant.asr.moonshine import load_moonshine, moonshine, shipped_weights
from assistant.asr.paced import Paced
from assistant.asr.pocketsphinx import pocketsphinx
from assistant.asr.streaming import streaming
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE
from assistant.contracts import Partial
from assistant.events import Pcm, SemanticVad
from assistant.talk.turn_end import SHORTEST_END_MS, Sign, TurnDetector
from assistant.text.small_model import for_small_model

BLOCK = 512
ASK_EVERY = 3
"""Blocks between two questions for the words so far."""


@dataclass(frozen=True, slots=True)
class Played:
    """One recording, heard at real time."""

    name: str
    seconds: float
    text: str
    to_text_ms: float | None
    """None: no speech was detected."""
    ages_ms: tuple[float, ...]
    words_shown: int
    words_revised: int
    processor_s: float
    cadence_ms: float
    wrong: int | None = None
    of: int = 0


def play(transcriber: Paced, name: str, sound: Pcm, speed: float) -> Played:
    """Feed one recording block by block at `speed` times real time, as hearing does."""
    sound = np.concatenate([np.zeros(HEARING_RATE // 2, np.float32), sound, np.zeros(HEARING_RATE, np.float32)])
    detector, turns = SileroDetector(), TurnDetector(SemanticVad(), HEARING_RATE)
    asked: Future[Partial] | None = None
    ages: list[float] = []
    shown: list[list[str]] = []
    ready: list[float] = []
    held: list[Pcm] = []
    spoken_until, speaking, ended = 0.0, False, False

    def words_so_far(heard: float) -> Partial:
        before = shown[-1] if shown else []
        partial = transcriber.partial()
        if (words := partial.text.split()) != before:
            ages.append((time.perf_counter() - heard) * 1000)
            shown.append(words)
        return partial

    def text_at_pause() -> Partial:
        partial = transcriber.pause()
        ready.append(time.perf_counter())
        return partial

    processor = time.process_time()
    with ThreadPoolExecutor(2) as pool:
        began = time.perf_counter()
        for number, start in enumerate(range(0, sound.size - BLOCK, BLOCK)):
            due = began + (start + BLOCK) / HEARING_RATE / speed
            time.sleep(max(0.0, due - time.perf_counter()))
            part = sound[start : start + BLOCK]
            sign = turns.step(detector.push(part)[0].probability, BLOCK)
            if sign is Sign.ONSET:
                speaking = True
                for block in held[-12:]:
                    transcriber.push(block)
                held = []
            if turns.speaking:
                spoken_until = began + turns.end_sample / HEARING_RATE / speed
            if sign is Sign.RESUMED:
                for block in held:
                    transcriber.push(block)
                held = []
            silent = turns.silence_ms >= 150 and sign is not Sign.PAUSE
            if not speaking or silent or ended:
                held.append(part)
                continue
            transcriber.push(part)
            if sign is Sign.PAUSE:
                pool.submit(text_at_pause)
            elif sign is Sign.END:
                ended = True
            elif number % ASK_EVERY == 0 and (asked is None or asked.done()):
                asked = pool.submit(words_so_far, due)
    final = transcriber.final()
    to_text = (ready[-1] - spoken_until) * 1000 if ready else None
    if final.words and shown:
        shown.append([word.text for word in final.words])
    revised = sum(len(before) - begin_alike(before, after) for before, after in pairwise(shown))
    text = final.text if final.speech else ""
    used = time.process_time() - processor
    seconds = sound.size / HEARING_RATE
    return Played(name, seconds, text, to_text, tuple(ages), len(final.words), revised, used, transcriber.cadence_ms)


def errors(wanted: str, heard: str) -> tuple[int, int]:
    """Words wrong (inserted, left out, other) and words wanted, both written as the small model reads them."""
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
    """What this process has in memory now; 0 where the system does not say."""
    status = Path("/proc/self/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.is_file() else None
    return int(found[1]) / 1024 if found else 0.0


def engine(name: str) -> Callable[[], Paced]:
    """`moonshine`, `pocketsphinx`, or `tiny|small|medium:FOLDER` for a streaming size."""
    if name == "moonshine":
        network = load_moonshine()
        return lambda: moonshine(network)
    if name == "pocketsphinx":
        return pocketsphinx
    size, _, folder = name.partition(":")
    return lambda: streaming(Path(folder), size)  # type: ignore[arg-type]


def summary(name: str, played: Sequence[Played], load_s: float, memory: float) -> dict[str, object]:
    times = [each.to_text_ms for each in played if each.to_text_ms is not None]
    ages = [age for each in played for age in each.ages_ms] or [0.0]
    wanted = sum(each.of for each in played)
    return {
        "engine": name,
        "recordings": len(played),
        "speech detected": len(times),
        "load_s": round(load_s, 2),
        "memory_mb": round(memory),
        "to_text_ms_median": round(statistics.median(times)),
        "to_text_ms_p90": round(float(np.percentile(times, 90))),
        "before_end": round(sum(t <= SHORTEST_END_MS for t in times) / len(times), 2),
        "age_ms_median": round(statistics.median(ages)),
        "age_ms_p90": round(float(np.percentile(ages, 90))),
        "revised_per_word": round(sum(e.words_revised for e in played) / max(1, sum(e.words_shown for e in played)), 2),
        "processor_s_per_s": round(sum(e.processor_s for e in played) / sum(e.seconds for e in played), 3),
        "cadence_ms_last": round(played[-1].cadence_ms),
        "words_wrong": round(sum(e.wrong or 0 for e in played) / wanted, 3) if wanted else None,
    }


def burn() -> None:
    while True:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path)
    parser.add_argument("--engine", default="moonshine", help=engine.__doc__)
    parser.add_argument("--busy", type=int, default=0, help="processes that turn the cores beside it")
    parser.add_argument("--speed", type=float, default=1.0, help="times real time; above 1 latencies mean little")
    parser.add_argument("--json", type=Path)
    a = parser.parse_args()
    beside = [multiprocessing.Process(target=burn, daemon=True) for _ in range(a.busy)]
    for each in beside:
        each.start()
    before, began = memory_mb(), time.perf_counter()
    make = engine(a.engine)
    transcriber = make()
    load_s = time.perf_counter() - began
    played = []
    for name, sound, wanted in map(given_recording, a.recordings) if a.recordings else shipped_recordings():
        found = play(transcriber, name, sound, a.speed)
        if wanted is not None:
            wrong, of = errors(wanted, found.text)
            found = Played(**(asdict(found) | {"wrong": wrong, "of": of}))
        played.append(found)
        ready = "no speech" if found.to_text_ms is None else f"{found.to_text_ms:4.0f} ms"
        print(f"{name[:32]:32} {found.seconds:5.1f} s  {ready}  {found.processor_s / found.seconds:.3f}  {found.text}")
    table = summary(a.engine, played, load_s, memory_mb() - before) | {"busy": a.busy, "speed": a.speed}
    for key, value in table.items():
        print(f"{key:22} {value}")
    if a.json:
        a.json.write_text(json.dumps({"summary": table, "recordings": [asdict(each) for each in played]}, indent=1))
    for each in beside:
        each.terminate()


if __name__ == "__main__":
    main()
