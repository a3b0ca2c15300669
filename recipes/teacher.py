"""Teacher speech: sentences spoken by hibari's voice, with every phone's end time, as resumable shards.

The voice is *heart* of `hibari-tts` (Apache-2.0, distilled from Kokoro-82M; keep the notice). It gets the phones that
the small voice will read, from the product's own front end, and reports how long each of them lasts. Both of our voices
are made from it: played slower, which lowers formants and pitch alike, and spoken faster by as much; `ben`'s pitch,
which must be still lower, is lowered by the vocoder WORLD.

Run:  python -m recipes.teacher --work .training/speech --hours 8 --seconds 540   (again, until it says done)
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import samplerate
from numpy.typing import NDArray
from pocketsphinx import NGramModel, get_model_path

from recipes import sentences
from tts_engine.phones import PAUSES, PHONES, SPECIAL_TOKENS, PhoneEncoder, PhoneText

Clip: TypeAlias = NDArray[np.int16]
SAMPLE_RATE = 24_000
SHARD_SENTENCES = 200
LEAD_S = 0.04  # silence kept before the first phone: one frame
TAIL_S = 0.16  # silence kept after the last phone
STEP_S = 0.025  # time unit of the teacher's durations
EARLY_S = 0.05  # phones begin to sound this much before the durations say so: median after 149 commas
DURATIONS = "/Clip_output_0"  # the network's name for them
GAIN = 1.3  # about as loud as other voices, and nothing clipped
QUIET = 0.02  # share of the level of the loudest hundredth of a second: below it is silence
FRONT_END = Path(__file__).parents[1] / "tts_engine" / "tiny"
NAMES = (*SPECIAL_TOKENS, *PHONES)
"""Phones by the front end's ids."""
_PAIRS = (
    "aa ɑ; ae æ; ah ʌ; ao ɔ; aw W; ax ə; ay I; eh ɛ; er ɜɹ; ey A; ih ɪ; iy i; ow O; oy Y; uh ʊ; uw u; b b; ch ʧ; d d; "
    "dh ð; f f; g ɡ; hh h; jh ʤ; k k; l l; m m; n n; ng ŋ; p p; r ɹ; s s; sh ʃ; t t; th θ; v v; w w; y j; z z; zh ʒ"
)
IPA: dict[str, str] = dict(pair.split() for pair in _PAIRS.split("; "))
"""Our phones in the alphabet of the teacher (misaki's)."""
STRESS, SECOND_STRESS = "ˈˌ"


@dataclass(frozen=True)
class TeacherVoice:
    """One teacher voice: the factors on formants and on pitch (1 as published)."""

    name: str
    formants: float
    pitch: float


VOICES = (TeacherVoice("ada", 0.9, 0.9), TeacherVoice("ben", 0.86, 0.62))


class Heart:
    """The published voice, changed to output its durations. Raises ModuleNotFoundError without the extra `train`."""

    def __init__(self) -> None:
        import onnx
        import onnxruntime

        assets = resources.files("hibari") / "assets"
        model = onnx.load(str(assets / "hibari.onnx"))
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(DURATIONS))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._ids: dict[str, int] = json.loads((assets / "vocab.json").read_text("utf-8"))
        lexicon = gzip.decompress((assets / "lexicon_us_gold.json.gz").read_bytes())
        self._entries: dict[str, str | dict[str, str]] = json.loads(lexicon)

    def __call__(self, symbols: Sequence[str], speed: float, seed: int) -> tuple[NDArray[np.float32], list[float]]:
        """float32 at 24 kHz, and the end of each of the symbols in seconds; a space lasts no time, its silence belongs
        to the next symbol."""
        from hibari import dsp

        written = [each + " " * (each in PAUSES and at + 1 < len(symbols)) for at, each in enumerate(symbols)]
        ids = [0, *(self._ids[character] for character in "".join(written)), 0]
        given = {"ids": np.array([ids], np.int64), "speed": np.array([speed], np.float32)}
        *parts, lasting = self._session.run(None, given)
        wave = dsp.synth(*(part[0] for part in parts), np.random.default_rng(seed))
        reached = np.cumsum(lasting) * STEP_S
        ends = [float(reached[place]) for place in np.cumsum([len(text) for text in written])]
        for at, each in enumerate(symbols):
            if each == " ":
                ends[at] = ends[at - 1]
        return wave, ends

    def symbols(self, line: str, text: PhoneText) -> list[str]:
        """The phones of a line in the teacher's alphabet; the silence at the beginning has none."""
        symbols = [symbol(NAMES[phone]) for phone in text.ids]
        for begin, end, first, last in text.words:
            mark = self._stress(line[begin:end].lower())
            symbols[first:last] = [each.replace(STRESS, mark) for each in symbols[first:last]]
        return symbols

    def _stress(self, word: str) -> str:
        """The mark before a word's stressed vowel: little words have none, by the teacher's own lexicon."""
        entry = STRESS if len(word) == 1 else self._entries.get(word, STRESS)  # a single letter is spoken by its name
        entry = entry if isinstance(entry, str) else entry["DEFAULT"]
        return next((mark for mark in (STRESS, SECOND_STRESS) if mark in entry), "")


def symbol(phone: str) -> str:
    """One phone in the teacher's alphabet, a stressed vowel after its mark."""
    if phone in PAUSES:
        return phone.removeprefix("sil")
    if phone == "#":
        return " "
    if phone == "er":
        return "əɹ"
    return STRESS * phone.endswith("1") + IPA[phone.removesuffix("1")]


def ranked_words(count: int) -> list[str]:
    """The `count` most frequent plain words of pocketsphinx's dictionary by its own language model."""
    lm = NGramModel.readfile(get_model_path("en-us/en-us.lm.bin"))
    entries = Path(get_model_path("en-us/cmudict-en-us.dict")).read_text().splitlines()
    words = {w for w in (line.split(" ", 1)[0] for line in entries) if re.fullmatch(r"[a-z]{2,13}", w)}
    words |= {"a", "i"}
    return sorted(words, key=lambda w: (-lm.prob([w]), w))[:count]


def open_sentences(rng: random.Random, words: list[str]) -> Iterator[str]:
    """Word strings over the whole vocabulary: each word is the likeliest of a few drawn, by a trigram model."""
    lm = NGramModel.readfile(get_model_path("en-us/en-us.lm.bin"))
    weights = [1 / (30 + i) ** 0.35 for i in range(len(words))]
    pool: list[str] = []
    while True:
        chosen: list[str] = []
        for _ in range(rng.randint(3, 10)):
            if len(pool) < 12:
                pool = rng.choices(words, weights, k=20_000)
            draw = [pool.pop() for _ in range(rng.choice([1, 1, 2, 4, 12]))]
            chosen.append(max(draw, key=lambda w: lm.prob([w, *reversed(chosen[-2:])])))
        for place in range(2, len(chosen) - 1):
            if rng.random() < 0.08:
                chosen[place] += ","
        text = " ".join("I" if w == "i" else w for w in chosen)
        yield text[0].upper() + text[1:] + rng.choice("....?!")


def texts(seed: int) -> Iterator[str]:
    """An endless stream of distinct teacher sentences: half the assistant's own kind, half open vocabulary."""
    rng = random.Random(seed)
    words = ranked_words(18_000)
    wide = open_sentences(rng, words)
    seen: set[str] = set()
    while True:
        text = sentences.reply(rng) if rng.random() < 0.45 else next(wide)
        if 2 < len(text) <= 110 and text not in seen:
            seen.add(text)
            yield text


def lowered(wave: NDArray[np.float32], pitch: float) -> NDArray[np.float32]:
    """The same speech with its pitch times `pitch`; formants stay."""
    import pyworld

    sound = wave.astype(np.float64)
    f0, times = pyworld.dio(sound, SAMPLE_RATE)
    f0 = pyworld.stonemask(sound, f0, times, SAMPLE_RATE)
    envelope = pyworld.cheaptrick(sound, f0, times, SAMPLE_RATE)
    breath = pyworld.d4c(sound, f0, times, SAMPLE_RATE)
    made = pyworld.synthesize(f0 * pitch, envelope, breath, SAMPLE_RATE)
    return np.asarray(made, np.float32)


def sounding(wave: NDArray[np.float32]) -> tuple[float, float]:
    """The beginning and end of the sound, in seconds: the teacher's own durations give the first phone a part of the
    silence before it and the last one all of that after it."""
    step = SAMPLE_RATE // 100
    level = np.sqrt(np.square(wave[: len(wave) // step * step]).reshape(-1, step).mean(1))
    (loud,) = np.nonzero(level > QUIET * level.max())
    return float(loud[0]) / 100, float(loud[-1] + 1) / 100


def speak(lines: list[str], voice: TeacherVoice, seed: int = 0) -> tuple[list[Clip], list[dict[str, Any]]]:
    """Synthesise `lines`; returns int16 audio at 24 kHz and {"text", "voice", "phones", "ends"} for each."""
    heart, front_end = Heart(), PhoneEncoder.load(FRONT_END)
    audio: list[Clip] = []
    facts: list[dict[str, Any]] = []
    for place, line in enumerate(lines):
        text = front_end.phones_of(line)
        phones = [NAMES[i] for i in text.ids]
        wave, ends = heart(heart.symbols(line, text), 1 / voice.formants, seed + place)
        wave = samplerate.resample(wave, 1 / voice.formants, "sinc_medium")
        if voice.pitch != voice.formants:
            wave = lowered(wave, voice.pitch / voice.formants)
        first, last = sounding(wave)
        start, stop = max(0.0, first - LEAD_S), last + TAIL_S
        wave = np.pad(wave, (0, round(TAIL_S * SAMPLE_RATE)))[int(start * SAMPLE_RATE) : int(stop * SAMPLE_RATE)]
        audio.append((np.clip(wave * GAIN, -1, 1) * 32767).astype(np.int16))
        inner = np.clip(np.array(ends[1:-2]) / voice.formants - EARLY_S, first, last)
        times = np.array([first, *inner, last, stop]) - start
        facts.append({"text": line, "voice": voice.name, "phones": phones, "ends": times.round(4).tolist()})
    return audio, facts


def save_shard(path: Path, audio: list[Clip], facts: list[dict[str, Any]]) -> None:
    """One shard: all samples end to end, the offsets, and the facts as JSON; written aside, then renamed."""
    offsets = np.cumsum([0, *(len(a) for a in audio)])
    aside = path.with_suffix(".tmp.npz")
    np.savez(aside, audio=np.concatenate(audio), offsets=offsets, facts=json.dumps(facts))
    aside.rename(path)


def load_shard(path: Path) -> tuple[list[Clip], list[dict[str, Any]]]:
    """The inverse of `save_shard`: int16 audio and facts per sentence."""
    with np.load(path) as shard:
        audio, offsets = shard["audio"], shard["offsets"]
        return [audio[a:b] for a, b in pairwise(offsets)], json.loads(str(shard["facts"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path(".training/speech"))
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--seconds", type=float, default=540.0, help="stop after this long; run again to continue")
    parser.add_argument("--part", type=int, default=0, help="this process makes every `parts`-th shard")
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    stream = texts(args.seed)
    total_s, shard = 0.0, 0
    while total_s < args.hours * 3600:
        lines = [next(stream) for _ in range(SHARD_SENTENCES)]
        path = args.work / f"shard{shard:04d}.npz"
        if not path.exists():
            if shard % args.parts != args.part:
                total_s += SHARD_SENTENCES * 2.7
                shard += 1
                continue
            if time.monotonic() - began > args.seconds:
                print(f"paused at shard {shard}, {total_s / 3600:.2f} h; run again to continue")
                return
            save_shard(path, *speak(lines, VOICES[shard % len(VOICES)], shard * SHARD_SENTENCES))
        with np.load(path) as data:
            total_s += float(data["offsets"][-1]) / SAMPLE_RATE
        shard += 1
        print(f"shard {shard}  {total_s / 3600:.2f} h  {time.monotonic() - began:.0f} s", flush=True)
    print("done")


if __name__ == "__main__":
    main()
