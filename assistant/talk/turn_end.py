"""Has the user begun to speak, and has the user finished? Asked for every block of sound, answered from counts.

Pure: it is fed the probability of speech of each block and keeps samples, never seconds. The end of a turn is asked
again with every block of the silence, from its length, from how complete the words sound and how fast they came.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from assistant.events import SemanticVad, ServerVad
from assistant.talk.own_level import OwnLevel
from assistant.text.talk_words import TalkWords
from assistant.text.unfinished import wants_more

ONSET_BLOCKS = 2
"""Consecutive blocks of speech that make a beginning; one alone is a click."""
RELEASE_MARGIN = 0.15
"""Speech goes on while its probability is within this of the threshold: no flutter at word ends."""
PAUSE_MS = 32.0
"""A silence this long may be the end: from here on the completeness of the words is asked for. Ears write after 32 ms
of silence what they write after 160 (the same 92 of 96 requests of the dev set right), and of 100 silences of one block
97 go on for another."""
FALLEN = 10 ** (-25 / 10)
"""A share of the power of a turn's loudest block. Below it the voice has fallen, perhaps for good. A detector notices a
silence 104 ms after the last sample of the dev set's complete requests (median), this 16 ms after it, and in the middle
of a request another 2.4 times. Ears write then what they write in the silence: of 96 requests 93 alike, and 87 right
instead of 85."""
RISEN = 10 ** (15 / 10)
"""Power over the quietest of the last second: sound that is so loud right before a judged onset belongs to it."""
RISE_MS, RISE_BLOCKS = 300.0, 32
"""How far back it may have begun, no further than the sound that is read with it, and blocks that are remembered."""
USUAL_RISE_MS = 64.0
"""So long it takes a detector to believe any voice: what is counted as speech has always been without it."""
LINGER_MS = 200.0
"""Longer than this after the end of speech the detector hears none: who is soft for longer speaks softly."""
SHORTEST_END_MS = 180.0
"""Since the voice fell, whatever the detector takes for speech behind it. The dev set's 96 complete requests are
certain 212 ms after the last sample (p90 234), with 150 ms of silence 234 (262), replayed; as many of its 72 pauses
inside end a turn, 18. At 150 it would be 180 ms (202), and 19."""
LONGEST_END_MS = 1600.0
"""No turn waits longer than this after the last sound, whatever was said."""
HELD_END_MS = {"low": 1600.0, "auto": 1300.0, "medium": 1300.0, "high": 1000.0}
"""Silence that ends a turn whose last words are a filler or want more, by eagerness."""
OPEN_END_MS = {"low": 1300.0, "auto": 1000.0, "medium": 1000.0, "high": 700.0}
"""The same where the language model thinks them unfinished …"""
UNKNOWN_END_MS = {"low": 800.0, "auto": 600.0, "medium": 600.0, "high": 450.0}
"""… and when nothing is known of them."""
OPEN, COMPLETE = 0.01, 0.1
"""Probabilities of the language model: up to here words are unfinished, from here on complete. At 0.03 and 0.3 the
slowest twentieth of the dev set's 96 complete requests waits for 580 ms, so for 290, and of its 72 pauses one more ends
a turn, which is reopened."""
USUAL_WORDS_PER_S = 2.6
"""In English."""


class Sign(Enum):
    """The sign that a block gave. FALLEN: the voice has, though the detector takes it for speech still. PAUSE comes
    once per silence, RESUMED when speech goes on after either."""

    ONSET = auto()
    FALLEN = auto()
    PAUSE = auto()
    RESUMED = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class WordsSoFar:
    """The words so far, as they are known.

    count      how many there are; 1 at most where the language has no list, so that no pace is judged
    complete   probability that they are a whole request; None: unknown
    held       their end wants more
    """

    count: int = 0
    complete: float | None = None
    held: bool = False


def heard_words(text: str, complete: float | None, known: TalkWords | None) -> WordsSoFar:
    """These words, with the language model's judgement of them."""
    count = len(text.split())
    return WordsSoFar(min(count, 1) if known is None else count, complete, wants_more(text, known))


def end_silence_ms(detection: ServerVad | SemanticVad, words: WordsSoFar, speech_ms: float) -> float:
    """How long it must be quiet to end the turn now.

    Server detection: the fixed wait it asks for. Semantic: from SHORTEST_END_MS for words that are surely complete to
    the eagerness's own wait for words that are surely not, by the logarithm of the judgement; longer for somebody who
    speaks slowly, longest behind a filler; LONGEST_END_MS at most.
    """
    if isinstance(detection, ServerVad):
        return float(detection.silence_duration_ms)
    if words.held:
        return HELD_END_MS[detection.eagerness]
    if words.complete is None:
        wait = UNKNOWN_END_MS[detection.eagerness]
    else:
        doubt = max(0.0, math.log(COMPLETE / max(OPEN, words.complete)) / math.log(COMPLETE / OPEN))
        wait = SHORTEST_END_MS + (OPEN_END_MS[detection.eagerness] - SHORTEST_END_MS) * doubt
    if words.count >= 3 and speech_ms >= 100:
        pace = words.count / (speech_ms / 1000)
        wait *= min(1.3, max(0.85, USUAL_WORDS_PER_S / pace))
    return min(LONGEST_END_MS, max(SHORTEST_END_MS, wait))


class TurnDetector:
    """Follows one stream of blocks. Positions are samples at `rate` from the stream's first one."""

    def __init__(self, detection: ServerVad | SemanticVad, rate: int) -> None:
        self._rate = rate
        self._detection = detection
        self._position = 0
        self._run = 0
        self.quick = False
        """One block makes a beginning: speech over a reply is to lower it at once, and is judged anyway. It began where
        the sound rose: a detector that does not know the kind of voice, one that shouts, takes long to believe it."""
        self._own = OwnLevel()
        self._before: deque[tuple[int, float, float]] = deque(maxlen=RISE_BLOCKS)
        """The last blocks: where each began, its probability and its power."""
        self.reset()

    def reset(self) -> None:
        """Forget the turn that is under way, keep the position."""
        self._run = 0
        self._over = self._position
        self.speaking = self.over_reply = False
        self.start_sample = 0
        self.end_sample = 0
        self._speech_samples = 0
        self._heard = self._pending = (0.0, 0)
        self._paused = False
        self._loudest, self._falls, self._fell, self._fell_at = 0.0, 0, False, 0
        self._powers = (0.0, 0.0)
        self._words = WordsSoFar()

    def set_detection(self, detection: ServerVad | SemanticVad) -> None:
        """New settings; they hold for the silence that is under way too."""
        self._detection = detection

    @property
    def position(self) -> int:
        return self._position

    @property
    def threshold(self) -> float:
        return self._detection.threshold if isinstance(self._detection, ServerVad) else 0.5

    @property
    def speech_ms(self) -> float:
        """Speech of this turn so far, silences inside it not counted."""
        return self._speech_samples * 1000 / self._rate

    @property
    def sure(self) -> float:
        """Mean probability of speech from its first to its last block."""
        total, blocks = self._heard
        return total / max(1, blocks)

    @property
    def power(self) -> float:
        """The power of this turn's speech, by what is loud in it."""
        total, squares = self._powers
        return squares / total if total else 0.0

    @property
    def fall(self) -> int:
        """Which fall of the voice this is, counted from the turn's beginning; 0 while it is up."""
        return self._falls if self._fell else 0

    @property
    def silence_ms(self) -> float:
        return (self._position - self.end_sample) * 1000 / self._rate if self.speaking else 0.0

    @property
    def _quiet_ms(self) -> float:
        """A turn's end is asked of this: the silence; from the pause on and where we decide, all since the voice fell.
        Behind the last sample the detector hears speech on, for longer after some words than after others."""
        if isinstance(self._detection, ServerVad) or not self._paused:
            return self.silence_ms
        return max(self.silence_ms, (self._position - self._fell_at) * 1000 / self._rate)

    def know(self, words: WordsSoFar) -> None:
        """Take this as known of the words; it counts from the next block on."""
        self._words = words

    def was_user(self, power: float) -> None:
        """A turn of this power had words: who is far below it, among others, is not the user."""
        self._own.spoke(power, self._position / self._rate)

    def step(self, probability: float, samples: int, power: float = 1.0) -> Sign | None:
        """One more block of `samples` samples and mean square `power`, speech with this probability."""
        begin = self._position
        self._position += samples
        self._before.append((begin, probability, power))
        if not self.speaking and self._run == 0:
            self._pending = (0.0, 0)
        self._pending = self._pending[0] + probability, self._pending[1] + 1
        if not self.speaking:
            return self._waiting(probability, begin, samples, power)
        if probability >= self.threshold - RELEASE_MARGIN:
            self.end_sample, self._heard = self._position, self._pending
            self._speech_samples += samples
            paused, self._paused = self._paused, False
            return self._level(power, paused)
        if self._quiet_ms >= end_silence_ms(self._detection, self._words, self.speech_ms):
            return Sign.END
        if not self._paused and self.silence_ms >= PAUSE_MS:
            self._paused = True
            self._fall(True)
            return Sign.PAUSE
        return None

    def _level(self, power: float, paused: bool) -> Sign | None:
        """A block of speech, by how loud it is."""
        self._powers = self._powers[0] + power, self._powers[1] + power * power
        before, fell_ms = self._fell, (self._position - self._fell_at) * 1000 / self._rate
        soft = before and fell_ms > LINGER_MS
        self._loudest = power if soft else max(self._loudest, power)
        self._fall(power < FALLEN * self._loudest)
        if paused or (before and not self._fell):
            self._words = WordsSoFar()
            return Sign.RESUMED
        return Sign.FALLEN if self._fell and not before else None

    def _fall(self, fell: bool) -> None:
        if fell and not self._fell:
            self._falls, self._fell_at = self._falls + 1, self._position
        self._fell = fell

    def _waiting(self, probability: float, begin: int, samples: int, power: float) -> Sign | None:
        if not self.quick:  # a reply that sounds here tells nothing of the room, and whoever is heard over it is judged
            self._own.between(power)
        if probability < self.threshold:
            self._run = 0
            return None
        if self._run == 0:
            self.start_sample = begin
        self._run += 1
        if self._run < (1 if self.quick else ONSET_BLOCKS):
            return None
        if not self.quick and isinstance(self._detection, SemanticVad) and self._own.far(begin / self._rate):
            return None
        self.speaking, self.over_reply = True, self.quick
        if self.quick:
            self.start_sample = self._risen()
        else:
            self._own.began(self._run)
        self.end_sample, self._heard = self._position, self._pending
        self._speech_samples = self._position - self.start_sample
        self._paused = False
        self._words = WordsSoFar()
        return Sign.ONSET

    def _risen(self) -> int:
        """The sample where the sound rose that speech is believed in now, without our own voice before it."""
        floor, start = min(power for _, _, power in self._before), self._position
        for begin, probability, power in reversed(self._before):
            far = (self._position - begin) * 1000 / self._rate > RISE_MS
            if begin < self._over or far or probability <= 0.0 or power < RISEN * floor:
                break
            start = begin
        return min(self.start_sample, start + round(USUAL_RISE_MS * self._rate / 1000))
