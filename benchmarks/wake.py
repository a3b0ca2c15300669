"""Does it hear its name, and only that? The product's ear with the real detector, ears and wake words.

  python -m benchmarks.wake calls --voices DIR       calls in human-like voices, near and in a kitchen at 10 dB
  python -m benchmarks.wake talk --sound DIR ...     hours of talk and noise: how often it believes to be called
  python -m benchmarks.wake cost --voices DIR        processor time while it waits

Sound goes in as fast as it is taken, in slices of 100 ms as in a talk; virtual time follows the sound.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import samplerate
import soundfile

from assistant.asr import open_asr
from assistant.asr.wake_words import open_wake_words
from assistant.base.ids import random_ids
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import ASR
from assistant.events import SemanticVad
from assistant.personas import load_personas
from assistant.talk.ear import Ear, TalkNow, WakeNow
from assistant.talk.scribe import Scribe
from assistant.talk.waiting import Waiting
from recipes.asr.ears import at_once
from recipes.asr.noise import add, kitchen
from recipes.asr.voices import VOICES, Speak

SLICE = HEARING_RATE // 10
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


class Listener:
    """An ear that waits for its name, and when it believed to be called."""

    def __init__(self, asr: ASR) -> None:
        import asyncio

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
            digested = self.ear.digest(part, None, TalkNow(SemanticVad(), now, wake=self._wake))
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
                    heard = [called for _, called in Listener(asr).hear(sound)]
                    wanted = name.split()[-1] if name.split()[-1] in ("Ada", "Ben") else name
                    missed[name] += wanted not in heard[:1]
                    if wanted not in heard[:1]:
                        print(f"  {voice} {place} {name}, {request}: {heard}", flush=True)
            n, all_missed = args.each * len(NAMES), sum(missed.values())
            row = {"n": n, "missed": all_missed, "interval": interval(all_missed, n), "by": dict(missed)}
            rows[f"{voice} {place}"] = row
            print(voice, place, row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    one = kinds.add_parser("calls")
    one.add_argument("--voices", type=Path, required=True)
    one.add_argument("--voice", nargs="+", default=["heart", "joe", "alpha"])
    one.add_argument("--each", type=int, default=20)
    one.add_argument("--out", type=Path)
    one.set_defaults(does=calls)
    args = parser.parse_args()
    found = args.does(args)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
