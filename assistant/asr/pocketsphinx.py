"""The fallback where no better engine has a wheel: pocketsphinx (BSD, acoustic model inside) over this project's words.

The vocabulary is closed: twelve hundred words that people say to an assistant. Anything else comes out as other words
of low probability, so a transcript of low confidence counts as not understood: it is better to ask again. It uses stock
parts throughout; for people's open speech, three words in four are wrong.
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
UNDERSTOOD = 0.42  # refuses half of the requests outside the vocabulary, and one in forty inside
FRAME_MS = 10.0
LEAST_S = 0.05
"""Sound shorter than this has no frame to decode."""


def open_decoder(folder: Path = TINY, every: int = 1) -> Decoder:
    """A decoder over the words and the trigram of a folder. `every`: how many frames share one look at the sound."""
    return Decoder(
        Config(
            lm=str(folder / "words.lm"),
            dict=str(folder / "words.dict"),
            lw=6.5,
            fwdflat=False,  # the second pass costs 60 ms at the end and gained nothing
            ds=every,
            loglevel="FATAL",
        )
    )


def pocketsphinx(folder: Path = TINY) -> Paced:
    """A transcriber for one talk: `folder` holds words.lm and words.dict. Loads in a quarter of a second."""
    return Paced(PocketsphinxFollower(folder))


class PocketsphinxFollower:
    """Every pause ends a piece of the utterance and makes its words stable; the next piece begins without them as
    context.

    So the work after a pause covers only newer sound, and ending after a pause is free. See `Follower`.
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
        self._heard = self._begun = 0  # samples accepted, and those before the open piece

    def forget(self) -> None:
        self._decoder.reinit_feat()  # its front end adapts to the mean and the noise of the sound

    def expect(self, terms: Sequence[str]) -> None:
        """Does nothing: the vocabulary is fixed."""

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
        """End the open piece and store its words."""
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
    """Ears with this decoder, one instance loaded. Its vocabulary is that of requests, whichever model answers."""
    asr = LocalASR(FACTS, pocketsphinx)
    asr.warm()
    return asr
