"""What do people ask an assistant? Which of several texts was more likely said, and what the sound may have said if it
was something of that kind.

Two are asked: the trigram of the ears of last resort, and a `Rescorer`, which sees the whole sentence. The figures are
of the shipped language model as one.
The decoder of those ears makes more errors than the network, but others: where it was unsure, their text is one more to
choose from, as likely as the network finds it. All words unknown to the trigram count the same, so
it hardly chooses among open texts. Its weight was fitted on sentences and voices of their own: the largest at which not
a word more of open sentences in human-like voices is wrong. So was the rescorer's: at 0.3 of 1,389 words of people's 61
are wrong as without it, at 0.4 and less of the trigram 70, and of 372 requests in accented voices 300 are right, 287
without it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pocketsphinx import Config, LogMath, NGramModel

from assistant.asr.level import gain
from assistant.asr.pocketsphinx import TINY, open_decoder
from assistant.base.sound import Pcm
from assistant.contracts import Rescorer
from assistant.text.hesitations import without_hesitations
from assistant.text.written import as_written
from tts_engine.text import speech_text

WEIGHT = RESCORER_WEIGHT = 0.3
LEAST = -12.0
"""The logarithm of the probability of a word that one does not know, or of one that it hardly saw there."""
KNOWN = -3.5
"""The mean over the rescorer's parts from which on a text is something that people ask: between -4 and -3 the same."""
USUAL = -6.0
"""The same below which a word is hardly one that people say there: of 110 requests in small voices as many are right as
where the decoder is always asked, and it is asked half as often; at -8 one less is right."""
EVERY = 2
"""Frames that one look of the decoder serves: a third less work, and not a request less right."""
DITHER = 50 / 32768
"""Root mean square: it hears worse in a silence of zeros."""
_WORDS = re.compile(r"[a-z']+")


class Likely:
    """One for all talks; one thread at a time asks it."""

    def __init__(self, rescorer: Rescorer, folder: Path = TINY) -> None:
        self._rescorer = rescorer
        self._math = LogMath()
        self._trigram = NGramModel(Config(loglevel="FATAL"), self._math, str(folder / "words.lm"))
        self._decoder = open_decoder(folder, EVERY)
        self._lock = threading.Lock()

    def choose(self, texts: Sequence[str], scores: Sequence[float], quickly: bool = False) -> int:
        """Which of the texts, each as likely by its sound as its score, a natural logarithm, was said most likely.
        `quickly`: the rescorer is not asked."""
        said = [score + WEIGHT * sum(max(LEAST, one) for one in self._chances(text))
                for text, score in zip(texts, scores, strict=True)]  # fmt: skip
        best = int(np.argmax(said))
        if quickly or len(texts) == 1:
            return best
        known = [np.maximum(LEAST, chances) for chances in self._rescorer.chances(texts)]
        weighed = [one + RESCORER_WEIGHT * chances.sum() for one, chances in zip(said, known, strict=True)]
        other = int(np.argmax(weighed))
        return other if known[other].mean() >= KNOWN else best

    def usual(self, text: str) -> bool:
        """Whether each of its words is one that people go on with there."""
        return min(self._chances(text)) >= USUAL

    def _chances(self, text: str) -> list[float]:
        """The natural logarithms of the probabilities of its words and its end."""
        said = ["<s>", *_words(text), "</s>"]
        with self._lock:
            found = [self._trigram.prob(said[max(0, at - 2) : at + 1][::-1]) for at in range(1, len(said))]
        return [self._math.log_to_ln(one) for one in found]

    @staticmethod
    def breaks_off(text: str, heard: str) -> bool:
        """Whether a text is only the beginning of what was heard. Fewer words are always likelier, so what was said
        behind a pause would be lost."""
        words, all_words = _words(text), _words(heard)
        return len(words) < len(all_words) and words == all_words[: len(words)]

    def hears(self, sound: Pcm, behind: str = "") -> tuple[str, ...]:
        """The sound read as a request, in words and with digits, after as many words as `behind` has."""
        text = " ".join(self._heard(sound)[len(_words(behind)) :])
        text = re.sub(r"\bi\b", "I", text if behind else text[:1].upper() + text[1:])
        return tuple(dict.fromkeys([text, as_written(text)])) if text else ()

    def _heard(self, sound: Pcm) -> list[str]:
        dithered = sound * gain(sound) + np.random.default_rng(0).standard_normal(sound.size) * DITHER
        with self._lock:
            self._decoder.reinit_feat()
            self._decoder.start_utt()
            self._decoder.process_raw((np.clip(dithered, -1, 1) * 32767).astype("<i2").tobytes(), full_utt=True)
            self._decoder.end_utt()
            found = self._decoder.hyp()
        return found.hypstr.split() if found else []


def _words(text: str) -> list[str]:
    """Those that are meant: the trigram looks two words back, and behind an `um` would see nothing of the request."""
    return _WORDS.findall(speech_text(without_hesitations(text)).lower())
