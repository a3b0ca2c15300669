"""Which of several texts was more likely said? People ask an assistant some things more often than others.

A trigram of what is asked of this one, which the ears of last resort listen by, too. What lies outside its words counts
the same whatever it is, so among open texts it hardly chooses. Its weight was fitted on sentences and voices of their
own (`PLAIN` of `recipes/asr/voices.py`): the largest at which not a word more of them is wrong.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

from pocketsphinx import Config, LogMath, NGramModel

from tts_engine.text import speech_text

TRIGRAM = Path(__file__).parent / "tiny" / "words.lm"
WEIGHT = 0.15
UNKNOWN = -12.0
"""The logarithm of the probability of a word that it does not know, or of one that it never saw there."""
_LEAST = -400_000
"""The library's way to say never, in its own logarithms."""
_WORDS = re.compile(r"[a-z']+")


class Likely:
    """One for all talks. The library keeps its last look-ups, so one thread at a time asks it."""

    def __init__(self, path: Path = TRIGRAM) -> None:
        self._math = LogMath()
        self._model = NGramModel(Config(loglevel="FATAL"), self._math, str(path))
        self._lock = threading.Lock()

    def __call__(self, text: str) -> float:
        """The weighted natural logarithm of how likely somebody asks this."""
        said = ["<s>", *_WORDS.findall(speech_text(text).lower()), "</s>"]
        with self._lock:
            found = [self._model.prob(said[max(0, at - 2) : at + 1][::-1]) for at in range(1, len(said))]
        return WEIGHT * sum(UNKNOWN if one < _LEAST else self._math.log_to_ln(one) for one in found)
