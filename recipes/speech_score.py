"""Scores the small voice by a recogniser: the teacher, its codes decoded, and the voice itself, on unseen sentences.

Run:  python -m recipes.speech_score --sentences 40      (needs the extra `train`, or --skip-teacher)

Nobody listens: the judge is pocketsphinx with its general language model, so the teacher's own figure is the ceiling.
With `--domain`, `--moonshine` and `--whisper` (extra `judge`) others hear the same sound: pocketsphinx with a language
model of the assistant's sentences, the product's ears and Whisper tiny.en, which were fitted to none of the texts.
`--peers joe heart` has other voices say the same: an error that a judge makes with all of them is the judge's own. ± is
one standard error, sentences drawn again; `--draws 2` says every sentence with two seeds.
"""

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import samplerate
import torch
from numpy.typing import NDArray
from pocketsphinx import Config, Decoder, get_model_path

from capsules import ExecContext
from recipes import sentences
from recipes.asr import ears, voices
from recipes.asr.score import normaliser, spread
from recipes.hearing import count_grams, pronunciations, write_arpa
from recipes.hearing_score import plain, word_errors
from recipes.teacher import VOICES, TeacherVoice, speak
from tts_engine.engine import HiggsTTS
from tts_engine.istft_codec import mel_filters
from tts_engine.reference import Voice
from tts_engine.sampling import VoiceSampling

OPEN = """The baker gave us two loaves for the price of one.
Heavy rain turned the narrow road into a river.
My grandmother still writes letters with a fountain pen.
Nobody expected the small team to win the final.
The museum opens at nine and closes before dinner.
She planted tomatoes along the southern wall.
A strange noise woke the whole family at midnight.
The pilot apologized for the delay and the cold coffee.
Fresh snow covered the tracks of the fox.
We should repair the fence before the horses escape.
The judge asked the witness to speak more clearly.
He sold his motorcycle and bought a sailing boat.
Several students missed the train because of the storm.
The recipe calls for butter, flour and a little salt.
Old maps often show islands that do not exist.
Her brother works as a nurse in a large hospital.
The committee will publish the results next week.
Put the ladder against the tree and hold it firmly.
Few people remember the name of the inventor.
The children built a castle out of wet sand.
Our neighbors complained about the loud music.
A good teacher listens before giving advice.
The company promised to replace the broken window.
Birds follow the coast when they travel south.
Please leave your shoes beside the front door.
The engine stopped twice before we reached the top.
Honey never spoils if you keep it dry.
They painted the kitchen yellow to make it brighter.
The doctor prescribed rest and plenty of water.
An honest answer is better than a clever one.
Workers found ancient coins under the old bridge.
The actor forgot his lines and began to laugh.
Most visitors take pictures of the famous tower.
I would rather walk than wait for another bus.
The farmer counted his sheep and found one missing.
Strong coffee keeps the night guard awake.
The letter arrived three days after the wedding.
Scientists measure the depth of the ocean with sound.
Turn left at the church and follow the river.
The price of bread has doubled since last winter.""".split("\n")  # noqa: SIM905


NAMES = """My friend Michael lives in Boston with his sister Laura.
Call Jessica at half past seven.
Robert paid forty seven dollars for the jacket.
Your appointment with Doctor Harris is on the nineteenth of October.
The train to Chicago leaves at six fifty two.
There are three hundred and sixty five days in a year.
Susan was born on the thirtieth of August.
Seventeen times six is one hundred and two.
Peter and Emily moved from London to Madrid.
The flight to Paris takes eight hours and fifteen minutes.
Daniel weighs one hundred and eighty pounds.
I will remind you to call Patricia at twelve thirty.
Two hundred and fourteen minus ninety eight is one hundred and sixteen.
William and Margaret arrive on Wednesday.
The score was eighty one to seventy nine.
Christopher bought sixteen eggs and thirteen lemons.
Fifty or fifteen, which one did you mean?
Barbara called from Seattle on Thursday evening.
Kevin ran eleven miles in ninety minutes.
The meeting with Andrew is in room four hundred and twelve.
Canada is larger than Australia and Brazil.
Nine thousand six hundred and forty people live in this town.
Thomas will be seventy years old in February.
Rachel owes me twenty four dollars and sixty cents.
It is twenty three degrees in Berlin and eighteen in Vienna.
Set the oven to three hundred and fifty degrees.
Edward and Helen meet George in New York on Friday.
The temperature fell to minus fourteen in Moscow.
Linda read thirty three pages on Monday and forty on Tuesday.
Steven drove five hundred and sixty miles to Denver.""".split("\n")  # noqa: SIM905
"""Names of people and places, and numbers: words that cannot be guessed from the rest of the sentence."""


class Judge(Protocol):
    """A listener to float32 sound at 24 kHz."""

    name: str

    def begin(self) -> None:
        """Forget what was heard before."""

    def words(self, text: str) -> list[str]:
        """A text as this judge would write it."""

    def __call__(self, pcm: NDArray[np.float32]) -> list[str]:
        """The words that were understood."""


class SpeechJudge:
    """pocketsphinx with its general language model, or with one of the assistant's own sentences."""

    def __init__(self, domain: bool = False) -> None:
        self.name = "domain" if domain else "general"
        with tempfile.TemporaryDirectory() as folder:
            files = write_domain(Path(folder)) if domain else {"lm": get_model_path("en-us/en-us.lm.bin")}
            self._decoder = Decoder(Config(**files, loglevel="FATAL"))
        self._state = self._decoder.get_cmn(False)

    def begin(self) -> None:
        self._decoder.set_cmn(self._state)
        self._rng = np.random.default_rng(0)

    def words(self, text: str) -> list[str]:
        return plain(text)

    def __call__(self, pcm: NDArray[np.float32]) -> list[str]:
        """The words heard with dither and silence around the sound."""
        wave = samplerate.resample(pcm, 16_000 / 24_000, "sinc_medium") * 20_000
        wave = np.concatenate([np.zeros(3_000), wave, np.zeros(5_000)])
        noisy = wave + self._rng.standard_normal(len(wave)) * 50
        self._decoder.start_utt()
        self._decoder.process_raw(np.clip(noisy, -32768, 32767).astype("<i2").tobytes(), full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return plain(hypothesis.hypstr) if hypothesis else []


class Recogniser:
    """A recogniser that was fitted to none of the texts; numbers as digits in both texts."""

    def __init__(self, name: str, recognise: ears.Recognise) -> None:
        self.name = name
        self._recognise = recognise

    def begin(self) -> None:
        pass

    def words(self, text: str) -> list[str]:
        found: list[str] = normaliser()(text).split()
        return found

    def __call__(self, pcm: NDArray[np.float32]) -> list[str]:
        return self.words(self._recognise(ears.utterance(pcm, 24_000)))


def as_written(heard: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The words heard, joined and split as in the text: `good bye` sounds like `goodbye`."""
    text = f" {' '.join(heard)} "
    for word in set(wanted):
        for cut in range(1, len(word)):
            text = text.replace(f" {word[:cut]} {word[cut:]} ", f" {word} ")
    for first, second in pairwise(wanted):
        text = text.replace(f" {first}{second} ", f" {first} {second} ")
    return text.split()


def rate(judge: Judge, name: str, spoken: Sequence[NDArray[np.float32]], texts: Sequence[str], show: int = 0) -> None:
    """Print the word error rate of the spoken sentences."""
    judge.begin()
    wanted = [judge.words(text) for text in texts]
    heard = [as_written(judge(pcm), text) for pcm, text in zip(spoken, wanted, strict=True)]
    wrong, words = [word_errors(a, b) for a, b in zip(wanted, heard, strict=True)], [len(a) for a in wanted]
    print(
        f"{name}, {judge.name}: WER {100 * sum(wrong) / sum(words):.1f} ± {100 * spread(wrong, words):.1f} % "
        f"(n = {sum(words)} words, {len(texts)} utterances)",
        flush=True,
    )
    for text, words_heard, mistakes in list(zip(texts, heard, wrong, strict=True))[:show]:
        print(f"   {mistakes}  {text} | {' '.join(words_heard)}")


def write_domain(folder: Path) -> dict[str, str]:
    """A trigram in ARPA text and a dictionary of 20,000 sentences in the assistant's style, without the scored ones."""
    rng, known = random.Random(5), pronunciations()
    scored = set(own_sentences(1_000))
    texts = [" ".join(plain(t)) for t in (sentences.reply(rng) for _ in range(20_000)) if t not in scored]
    texts = [t for t in texts if all(word in known for word in t.split())]
    lm, words = folder / "own.arpa", folder / "own.dict"
    write_arpa(count_grams(texts), lm)
    listed = sorted({word for t in texts for word in t.split()})
    words.write_text("".join(f"{line}\n" for word in listed for line in known[word]))
    return {"lm": str(lm), "dict": str(words)}


def own_sentences(count: int) -> list[str]:
    """Sentences of the assistant's own kind, each once, from a seed that no training uses."""
    rng, found = random.Random(987_654_321), dict[str, None]()
    while len(found) < count:
        found[sentences.reply(rng)] = None
    return list(found)


def mel_distance(made: NDArray[np.float32], real: NDArray[np.float32]) -> float:
    """Mean |difference| in dB of 80 log-mel bands (1024 samples, every 240) over the audible frames of `real`."""
    size = min(len(made), len(real))
    waves = torch.from_numpy(np.stack([made[:size], real[:size]]))
    spectrum = torch.stft(waves, 1024, 240, window=torch.hann_window(1024), return_complex=True).abs()
    a, b = torch.log((mel_filters(1024, 80, 24_000) @ spectrum).clamp(min=1e-4))
    return float((20 / math.log(10) * (a - b).abs()).mean(0)[b.mean(0) > -6].mean())


def stored_voices(folder: Path, tts: HiggsTTS) -> dict[str, Voice]:
    """The voices of voices.json: reference codes, or null for the voice that speaks without a reference."""
    raw = json.loads((folder / "voices.json").read_text())
    return {
        name: Voice(name, None, None) if codes is None else tts.voice_from_codes(torch.tensor(codes), name=name)
        for name, codes in raw.items()
    }


def teacher_rates(tts: HiggsTTS, voice: TeacherVoice, texts: Sequence[str], name: str, judges: Sequence[Judge]) -> None:
    """Error rates of the teacher's speech, and of the same speech decoded from its codes."""
    clips, _ = speak(list(texts), voice)
    waves = [np.divide(c, 32767, dtype=np.float32) for c in clips]
    coded = [tts.decode(tts.codec.to_codes(torch.from_numpy(w))).numpy() for w in waves]
    distance = np.mean([mel_distance(a, b) for a, b in zip(coded, waves, strict=True)])
    print(f"{name}, codec: log-mel distance {distance:.2f} dB ({len(waves)} sentences)")
    for judge in judges:
        rate(judge, f"{name}, teacher", waves, texts)
        rate(judge, f"{name}, codec", coded, texts)


def peer_rates(peer: str, texts: Sequence[str], name: str, judges: Sequence[Judge]) -> None:
    """Error rates of a published voice unrelated to ours, as loud as the recordings of the ears' score."""
    speak, waves = voices.VOICES[peer](), []
    for text in texts:
        wave, rate_hz = speak(text)
        waves.append(samplerate.resample(wave / np.abs(wave).max() * voices.PEAK, 24_000 / rate_hz, "sinc_medium"))
    for judge in judges:
        rate(judge, f"{name}, peer {peer}", waves, texts)


def said(
    tts: HiggsTTS, voice: Voice, texts: Sequence[str], samplings: Sequence[VoiceSampling]
) -> list[NDArray[np.float32]]:
    """Speak every text, once with each sampling; prints how it went."""
    began, spoken, ended = time.process_time(), [], 0
    for sampling in samplings:
        for text in texts:
            parts = list(tts.speak(text, voice, sampling))
            spoken.append(torch.cat(parts).numpy() if parts else np.zeros(2_400, np.float32))
            ended += tts.pieces[-1].ended == "end"
    cpu, seconds = time.process_time() - began, sum(map(len, spoken)) / 24_000
    print(f"   ended by itself {ended} of {len(spoken)}, {seconds:.0f} s, real-time factor {cpu / seconds:.2f}")
    return spoken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("tts_engine/tiny"))
    parser.add_argument("--sentences", type=int, default=40, help="number of each kind")
    parser.add_argument("--temperature", type=float, nargs="*", default=[0.8])
    parser.add_argument("--top-k", type=int, default=50)
    parser.add_argument("--draws", type=int, default=1, help="how often the voice says every sentence")
    parser.add_argument("--voices", nargs="*", default=[v.name for v in VOICES])
    parser.add_argument("--kinds", nargs="*", default=["open", "own", "names"])
    parser.add_argument("--skip-teacher", action="store_true")
    parser.add_argument("--domain", action="store_true", help="judge own sentences by a model of the domain as well")
    parser.add_argument("--moonshine", action="store_true", help="judge by the product's ears as well")
    parser.add_argument("--whisper", action="store_true", help="judge by Whisper tiny.en as well")
    parser.add_argument("--peers", nargs="*", default=[], choices=voices.VOICES, help="other voices (extra `judge`)")
    parser.add_argument("--show", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    kinds = {"open": OPEN[: args.sentences], "own": own_sentences(args.sentences), "names": NAMES[: args.sentences]}
    tts = HiggsTTS.load(args.model, ExecContext("cpu"))
    ours = stored_voices(args.model, tts)
    judges: list[Judge] = [SpeechJudge()]
    judges += [Recogniser("moonshine", ears.words("moonshine"))] if args.moonshine else []
    judges += [Recogniser("whisper", ears.whisper(""))] if args.whisper else []
    domain: list[Judge] = [SpeechJudge(domain=True)] if args.domain else []
    for kind in args.kinds:
        texts, asked = kinds[kind], judges + (domain if kind == "own" else [])
        for peer in args.peers:
            peer_rates(peer, texts, kind, asked)
        for voice in (v for v in VOICES if v.name in args.voices):
            name = f"{kind}, {voice.name}"
            if not args.skip_teacher:
                teacher_rates(tts, voice, texts, name, asked)
            for temperature in args.temperature:
                samplings = [
                    VoiceSampling(temperature, args.top_k, seed=seed) if temperature else VoiceSampling.greedy()
                    for seed in range(args.draws)
                ]
                spoken = said(tts, ours[voice.name], texts, samplings)
                for judge in asked:
                    rate(judge, f"{name}, voice {samplings[0]}", spoken, list(texts) * args.draws, args.show)


if __name__ == "__main__":
    main()
