"""Scores the hearing side on utterances the recipes never saw, in voices it was not tuned on, clean and in pink noise.

Run:  python -m recipes.hearing_score --work .training/asr      (needs espeak-ng, flite and festival)
"""

# ruff: noqa: E501, SIM905 - word lists read best as running text

import argparse
import random
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import samplerate
import soundfile

RATE = 16_000
CHUNK = 1_280  # 80 ms, as the pipeline pushes it
VOICES: dict[str, list[str]] = {
    "espeak-us": ["espeak-ng", "-v", "en-us", "-s", "150", "-w", "{out}", "{text}"],
    "espeak-gb": ["espeak-ng", "-v", "en-gb+f3", "-s", "155", "-w", "{out}", "{text}"],
    "flite-slt": ["flite", "-voice", "slt", "-t", "{text}", "-o", "{out}"],
    "flite-rms": ["flite", "-voice", "rms", "-t", "{text}", "-o", "{out}"],
    "flite-awb": ["flite", "-voice", "awb", "-t", "{text}", "-o", "{out}"],
    "flite-kal16": ["flite", "-voice", "kal16", "-t", "{text}", "-o", "{out}"],
}

HELD_OUT = """what time is it
could you tell me the date please
set a timer for twelve minutes
start a forty five second timer
cancel the timer
how much time do i have left
wake me up at quarter to seven tomorrow morning
set an alarm for eight twenty on friday
what is seventeen times six
how much is two hundred and five minus eighty nine
divide one hundred and forty four by twelve
and plus thirty three
what is fifteen percent of two hundred
convert twenty six miles to kilometers
how many ounces are in a pound
what is one hundred degrees fahrenheit in celsius
remind me to call my sister at half past four
remind me in twenty minutes to check the oven
put bananas and coffee on my shopping list
remove butter from the list
what is on my list
make a note that says pay the rent
read my notes please
count from five to fifteen
what was the last number you said
count down from ten
how do you spell restaurant
spell the word beautiful
tell me a story about a pirate and an owl
go on with the story
what happened to the owl
tell me another joke
who are you
what can you do for me
where does my voice go
how old are you
are you a real person
good evening how are you
my name is daniel
do you still know my name
what did i just say
thank you that was nice
goodbye see you tomorrow
undo that please
let us start over
be someone else
i want to talk to somebody else
stop talking
wait a moment
no i meant fifty not fifteen
yes please do that
no thanks
can you say that again more slowly
i did not hear you
what is the weather like today
who is the president of france
how far away is the sun
play some music
i feel a little tired tonight
how many days until christmas""".split("\n")


def plain(text: str) -> list[str]:
    """Words as they are scored: lower case, contractions of `is` opened, no punctuation."""
    return re.sub(r"[^a-z' ]", " ", text.lower().replace("'s", " is").replace("-", " ")).split()


def word_errors(reference: Sequence[str], heard: Sequence[str]) -> int:
    """Levenshtein distance in words."""
    row = list(range(len(heard) + 1))
    for i, wanted in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, got in enumerate(heard, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (wanted != got))
    return row[-1]


def synthesise(text: str, voice: str, path: Path) -> np.ndarray:
    """float32 at 16 kHz, peak 0.5, 0.3 s of silence before and 0.5 s after; kept in `path`."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [part.format(out=path, text=text) for part in VOICES[voice]]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    wave, rate = soundfile.read(path, dtype="float32")
    if rate != RATE:
        wave = samplerate.resample(wave, RATE / rate, "sinc_medium")
    wave = wave / max(1e-6, float(np.abs(wave).max())) * 0.5
    return np.concatenate([np.zeros(4_800, np.float32), wave, np.zeros(8_000, np.float32)]).astype(np.float32)


def with_pink_noise(wave: np.ndarray, snr_db: float, seed: int) -> np.ndarray:
    """Add noise that falls 3 dB per octave, `snr_db` below the speech's own level."""
    rng = np.random.default_rng(seed)
    spectrum = np.fft.rfft(rng.standard_normal(len(wave)))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    spectrum[0] = 0
    noise = np.fft.irfft(spectrum, len(wave))
    active = wave[np.abs(wave) > 0.01]
    level = float(np.sqrt(np.mean(active**2))) * 10 ** (-snr_db / 20)
    return np.clip(wave + noise / noise.std() * level, -1, 1).astype(np.float32)


def main() -> None:
    from assistant.asr import KINDS, open_asr

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path(".training/asr"))
    parser.add_argument("--set", type=Path, help="a file with one utterance per line instead of the built-in 60")
    parser.add_argument("--gain", type=float, default=1.0, help="how loud the microphone is, in 16 bits; 0.05 is quiet")
    parser.add_argument("--show", type=int, default=0, help="print this many mistakes")
    parser.add_argument("--asr", choices=[*KINDS], default="pocketsphinx", help="which ears")
    args = parser.parse_args()
    texts = args.set.read_text().split("\n") if args.set else HELD_OUT
    name = args.set.stem if args.set else "held_out"
    ear = open_asr(args.asr).transcriber()
    mistakes: list[str] = []
    for snr in (None, 15.0):
        errors, words, wrong, refused, final_ms = 0, 0, 0, 0, []
        per_voice, cpu, seconds = {}, 0.0, 0.0
        for voice in VOICES:
            before = (errors, words)
            ear.forget()  # each voice is a separate talk
            for i, text in enumerate(texts):
                wave = synthesise(text, voice, args.work / name / voice / f"{i:03d}.wav")
                if snr is not None:
                    wave = with_pink_noise(wave, snr, i)
                wave = (np.round(wave * args.gain * 32767) / 32767).astype(np.float32)
                began = time.process_time()
                for start in range(0, len(wave), CHUNK):
                    ear.push(wave[start : start + CHUNK])
                ended = time.perf_counter()
                heard = ear.final()
                final_ms.append((time.perf_counter() - ended) * 1e3)
                cpu += time.process_time() - began
                seconds += len(wave) / RATE
                mistake = word_errors(plain(text), plain(heard.text))
                errors, words, wrong = errors + mistake, words + len(plain(text)), wrong + (mistake > 0)
                refused += not heard.speech
                if mistake:
                    mistakes.append(f"{voice} {snr}: {text} | {heard.text} ({heard.confidence})")
            per_voice[voice] = round(100 * (errors - before[0]) / (words - before[1]), 1)
        print(
            f"{'clean' if snr is None else f'pink noise {snr:.0f} dB'}: WER {100 * errors / words:.1f} % (n = {words} words, "
            f"{len(texts)} x {len(VOICES)}), utterances with an error {100 * wrong / len(texts) / len(VOICES):.1f} %, "
            f"not understood {refused}, final {np.median(final_ms):.0f} ms, "
            f"real-time factor {cpu / seconds:.3f}, by voice {per_voice}",
            flush=True,
        )
    for line in random.Random(0).sample(mistakes, min(args.show, len(mistakes))):
        print("  ", line)


if __name__ == "__main__":
    main()
