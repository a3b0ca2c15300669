"""The sound behind the turn sets: requests with silences spliced in, nods, coughs, laughs, and people who cut in.

Requests are spoken by the human-like voices of `recipes.asr.voices`, part by part. The part before a pause is spoken as
if it continued (it ends in a comma or in nothing), so its melody stays up like a speaker's; the silence between is room
noise whose length is known to the sample. People come from Debian: laughs, coughs, hums and exclamations of the actors
of Hedgewars (hedgewars-data, GFDL-1.3). The two sets share no voice and no actor. None of this is part of the
repository.

Run:  python -m recipes.turns.sounds --cache DIR     (what `recipes.asr.voices` needs; Debian's apt-get and dpkg-deb)
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import samplerate
import soundfile

from recipes.asr.people import Origins, Unreachable, decoded
from recipes.asr.voices import VOICES as MAKERS
from recipes.asr.voices import Sound, Speak
from recipes.turns.texts import COMPLETE, INTERRUPTIONS, NODS, PAUSED, Part

RATE = 16_000
VOICES: dict[Part, tuple[str, ...]] = {"dev": ("heart", "joe"), "test": ("alpha", "nezumi")}
EVERY: dict[Part, int] = {"dev": 1, "test": 2}
"""A voice says each n-th request: those of the test set take long to make, and share the texts."""
OVER: dict[Part, tuple[str, ...]] = {"dev": ("heart", "joe", "alpha", "nezumi"), "test": ("heart", "joe", "kumo")}
"""Voices over a reply. Two are in both sets, with other words, because the rest have an accent."""
ACTORS: dict[Part, tuple[str, ...]] = {
    "dev": ("British", "Default", "Mobster", "Default_pl", "Default_uk", "Default_es"),
    "test": ("Pirate", "Surfer", "HillBilly", "Singer", "Russian", "Default_ru", "Russian_pl"),
}
ENGLISH = ("British", "Default", "Mobster", "Pirate", "Surfer", "HillBilly", "Singer", "Russian")
MURMURS = ("Laugh", "Hmm", "PoisonCough")
"""Sounds that should not stop a reply; a laugh is a laugh in any language."""
CUTS_IN = ("Cutitout", "Leavemealone", "Whatthe", "Hurry", "Watchit", "Comeonthen", "Justyouwait", "Runaway", "Stupid")
HEDGEWARS = "usr/share/games/hedgewars/Data/Sounds/voices"
PAUSES_MS = (300, 500, 700, 900)
FLOOR = 10 ** (-62 / 20)
"""Noise of a quiet room, root mean square."""
AUDIBLE = 10 ** (-42 / 20)
"""Share of the peak: softer sound at either end is not speech."""
PEAK = 0.4


@dataclass(frozen=True, slots=True)
class Take:
    """Sound at 16 kHz in a quiet room. `parts`: first and last sample of each stretch of speech."""

    name: str
    kind: str
    voice: str
    text: str
    sound: Sound
    parts: tuple[tuple[int, int], ...]

    @property
    def pause_ms(self) -> float:
        return (self.parts[-1][0] - self.parts[0][1]) * 1000 / RATE if len(self.parts) > 1 else 0.0


def trimmed(sound: Sound) -> Sound:
    """From the first to the last audible 10 ms, at one level."""
    peak = float(np.abs(sound).max(initial=1e-6))
    blocks = sound[: sound.size // 160 * 160].reshape(-1, 160)
    loud = np.flatnonzero(np.sqrt((blocks**2).mean(axis=1)) > AUDIBLE * peak)
    if not loud.size:
        return sound
    return (sound[loud[0] * 160 : (loud[-1] + 1) * 160] / peak * PEAK).astype(np.float32)


def take(name: str, kind: str, voice: str, text: str, speech: Sequence[Sound], pause_ms: float = 0.0) -> Take:
    """Half a second of the room, the stretches with the pause between them, two seconds of the room."""
    rng = np.random.default_rng(int(hashlib.sha256(name.encode()).hexdigest()[:8], 16))
    pieces, at, parts = [np.zeros(RATE // 2, np.float32)], RATE // 2, []
    for i, part in enumerate(speech):
        if i:
            pieces.append(np.zeros(round(pause_ms * RATE / 1000), np.float32))
            at += pieces[-1].size
        pieces.append(part)
        parts.append((at, at + part.size))
        at += part.size
    pieces.append(np.zeros(2 * RATE, np.float32))
    dry = np.concatenate(pieces)
    return Take(name, kind, voice, text, dry + room(dry.size, rng), tuple(parts))


def room(samples: int, rng: np.random.Generator) -> Sound:
    """Noise that falls by 3 dB an octave, as in a quiet room."""
    spectrum = np.fft.rfft(rng.standard_normal(samples))
    spectrum /= np.sqrt(np.maximum(np.arange(spectrum.size), 1))
    noise = np.fft.irfft(spectrum, samples)
    return (noise / max(1e-9, float(np.sqrt((noise**2).mean()))) * FLOOR).astype(np.float32)


class Studio:
    """Speaks and fetches; stores everything in `folder`, so it happens once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._origins = Origins(folder / "packages")

    def say(self, voice: str, text: str) -> Sound:
        """float32 at 16 kHz, no silence around it."""
        path = self._folder / voice / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.flac"
        if not path.exists():
            wave, rate = maker(voice)(text)
            wave = wave if rate == RATE else samplerate.resample(wave, RATE / rate, "sinc_best")
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, wave / max(1e-6, float(np.abs(wave).max())) * 0.5, RATE, subtype="PCM_16")
        return trimmed(soundfile.read(path, dtype="float32")[0])

    def act(self, actor: str, name: str) -> Sound:
        """An actor's sound. Raises Unreachable if there is none."""
        file = f"{HEDGEWARS}/{actor}/{name}.ogg"
        return trimmed(decoded(self._origins.read("deb:hedgewars-data", file), file))


@cache
def maker(voice: str) -> Speak:
    return MAKERS[voice]()


# --------------------------------------------------------------------------------------------------- sets


def requests(studio: Studio, part: Part) -> Iterator[Take]:
    """Complete requests, and those with a pause inside."""
    for place, voice in enumerate(VOICES[part]):
        mine = slice(place % EVERY[part], None, EVERY[part])
        for i, text in list(enumerate(COMPLETE[part]))[mine]:
            yield take(f"{part}/{voice}/complete-{i:02d}", "complete", voice, text, [studio.say(voice, text)])
        for i, text in list(enumerate(PAUSED[part]))[mine]:
            halves = [half.strip() for half in text.split("|")]
            pause_ms = PAUSES_MS[(i // EVERY[part] + place) % len(PAUSES_MS)]
            spoken = [studio.say(voice, half) for half in halves]
            yield take(f"{part}/{voice}/paused-{i:02d}", "paused", voice, " ".join(halves), spoken, pause_ms)


def overlaps(studio: Studio, part: Part) -> Iterator[Take]:
    """Sounds over a reply: `nod`, `cough`, `laugh`, `hum` should stop nothing, `interruption` should."""
    for voice in OVER[part]:
        for kind, texts in (("nod", NODS[part]), ("interruption", INTERRUPTIONS[part])):
            for i, text in enumerate(texts):
                yield take(f"{part}/{voice}/{kind}-{i:02d}", kind, voice, text, [studio.say(voice, text)])
    kinds = {"Laugh": "laugh", "Hmm": "hum", "PoisonCough": "cough"}
    for actor in ACTORS[part]:
        for name in (*MURMURS, *(CUTS_IN if actor in ENGLISH else ())):
            try:
                sound = studio.act(actor, name)
            except Unreachable:
                continue
            kind = kinds.get(name, "interruption")
            yield take(f"{part}/{actor}/{name}", kind, actor, name if kind == "interruption" else "", [sound])


def every(studio: Studio, part: Part) -> Iterable[Take]:
    yield from requests(studio, part)
    yield from overlaps(studio, part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--part", choices=("dev", "test"), action="append")
    args = parser.parse_args()
    studio = Studio(args.cache)
    for part in args.part or ("dev", "test"):
        kinds: dict[str, list[float]] = {}
        for one in every(studio, part):
            kinds.setdefault(one.kind, []).append((one.parts[-1][1] - one.parts[0][0]) / RATE)
        for kind, seconds in kinds.items():
            print(f"{part:5}{kind:14}{len(seconds):5}  {np.median(seconds):.2f} s in the median")


if __name__ == "__main__":
    main()
