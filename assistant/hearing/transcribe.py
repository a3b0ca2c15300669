"""What was said: 16 kHz sound in, growing partial words out, and at the end a transcript with its confidence.

The contract is `Transcriber`. The default is pocketsphinx (BSD, acoustic model inside the package) with a trigram of
what people ask an assistant. Its vocabulary is closed: a transcript of low confidence is marked as not understood,
because it is better to ask again than to answer something else.

Tried and left out: a command grammar in a second decoder. With the best rule found for choosing between the two
transcripts it gained nothing on held-out requests, clean or noisy, and it doubled the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from pocketsphinx import Config, Decoder

from assistant.events import Pcm

RATE = 16_000
TINY = Path(__file__).parent / "tiny"
DITHER_RMS = 60.0  # of 32768; digital silence breaks the mean normalisation
UNDERSTOOD = 0.42  # refuses half of what is outside the vocabulary, and one in forty of what is inside


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said, in lower-case words, numbers spelled out.

    confidence   0 … 1: the mean probability of its words among all that the sound allows
    understood   False: nothing was said, or so unclearly that the words should not be acted upon
    """

    text: str
    confidence: float
    understood: bool


class Transcriber(Protocol):
    """Follows one utterance at a time. Not thread-safe: one thread calls at a time.

    The first samples should be what came just before the speech (200 to 300 ms), never silence made up: the noise
    floor is learnt from them.
    """

    def push(self, pcm: Pcm) -> str:
        """float32 in ±1 at 16 kHz, any length -> the words so far; later words may revise earlier ones."""

    @property
    def partial(self) -> str:
        """The words so far."""

    def final(self) -> Transcript:
        """End the utterance and begin the next."""

    def reset(self) -> None:
        """Drop the utterance."""


class PocketsphinxTranscriber:
    """One pocketsphinx decoder over `folder`'s words.lm and words.dict; a few milliseconds from end to transcript."""

    def __init__(self, folder: Path = TINY, understood: float = UNDERSTOOD) -> None:
        self._understood = understood
        self._decoder = Decoder(
            Config(
                lm=str(folder / "words.lm"),
                dict=str(folder / "words.dict"),
                lw=6.5,
                fwdflat=False,  # the second pass costs 60 ms after the end and gained nothing
                cmn="live",
                remove_noise=True,
                loglevel="FATAL",
            )
        )
        self._started = False
        self._partial = ""
        self._rng = np.random.default_rng(0)

    @property
    def partial(self) -> str:
        return self._partial

    def push(self, pcm: Pcm) -> str:
        if not self._started:
            self._rng = np.random.default_rng(0)  # the same sound gets the same dither
            self._decoder.start_utt()
            self._started = True
        sound = np.nan_to_num(np.asarray(pcm, dtype=np.float32)) * 32767
        noisy = sound + self._rng.standard_normal(len(sound)) * DITHER_RMS
        self._decoder.process_raw(np.clip(noisy, -32768, 32767).astype("<i2").tobytes())
        self._partial = self._words()
        return self._partial

    def final(self) -> Transcript:
        if not self._started:
            return Transcript("", 0.0, False)
        self._decoder.end_utt()
        text = self._words()
        segments = self._decoder.seg() if text else []
        chances = [min(1.0, s.prob) for s in segments if not s.word.startswith(("<", "["))]
        confidence = float(np.mean(chances)) if chances else 0.0
        self._started, self._partial = False, ""
        return Transcript(text, confidence, bool(text) and confidence >= self._understood)

    def reset(self) -> None:
        if self._started:
            self._decoder.end_utt()
        self._started, self._partial = False, ""

    def _words(self) -> str:
        hypothesis = self._decoder.hyp()
        return hypothesis.hypstr if hypothesis else ""
