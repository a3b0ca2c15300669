"""Does it hear its name, and only that? The product's ear with the real detector, ears and wake words.

  python -m benchmarks.wake calls --voices DIR       calls in human-like voices, near and in a kitchen at 10 dB
  python -m benchmarks.wake talk --prompts DIR --read DIR --saved FILE
                                                     hours of talk and noise: how often it believes to be called
  python -m benchmarks.wake cost --read DIR          processor time while it waits
  python -m benchmarks.wake first --voices DIR       from the end of the request to the first sound, in real time

Sound goes in as fast as it is taken, in slices of 100 ms as in a talk; virtual time follows the sound.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import samplerate
import soundfile

from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.asr import open_asr
from assistant.asr.wake_words import open_wake_words
from assistant.base.ids import random_ids
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.bench.turns import AUDIBLE, Caller, Question
from assistant.contracts import ASR
from assistant.events import REPLY_RATE, SemanticVad, Settings
from assistant.personas import load_personas
from assistant.talk.ear import Ear, TalkNow, WakeNow
from assistant.talk.scribe import Scribe
from assistant.talk.waiting import Waiting
from recipes.asr.ears import at_once
from recipes.asr.noise import Noise, Wave, add, babble, kitchen, speech_power, street
from recipes.asr.voices import VOICES, Speak

SLICE = HEARING_RATE // 10
FLOOR_SAMPLES = 8000
FLOOR = 3e-4
"""Root mean square of a microphone in a still room."""
REQUESTS = (
    "what time is it", "set a timer for ten minutes", "stop the timer", "tell me a joke", "how far is it to the moon",
    "put milk on the shopping list", "what's the weather like", "remind me to call my sister",
    "how much is twelve times nine", "turn off the lights", "what day is it today", "play some music",
    "how do you spell necessary", "add eggs to my list", "cancel the alarm", "wake me at seven tomorrow",
    "good morning", "read me my notes", "convert six miles to kilometers", "who are you",
)  # fmt: skip
NAMES = ("Ada", "Hey Ada", "Hey Ben", "Hey Jarvis", "Alexa")
"""Each calls twenty times in each voice, with another request each time."""


class AwaitingEar:
    """An ear that waits for its name, and when it believed to be called."""

    def __init__(self, asr: ASR) -> None:
        words = open_wake_words(Path("/nonexistent"))
        scribe = Scribe(asr, at_once)
        asyncio.run(scribe.open())
        self.ear = Ear(asr.detector(), scribe, lambda: random_ids("item"), Waiting(scribe, words))
        titles = [persona.title for persona in load_personas().values()]
        self._wake = WakeNow((*titles, *(words.words if words else ())))
        self.samples = 0

    def hear(self, sound: Pcm) -> list[tuple[float, str]]:
        """More sound -> the calls in it, with their seconds from its beginning."""
        found, start = [], self.samples
        at = 0
        while at < sound.size:
            part = sound[at : at + SLICE].astype(np.float32)
            now = (self.samples + part.size) / HEARING_RATE
            digested = self.ear.take_in(part, None, TalkNow(SemanticVad(), now, wake=self._wake))
            at += digested.taken
            self.samples += digested.taken
            if digested.called is not None:
                found.append(((self.samples - start) / HEARING_RATE, digested.called))
        return found


def interval(missed: int, n: int) -> list[float]:
    """Wilson's 95 % interval of a share."""
    z, p = 1.96, missed / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return [round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)]


def spoken(speak: Speak | None, path: Path, text: str, make: str) -> Pcm:
    if not path.exists():
        wave, rate = (speak or VOICES[make]())(text)
        wave = wave if rate == HEARING_RATE else samplerate.resample(wave, HEARING_RATE / rate, "sinc_medium")
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, wave / max(1e-6, float(np.abs(wave).max())) * 0.5, HEARING_RATE, subtype="PCM_16")
    return soundfile.read(path, dtype="float32")[0]


def calls(args: argparse.Namespace) -> dict[str, object]:
    """Each call stands in three seconds of the room on either side; a name that is heard as another one is missed."""
    asr = open_asr("moonshine")
    rows: dict[str, object] = {}
    for voice in args.voice:
        speak = None
        for place in ("near", "kitchen"):
            missed: Counter[str] = Counter()
            for name in NAMES:
                for number, request in enumerate(REQUESTS[: args.each]):
                    path = args.voices / voice / f"{name.replace(' ', '_')}_{number:02d}.flac"
                    if not path.exists() and speak is None:
                        speak = VOICES[voice]()
                    clip = spoken(speak, path, f"{name}, {request}.", voice)
                    sound = np.pad(clip, (2 * HEARING_RATE, HEARING_RATE))
                    rng = np.random.default_rng(number)
                    if place == "kitchen":
                        sound = add(sound, kitchen(sound.size, rng))
                    sound = sound + FLOOR * rng.standard_normal(sound.size).astype(np.float32)
                    heard = [called for _, called in AwaitingEar(asr).hear(sound)]
                    wanted = name.split()[-1] if name.split()[-1] in ("Ada", "Ben") else name
                    missed[name] += wanted not in heard[:1]
                    if wanted not in heard[:1]:
                        print(f"  {voice} {place} {name}, {request}: {heard}", flush=True)
            n, all_missed = args.each * len(NAMES), sum(missed.values())
            row = {"n": n, "missed": all_missed, "interval": interval(all_missed, n), "by": dict(missed)}
            rows[f"{voice} {place}"] = row
            print(voice, place, row, flush=True)
    return rows


# ------------------------------------------------------------------------------------- hours of anything else


def g722(path: Path) -> Pcm:
    import av

    with av.open(str(path), mode="r", format="g722") as container:
        blocks = [np.zeros(0), *(frame.to_ndarray().ravel() for frame in container.decode(audio=0))]  # some are empty
    return (np.concatenate(blocks) / np.float32(32768)).astype(np.float32)


def sentences(folder: Path) -> list[str]:
    """Plain sentences of the pages here, for voices to read, but for the page that is about calling."""
    pages = (path for path in sorted(folder.glob("*.md")) if path.name != "wake.md")
    text = "\n\n".join(path.read_text("utf-8") for path in pages)
    plain = re.sub(r"[`*_]|\[|\]\([^)]*\)", "", re.sub(r"(?ms)^```.*?^```|^[|#].*?$", "", text))
    found = re.findall(r"(?:(?<=\s)|^)[A-Z][^.?!|{}<>=/]{30,160}[.?!](?=\s)", " ".join(plain.split()))
    return list(dict.fromkeys(found))


def read_aloud(folder: Path, voice: str, count: int) -> list[Path]:
    """Sentences as this voice reads them; each is made once."""
    speak, paths = None, []
    for number, text in enumerate(sentences(Path("docs"))[:count]):
        paths.append(folder / voice / f"{number:04d}.flac")
        if not paths[-1].exists():
            speak = speak or VOICES[voice]()
            spoken(speak, paths[-1], text, voice)
    return paths


def joined(clips: Iterable[Pcm], rng: np.random.Generator) -> Pcm:
    """One after the other, each as near as chance has it, with pauses as between sentences."""
    parts = []
    for clip in clips:
        level = 10 ** (-rng.uniform(0, 18) / 20) * 0.12 / np.sqrt(max(speech_power(clip), 1e-12))
        parts += [np.clip(clip * level, -1, 1), np.zeros(int(rng.uniform(0.25, 1.6) * HEARING_RATE), np.float32)]
    return np.concatenate(parts).astype(np.float32)


def stretches(args: argparse.Namespace) -> Iterator[tuple[str, Pcm]]:
    """Kinds of sound and a few minutes of each, interleaved: people, then people again at another speed before music or
    babble, voices that read, places, music."""
    rng = np.random.default_rng(5)
    people: list[Path] = sorted((args.prompts / "sounds").rglob("*.g722"))
    music = [g722(path) for path in sorted((args.prompts / "moh").glob("*.g722"))]
    rng.shuffle(people)  # type: ignore[arg-type]
    groups = [people[i : i + args.clips] for i in range(0, len(people), args.clips)]
    read = [path for voice in args.voice for path in sorted((args.read / voice).glob("*.flac"))]
    rng.shuffle(read)  # type: ignore[arg-type]
    aloud = [read[i : i + args.clips // 2] for i in range(0, len(read), args.clips // 2)]
    for number, group in enumerate(groups):
        clips = [clip for clip in map(g722, group) if clip.size > FLOOR_SAMPLES and np.abs(clip).max() > 0.01]
        place: Noise = (kitchen, street)[number % 2]
        plain = joined(clips, rng)
        yield "people", add(plain, place(plain.size, rng), rng.uniform(12, 30))
        rate = float(rng.choice([0.88, 1.12]))
        again = samplerate.resample(joined(clips, rng), rate, "sinc_fastest").astype(np.float32)
        behind = babble(clips)(again.size, rng) if number % 3 else np.resize(music[number % len(music)], again.size)
        yield "people, another speed, before music or babble", add(again, behind, rng.uniform(5, 20))
        if number < len(aloud):
            plain = joined([soundfile.read(path, dtype="float32")[0] for path in aloud[number]], rng)
            yield "voices reading", add(plain, place(plain.size, rng), rng.uniform(12, 30))
        alone: Wave = (kitchen, street, babble(clips))[number % 3](args.noise_s * HEARING_RATE, rng)
        yield "noise or babble", (alone * 10 ** (-rng.uniform(14, 34) / 20) / alone.std()).astype(np.float32)
        if number < len(music):
            yield "music", music[number] * np.float32(0.5)


def talk(args: argparse.Namespace) -> dict[str, object]:
    """Until the sound or the time is over; every stretch is saved as it is done, and skipped by the next run."""
    for voice in args.voice:
        read_aloud(args.read, voice, args.sentences)
    if args.prepare:
        return {}
    args.saved.touch()
    done = [json.loads(line) for line in args.saved.read_text("utf-8").splitlines()]
    listener = AwaitingEar(open_asr("moonshine"))
    begin = time.monotonic()
    for number, (kind, sound) in enumerate(stretches(args)):
        if number < len(done):
            continue
        if time.monotonic() - begin > args.minutes * 60:
            break
        spent = time.process_time()
        heard = listener.hear(np.clip(sound + FLOOR * np.random.default_rng(number).standard_normal(sound.size), -1, 1))
        seconds, spent = sound.size / HEARING_RATE, time.process_time() - spent
        done.append({"kind": kind, "s": round(seconds, 1), "calls": heard, "processor_s": round(spent, 2)})
        with args.saved.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[-1]) + "\n")
        hours = sum(row["s"] for row in done) / 3600
        total = sum(len(row["calls"]) for row in done)
        print(f"{hours:.2f} h, {total} calls: {kind} {heard} {spent / seconds:.3f}", flush=True)
    kinds = {row["kind"] for row in done}
    table = {
        kind: {
            "hours": round(sum(row["s"] for row in done if row["kind"] == kind) / 3600, 3),
            "calls": [name for row in done if row["kind"] == kind for _, name in row["calls"]],
            "processor_s_per_s": round(
                sum(row["processor_s"] for row in done if row["kind"] == kind)
                / sum(row["s"] for row in done if row["kind"] == kind), 4
            ),
        }
        for kind in sorted(kinds)
    }  # fmt: skip
    hours, total = sum(row["s"] for row in done) / 3600, sum(len(row["calls"]) for row in done)
    return {"hours": round(hours, 2), "false_calls": total, "kinds": table}


def cost(args: argparse.Namespace) -> dict[str, object]:
    """Processor seconds per second of sound: a still room, a kitchen, and people who talk without end."""
    asr, rng = open_asr("moonshine"), np.random.default_rng(3)
    clips = [soundfile.read(path, dtype="float32")[0] for path in sorted(args.read.rglob("*.flac"))[: args.clips]]
    samples = args.seconds * HEARING_RATE
    still = FLOOR * rng.standard_normal(samples)
    rows: dict[str, object] = {}
    noise = kitchen(samples, rng)
    rooms = {"still": still, "kitchen": noise * 0.02 / noise.std(), "talk": joined(clips, rng)[:samples] + still}
    for name, sound in rooms.items():
        listener = AwaitingEar(asr)
        listener.hear(sound[: 5 * HEARING_RATE])
        spent = time.process_time()
        called = listener.hear(sound)
        share = (time.process_time() - spent) * HEARING_RATE / sound.size
        rows[name] = {"s": sound.size / HEARING_RATE, "of_a_core": round(share, 4), "calls": len(called)}
        print(name, rows[name], flush=True)
    return rows


# --------------------------------------------------------------------------------------------- first sound


async def answered(app: App, clip: Pcm, wake: bool) -> tuple[float, str]:
    """Milliseconds from the last audible sample of a request to the first sound of the answer, in a talk of its own."""
    pcm = resample(np.pad(clip, (HEARING_RATE, 0)), HEARING_RATE, REPLY_RATE)
    loud = np.flatnonzero(np.abs(pcm) > AUDIBLE)
    question = Question("", pcm, int(loud[0]), int(loud[-1]) + 1)
    session = app.talks.open(Settings(persona="ada", turn_detection=SemanticVad(), duck=True, wake=wake))
    caller = Caller(session)
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        group.create_task(caller.read())
        turn = await caller.turn(question, interrupt=False)
        session.close()
    return turn.figures.get("voice_to_voice", math.nan), turn.heard


async def _answers(args: argparse.Namespace) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as home:
        config = load_config({"profile": "tiny"}, {"ASSISTANT_HOME": home})
        async with open_talks(config) as app:
            rows: list[dict[str, object]] = []
            for number in range(args.turns):
                voice = args.voice[number % len(args.voice)]
                named = spoken(None, args.voices / voice / "Ada_00.flac", f"Ada, {REQUESTS[0]}.", voice)
                plain = spoken(None, args.voices / voice / "plain_00.flac", f"{REQUESTS[0]}?", voice)
                for wake, clip in ((True, named), (False, plain)):
                    ms, heard = await answered(app, clip, wake)
                    rows.append({"voice": voice, "wake": wake, "ms": round(ms, 1), "heard": heard})
                    print(rows[-1], flush=True)
            return rows


def first(args: argparse.Namespace) -> dict[str, object]:
    """The same request with the name in a talk that waits, and without it in one that does not, in turn."""
    rows = asyncio.run(_answers(args))
    kinds = {"called": True, "plain": False}
    times = {kind: [row["ms"] for row in rows if row["wake"] is wake] for kind, wake in kinds.items()}
    medians = {kind: float(np.nanmedian(ms)) for kind, ms in times.items()}
    return {"n": args.turns, "median_ms": medians, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    one = kinds.add_parser("calls")
    one.add_argument("--voices", type=Path, required=True)
    one.add_argument("--voice", nargs="+", default=["heart", "joe", "alpha"])
    one.add_argument("--each", type=int, default=20)
    one.add_argument("--out", type=Path)
    one.set_defaults(does=calls)
    two = kinds.add_parser("talk")
    two.add_argument("--prompts", type=Path, required=True, help="usr/share/asterisk of the packages' contents")
    two.add_argument("--read", type=Path, required=True, help="where the voices' sentences are kept")
    two.add_argument("--voice", nargs="+", default=["joe", "heart"])
    two.add_argument("--sentences", type=int, default=300)
    two.add_argument("--clips", type=int, default=120)
    two.add_argument("--noise-s", type=int, default=240)
    two.add_argument("--minutes", type=float, default=30)
    two.add_argument("--saved", type=Path, required=True)
    two.add_argument("--prepare", action="store_true")
    two.add_argument("--out", type=Path)
    two.set_defaults(does=talk)
    three = kinds.add_parser("cost")
    three.add_argument("--read", type=Path, required=True)
    three.add_argument("--clips", type=int, default=30)
    three.add_argument("--seconds", type=int, default=120)
    three.add_argument("--out", type=Path)
    three.set_defaults(does=cost)
    four = kinds.add_parser("first")
    four.add_argument("--voices", type=Path, required=True)
    four.add_argument("--voice", nargs="+", default=["joe", "heart"])
    four.add_argument("--turns", type=int, default=20)
    four.add_argument("--out", type=Path)
    four.set_defaults(does=first)
    args = parser.parse_args()
    found = args.does(args)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
