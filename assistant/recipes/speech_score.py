"""Score the small voice by a recogniser: the teacher, its codes decoded, and the voice itself, on unseen sentences.

Run:  python -m assistant.recipes.speech_score --work .training/speech --sentences 40      (needs festival)

Nobody listens: the judge is pocketsphinx with its general language model, so the teacher's own figure is the ceiling.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import samplerate
import torch
from numpy.typing import NDArray
from pocketsphinx import Config, Decoder, get_model_path

from assistant.recipes import sentences
from assistant.recipes.hearing_score import plain, word_errors
from assistant.recipes.teacher import VOICES, speak
from capsules import ExecContext
from tts_engine.engine import HiggsTTS
from tts_engine.sampling import Sampling
from tts_engine.voices import Voice

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


class Judge:
    """pocketsphinx with its general model; dither and silence around the sound."""

    def __init__(self) -> None:
        self._decoder = Decoder(Config(lm=get_model_path("en-us/en-us.lm.bin"), loglevel="FATAL"))
        self._rng = np.random.default_rng(0)

    def __call__(self, pcm: NDArray[np.float32]) -> list[str]:
        """float32 at 24 kHz -> the words heard."""
        wave = samplerate.resample(pcm, 16_000 / 24_000, "sinc_medium") * 20_000
        wave = np.concatenate([np.zeros(3_000), wave, np.zeros(5_000)])
        noisy = wave + self._rng.standard_normal(len(wave)) * 50
        self._decoder.start_utt()
        self._decoder.process_raw(np.clip(noisy, -32768, 32767).astype("<i2").tobytes(), full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return plain(hypothesis.hypstr) if hypothesis else []


def rate(name: str, spoken: Sequence[NDArray[np.float32]], texts: Sequence[str], show: int = 0) -> None:
    """Print the word error rate of what was spoken."""
    judge = Judge()
    heard = [judge(pcm) for pcm in spoken]
    wrong = [word_errors(plain(t), h) for t, h in zip(texts, heard, strict=True)]
    words = sum(len(plain(t)) for t in texts)
    print(f"{name}: WER {100 * sum(wrong) / words:.1f} % (n = {words} words, {len(texts)} sentences)", flush=True)
    for text, words_heard, mistakes in list(zip(texts, heard, wrong, strict=True))[:show]:
        print(f"   {mistakes}  {text} | {' '.join(words_heard)}")


def stored_voices(folder: Path, tts: HiggsTTS) -> dict[str, Voice]:
    """The voices of voices.json: reference codes, or null for the voice that speaks without a reference."""
    raw = json.loads((folder / "voices.json").read_text())
    return {
        name: Voice(name, None, None) if codes is None else tts.voice_from_codes(torch.tensor(codes), name=name)
        for name, codes in raw.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("tts_engine/tiny"))
    parser.add_argument("--sentences", type=int, default=40, help="of each kind")
    parser.add_argument("--temperature", type=float, nargs="*", default=[0.8])
    parser.add_argument("--top-k", type=int, default=50)
    parser.add_argument("--voices", nargs="*", default=[v.name for v in VOICES])
    parser.add_argument("--kinds", nargs="*", default=["open", "own"])
    parser.add_argument("--skip-teacher", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(987_654_321)
    own = [sentences.reply(rng) for _ in range(args.sentences)]
    kinds = {"open": OPEN[: args.sentences], "own": own}
    tts = HiggsTTS.load(args.model, ExecContext("cpu"))
    voices = stored_voices(args.model, tts)
    for kind in args.kinds:
        texts = kinds[kind]
        for voice in (v for v in VOICES if v.name in args.voices):
            if not args.skip_teacher:
                with tempfile.TemporaryDirectory() as folder:
                    clips, _ = speak(list(texts), voice, Path(folder) / "made")
                waves = [np.divide(c, 32767, dtype=np.float32) for c in clips]
                rate(f"{kind}, {voice.name}, teacher", waves, texts)
                coded = [tts.decode(tts.codec.encode(torch.from_numpy(w))).numpy() for w in waves]
                rate(f"{kind}, {voice.name}, codec", coded, texts)
            for temperature in args.temperature:
                sampling = Sampling(temperature=temperature, top_k=args.top_k) if temperature else Sampling.greedy()
                began, spoken, ended = time.process_time(), [], 0
                for text in texts:
                    parts = list(tts.speak(text, voices[voice.name], sampling))
                    spoken.append(torch.cat(parts).numpy() if parts else np.zeros(2_400, np.float32))
                    ended += tts.pieces[-1].ended == "end"
                cpu, seconds = time.process_time() - began, sum(map(len, spoken)) / 24_000
                name = f"{kind}, {voice.name}, voice {sampling}"
                rate(name, spoken, texts, args.show)
                print(
                    f"   ended by itself {ended} of {len(texts)}, {seconds:.0f} s, real-time factor {cpu / seconds:.2f}"
                )


if __name__ == "__main__":
    main()
