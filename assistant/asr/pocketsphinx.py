"""What remains where no better engine has a wheel: pocketsphinx (BSD, acoustic model inside) over this project's words.

The vocabulary is closed: twelve hundred words that people say to an assistant. What lies outside comes out as other
words of low probability, so a transcript of low confidence counts as not understood: it is better to ask again. Stock
parts throughout; on people it has three words in four wrong in open speech.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pocketsphinx import Config, Decoder

from assistant.asr.local import LocalASR
from assistant.asr.paced import Paced
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import AsrFacts, HeardWord, Partial, Rescorer, Transcript

FACTS = AsrFacts("pocketsphinx", ("en",), cased=False, cadence_ms=100.0, bias=False, word_times=True)
TINY = Path(__file__).parent / "tiny"
UNDERSTOOD = 0.42  # refuses half of what is outside the vocabulary, and one in forty of what is inside
FRAME_MS = 10.0
LEAST_S = 0.05
"""Less sound than this has no frame to decode."""


def open_decoder(folder: Path = TINY, every: int = 1) -> Decoder:
    """Over the words and the trigram of a folder. `every`: how many frames of sound one look serves."""
    return Decoder(
        Config(
            lm=str(folder / "words.lm"),
            dict=str(folder / "words.dict"),
            lw=6.5,
            fwdflat=False,  # the second pass costs 60 ms after the end and gained nothing
            ds=every,
            loglevel="FATAL",
        )
    )


def pocketsphinx(folder: Path = TINY) -> Paced:
    """A transcriber for one talk: `folder` holds words.lm and words.dict. Loading takes a quarter of a second."""
    return Paced(PocketsphinxFollower(folder))


class PocketsphinxFollower:
    """Every pause ends a piece of the utterance and its words are stable; the next piece begins without their help.

    So the work after a pause is for what came after it, and the end after a pause is free. See `Follower`.
    """

    def __init__(self, folder: Path) -> None:
        self._decoder = open_decoder(folder)
        self._decoding = False
        self.drop()

    @property
    def facts(self) -> AsrFacts:
        return FACTS

    def drop(self) -> None:
        if self._decoding:
            self._decoder.end_utt()
        self._decoding = False
        self._new: list[Pcm] = []
        self._closed: list[HeardWord] = []
        self._heard = self._begun = 0  # samples taken, and those before the open piece

    def forget(self) -> None:
        self._decoder.reinit_feat()  # its front follows the mean and the noise of what it hears

    def expect(self, terms: Sequence[str]) -> None:
        """Its words are what they are."""

    def hear(self, pcm: Pcm) -> None:
        self._new.append(pcm)

    def read(self, whole: bool) -> Partial:
        sound = np.concatenate(self._new) if self._new else np.zeros(0, np.float32)
        self._new = []
        if sound.size and not self._decoding:
            self._decoder.start_utt()
            self._decoding = True
            self._begun = self._heard
        if sound.size:
            self._heard += sound.size
            self._decoder.process_raw((sound * 32767).astype("<i2").tobytes(), no_search=False, full_utt=False)
        if whole and self._decoding:
            self._close()
        stable = _text(self._closed)
        hypothesis = self._decoder.hyp() if self._decoding else None
        rest = hypothesis.hypstr if hypothesis else ""
        return Partial(stable, f" {rest}" if stable and rest else rest)

    def _close(self) -> None:
        """End the open piece and keep its words."""
        self._decoder.end_utt()
        self._decoding = False
        if self._heard - self._begun < LEAST_S * HEARING_RATE or not self._decoder.hyp():
            return
        origin = self._begun * 1000 / HEARING_RATE
        self._closed += [
            HeardWord(
                s.word.partition("(")[0],
                origin + s.start_frame * FRAME_MS,
                origin + (s.end_frame + 1) * FRAME_MS,
                min(1.0, s.prob),
            )
            for s in self._decoder.seg()
            if not s.word.startswith(("<", "["))
        ]

    def end(self) -> Transcript:
        words = tuple(self._closed)
        self.drop()
        confidence = float(np.mean([word.probability for word in words])) if words else 0.0
        return Transcript(_text(words), words, confidence, speech=bool(words) and confidence >= UNDERSTOOD)


def _text(words: Sequence[HeardWord]) -> str:
    return " ".join(word.text for word in words)


def open_asr(_rescorer: Rescorer | None = None) -> LocalASR:
    """Ears that this decoder stands behind, one of it loaded. Its words are those of requests whoever answers them."""
    asr = LocalASR(FACTS, pocketsphinx)
    asr.warm()
    return asr
