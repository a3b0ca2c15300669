"""Teacher speech: sentences spoken by Festival's HTS voice, with every phone's end time, as resumable shards.

The voice is `cmu_us_slt_arctic_hts` (Debian `festival`, `festvox-us-slt-hts`; permissive, keep the CMU notice).
Both voices are that model with its pitch lowered and its frequency warping raised inside the voice file, so that the
durations, phones and alignments stay exact while formants and pitch move: for `ada` because a recogniser hears the
published voice far worse (19.9 % word errors against 8.8 % at 0.48, and less at 0.50), for `ben` to a male range.

Run:  python -m recipes.teacher --work .training/speech --hours 8 --seconds 540   (again, until it says done)
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import samplerate
import soundfile
from numpy.typing import NDArray
from pocketsphinx import NGramModel, get_model_path

from recipes import sentences
from tts_engine.phones import PAUSES, VOWELS

Clip: TypeAlias = NDArray[np.int16]
SAMPLE_RATE = 24_000
SHARD_SENTENCES = 200
LEAD_S = 0.04  # silence kept before the first phone: one frame
TAIL_S = 0.16  # silence kept after the last phone
VOICE_FILE = Path("/usr/share/festival/voices/us/cmu_us_slt_arctic_hts/hts/cmu_us_slt_arctic_hts.htsvoice")
LF0_PDF = (1_020_189, 1_123_333)  # STREAM_PDF[LF0] of that file, counted from [DATA]


@dataclass(frozen=True)
class TeacherVoice:
    """One teacher voice: `warp` is the all-pass constant (0.45 as published), `pitch` a factor on F0."""

    name: str
    warp: str
    pitch: float


VOICES = (TeacherVoice("ada", "0.50", 0.9), TeacherVoice("ben", "0.52", 0.62))

_SCHEME = """
(voice_cmu_us_slt_arctic_hts)
(set! hts_engine_params (list (list "-m" "{voice}") '("-r" 1.0)))
(set! phrase_cart_tree '((lisp_token_end_punc in ("?" "." ":" "!")) ((BB))
  ((lisp_token_end_punc in ("'" "\\"" "," ";")) ((B)) ((n.name is 0) ((BB)) ((NB))))))
(Parameter.set 'Phrase_Method 'cart_tree)
(define (say text base)
 (let ((u (utt.synth (eval (list 'Utterance 'Text text)))) (fd (fopen (string-append base ".seg") "w")))
  (utt.save.wave u (string-append base ".wav"))
  (mapcar (lambda (s)
    (format fd "%s\\t%s\\t%s\\t%s\\t%s\\t%s\\t%s\\n" (item.name s) (item.feat s "end")
      (item.feat s "R:SylStructure.parent.stress")
      (item.feat s "pos_in_syl") (item.feat s "R:SylStructure.parent.pos_in_word")
      (item.feat s "R:SylStructure.parent.parent.R:Token.parent.punc")
      (item.feat s "R:SylStructure.parent.parent.name")))
   (utt.relation.items u 'Segment))
  (fclose fd)))
"""


def voice_file(voice: TeacherVoice, out: Path) -> Path:
    """A copy of the HTS voice with another frequency warping and another mean of log F0.

    The LF0 block is 5 uint32 counts, then 7 float32 per state: three means, three variances, voicing.
    """
    data = bytearray(VOICE_FILE.read_bytes())
    at = data.index(b"ALPHA=0.45") + len(b"ALPHA=")
    data[at : at + 4] = voice.warp.encode()
    base = data.index(b"[DATA]\n") + len(b"[DATA]\n")
    start, stop = base + LF0_PDF[0] + 20, base + LF0_PDF[1]
    pdf = np.frombuffer(bytes(data[start:stop]), "<f4").reshape(-1, 7).copy()
    pdf[:, 0] += np.log(voice.pitch)
    data[start:stop] = pdf.tobytes()
    out.write_bytes(bytes(data))
    return out


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


def tokens(segments: list[tuple[str, float, str, str, str, str, str]]) -> tuple[list[str], list[float]]:
    """Festival's segments -> phone tokens and their end times in seconds.

    Vowels carry their stress as a trailing 1; `#` (no duration) stands before each further word of a phrase;
    a pause is the punctuation that caused it; the first is `sil`.
    """
    names: list[str] = []
    ends: list[float] = []
    punctuation = ","
    for phone, end, stress, in_syllable, in_word, punc, _word in segments:
        if phone == "pau":
            names.append(punctuation if names else "sil")
            ends.append(end)
            continue
        if (in_syllable, in_word) == ("0", "0") and names and names[-1] not in PAUSES:
            names.append("#")
            ends.append(ends[-1])
        names.append(phone + ("1" if phone in VOWELS and stress == "1" else ""))
        ends.append(end)
        punctuation = next((p for p in "?!.,;:" if p in punc), ",")
        punctuation = {";": ",", ":": "."}.get(punctuation, punctuation)
    return names, ends


def speak(lines: list[str], voice: TeacherVoice, folder: Path) -> tuple[list[Clip], list[dict[str, Any]]]:
    """Synthesise `lines`; returns int16 audio at 24 kHz and {"text", "voice", "phones", "ends"} for each."""
    folder.mkdir(parents=True, exist_ok=True)
    model = voice_file(voice, folder / "model.htsvoice")
    calls = [f'(say "{line}" "{folder}/{i:04d}")' for i, line in enumerate(lines)]
    script = folder / "run.scm"
    script.write_text(_SCHEME.replace("{voice}", str(model)) + "\n".join(calls))
    subprocess.run(["festival", "-b", str(script)], check=True)
    audio: list[Clip] = []
    facts: list[dict[str, Any]] = []
    for i, line in enumerate(lines):
        wave, rate = soundfile.read(folder / f"{i:04d}.wav", dtype="float32")
        rows = [r.split("\t") for r in (folder / f"{i:04d}.seg").read_text().splitlines()]
        names, ends = tokens([(r[0], float(r[1]), r[2], r[3], r[4], r[5], r[6]) for r in rows])
        start = max(0.0, ends[0] - LEAD_S)
        stop = min(len(wave) / rate, ends[-2] + TAIL_S)
        wave = samplerate.resample(wave[int(start * rate) : int(stop * rate)], SAMPLE_RATE / rate, "sinc_medium")
        audio.append((np.clip(wave * 1.1, -1, 1) * 32767).astype(np.int16))
        times = [round(min(e, stop) - start, 4) for e in ends]
        facts.append({"text": line, "voice": voice.name, "phones": names, "ends": times})
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
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
    parser.add_argument("--seconds", type=float, default=540.0, help="stop after this long; run again to go on")
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
                print(f"paused at shard {shard}, {total_s / 3600:.2f} h; run again to go on")
                return
            save_shard(path, *speak(lines, VOICES[shard % len(VOICES)], args.work / f"making{shard:04d}"))
        with np.load(path) as data:
            total_s += float(data["offsets"][-1]) / SAMPLE_RATE
        shard += 1
        print(f"shard {shard}  {total_s / 3600:.2f} h  {time.monotonic() - began:.0f} s", flush=True)
    print("done")


if __name__ == "__main__":
    main()
