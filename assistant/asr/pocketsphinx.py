"""What was said: 16 kHz sound in, growing partial words out, and at the end a transcript with its confidence.

The contract is `Transcriber`. The default is pocketsphinx (BSD, acoustic model inside the package) with a trigram of
what people ask an assistant. Its vocabulary is closed: a transcript of low confidence is marked as not understood,
because it is better to ask again than to answer something else.

Tried and left out: a command grammar in a second decoder. With the best rule found for choosing between the two
transcripts it gained nothing on held-out requests, clean or noisy, and it doubled the cost.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pocketsphinx import Config, Decoder, Segment

from assistant.asr.adaptation import Adaptation, AlignedWord
from assistant.asr.gmm import english
from assistant.asr.level import Level
from assistant.asr.local import LocalASR
from assistant.asr.mfcc import CEPSTRA, Cepstra, Floats, MelPower
from assistant.asr.speaker import MEAN, Speaker
from assistant.base.sound import Pcm
from assistant.contracts import Transcript

RATE = 16_000
TINY = Path(__file__).parent / "tiny"
UNDERSTOOD = 0.42  # refuses half of what is outside the vocabulary, and one in forty of what is inside
FIRST_FRAMES = 90
"""Of 10 ms: the padding before the onset and 0.6 s of speech tell enough of a new speaker."""
MEAN_EVERY = 10
"""Frames for which a mean is good."""
SURE = 0.5
"""The probability from which a word tells of the speaker."""
SLOPE_FRAMES = 3
"""The decoder holds this many back for the slopes."""


class PocketsphinxTranscriber:
    """One pocketsphinx decoder over `folder`'s words.lm and words.dict; a few milliseconds from end to transcript.

    It gets cepstra made here, at one level, with the mean of the talk's speaker taken away, and scaled as what was
    understood so far fits the acoustic model best. The first utterance of a talk waits for `FIRST_FRAMES` of sound: a
    wrong mean costs more words than anything else.
    """

    def __init__(self, folder: Path = TINY, understood: float = UNDERSTOOD) -> None:
        self._understood = understood
        self._decoder = Decoder(
            Config(
                lm=str(folder / "words.lm"),
                dict=str(folder / "words.dict"),
                lw=6.5,
                fwdflat=False,  # the second pass costs 60 ms after the end and gained nothing
                loglevel="FATAL",
            )
        )
        settings = self._decoder.config
        settings["cmn"] = "none"  # only now: the acoustic model's own file of settings overrides those given at birth
        self._decoder.reinit_feat(settings)
        self._gaussians = english()
        self._mel = MelPower()
        self._decoding = False
        self.forget()

    @property
    def partial(self) -> str:
        return self._partial

    def forget(self) -> None:
        self.reset()
        self._cepstra, self._level, self._speaker = Cepstra(), Level(), Speaker()
        self._adaptation = Adaptation(self._gaussians)
        self._lesson: tuple[Floats, list[AlignedWord]] | None = None  # learnt when the next begins

    def reset(self) -> None:
        if self._decoding:
            self._decoder.end_utt()
            self._decoding = False
        self._partial = ""
        self._mel.reset()
        self._powers: list[Floats] = []  # [M] each
        self._bare: list[Floats] = []  # [C] each, without the mean
        self._last = self._mean = MEAN
        self._frames, self._total = 0, np.zeros(CEPSTRA)

    def push(self, pcm: Pcm) -> str:
        sound = np.clip(np.nan_to_num(np.asarray(pcm, dtype=np.float32)), -1.0, 1.0) * 32767
        for power in self._mel.push(sound):
            self._powers.append(power)
            if self._decoding:
                frame = self._frame(power)
                if self._frames % MEAN_EVERY == 0:
                    self._mean = self._speaker.mean(self._total, self._frames)
                self._decode(frame)
            elif (self._speaker.known and self._level.known) or len(self._powers) == FIRST_FRAMES:
                self._begin()
        if self._decoding:
            self._partial = self._words()
        return self._partial

    def final(self) -> Transcript:
        if not self._powers:
            self.reset()
            return Transcript("", 0.0, False)
        if not self._decoding:
            self._begin()
        for _ in range(SLOPE_FRAMES):
            self._decode(self._last)
        self._decoder.end_utt()
        self._decoding = False
        text = self._words()
        words = [s for s in self._decoder.seg() if not s.word.startswith(("<", "["))] if text else []
        chances = [min(1.0, word.prob) for word in words]
        confidence = float(np.mean(chances)) if chances else 0.0
        understood = bool(text) and confidence >= self._understood
        self._speaker.learn(self._total, self._frames)
        self._level.learn(self._powers)
        if understood:
            self._lesson = np.array(self._bare), [self._placed(word) for word in words if word.prob >= SURE]
        self.reset()
        return Transcript(text, confidence, understood)

    def _placed(self, segment: Segment) -> AlignedWord:
        phones = self._decoder.lookup_word(segment.word).split()
        return AlignedWord(tuple(phones), segment.start_frame, segment.end_frame)

    def _begin(self) -> None:
        """Decode what was heard so far, with what the utterance before has told of the speaker."""
        if self._lesson is not None:
            self._adaptation.learn(*self._lesson)
            self._lesson = None
        self._cepstra.scale(self._level.settle(self._powers))
        waiting = [self._frame(power) for power in self._powers]
        self._mean = self._speaker.mean(self._total, self._frames)
        self._decoder.start_utt()
        self._decoding = True
        for frame in waiting:
            self._decode(frame)

    def _frame(self, power: Floats) -> Floats:
        self._last = self._cepstra.of(self._level.leveled(power))
        self._frames += 1
        self._total += self._last
        return self._last

    def _decode(self, frame: Floats) -> None:
        self._bare.append(frame - self._mean)
        fitting = (self._bare[-1] * self._adaptation.factors).astype(np.float32)
        self._decoder.process_cep(fitting.tobytes())  # one at a time: blocks that cross its buffer's end lose frames

    def _words(self) -> str:
        hypothesis = self._decoder.hyp()
        return hypothesis.hypstr if hypothesis else ""


def open_asr() -> LocalASR:
    """Ears that this decoder stands behind, one of it loaded."""
    asr = LocalASR("pocketsphinx", PocketsphinxTranscriber)
    asr.warm()
    return asr
