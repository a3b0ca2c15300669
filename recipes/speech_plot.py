"""Draws the same sentences by the teacher, the codec and the voice, one row each: something to look at.

Run:  python -m recipes.speech_plot --out speech.png      (needs the extra `train`)
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch

from capsules import ExecContext
from recipes.speech_score import stored_voices
from recipes.teacher import VOICES, speak
from tts_engine.engine import HiggsTTS
from tts_engine.sampling import VoiceSampling

mpl.use("Agg")
from matplotlib import pyplot as plt

SENTENCES = ("Your timer for ten minutes has started.", "Old maps often show islands.", "What is your name?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("tts_engine/tiny"))
    parser.add_argument("--out", type=Path, default=Path("speech.png"))
    parser.add_argument("--voice", default=VOICES[0].name)
    parser.add_argument("--temperature", type=float, default=0.8)
    args = parser.parse_args()
    torch.set_num_threads(1)
    tts = HiggsTTS.load(args.model, ExecContext("cpu"))
    voice = next(v for v in VOICES if v.name == args.voice)
    stored = stored_voices(args.model, tts)[args.voice]
    clips, _ = speak(list(SENTENCES), voice)
    fig, axes = plt.subplots(3, len(SENTENCES), figsize=(15, 8), squeeze=False)
    for column, (text, clip) in enumerate(zip(SENTENCES, clips, strict=True)):
        teacher = np.divide(clip, 32767, dtype=np.float32)
        codec = tts.decode(tts.codec.to_codes(torch.from_numpy(teacher))).numpy()
        said = torch.cat(list(tts.speak(text, stored, VoiceSampling(temperature=args.temperature)))).numpy()
        for row, (name, wave) in enumerate((("teacher", teacher), ("codec", codec), ("voice", said))):
            axis = axes[row][column]
            axis.specgram(wave + 1e-9, NFFT=768, Fs=24_000, noverlap=600, vmin=-140, vmax=-35)
            axis.set_ylim(0, 8_000)
            axis.set_title(f"{name}: {text}", fontsize=8)
    fig.tight_layout()
    fig.savefig(args.out, dpi=70)


if __name__ == "__main__":
    main()
