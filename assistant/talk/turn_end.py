"""Decides whether the user has begun to speak, and whether the user has finished, for every block of sound, by counts.

Pure: it is fed the speech probability of each block and stores samples, never seconds. The end of a turn is decided
anew with every block of the silence, from its length, from how complete the words sound and how fast they came.
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
"""Consecutive blocks of speech that make a beginning; a single block is a click."""
RELEASE_MARGIN = 0.15
"""Speech goes on while its probability is within this of the threshold, which avoids flutter at word ends."""
PAUSE_MS = 32.0
"""A silence this long may be the end: from here on the words' completeness is judged. After 32 ms of silence, ears
write the same as after 160 (the same 92 of 96 requests of the dev set right); of 100 silences of one block, 97 go on
for another."""
FALLEN = 10 ** (-25 / 10)
"""A share of the power of a turn's loudest block. Below it the voice has fallen, perhaps for good. A detector notices a
silence 104 ms after the last sample of the dev set's complete requests (median), this measure 16 ms after it, but
another 2.4 times in the middle of a request. Ears then write the same as in the silence: of 96 requests 93 are alike,
and 87 right instead of 85."""
RISEN = 10 ** (15 / 10)
"""Power over the quietest of the last second: sound this loud right before a judged onset belongs to it."""
RISE_MS, RISE_BLOCKS = 300.0, 32
"""How far back it may have begun (never further than the sound that is read with it), and how many blocks to
remember."""
USUAL_RISE_MS = 64.0
"""The time that a detector needs to believe any voice; speech lengths have never included it."""
LINGER_MS = 200.0
"""If the detector still hears speech this long after the voice fell, the speaker is simply speaking softly."""
SHORTEST_END_MS = 180.0
"""Time since the voice fell, even if the detector takes the sound behind it for speech. Replayed, the dev set's 96
complete requests are certain 212 ms after the last sample (p90 234), and 18 of its 72 pauses inside a turn end it; with
150 ms of silence instead it would be 234 ms (262), and 18 too. At 150 it would be 180 ms (202), and 19."""
LONGEST_END_MS = 1600.0
"""No turn waits longer than this after the last sound, whatever was said."""
HELD_END_MS = {"low": 1600.0, "auto": 1300.0, "medium": 1300.0, "high": 1000.0}
"""Silence that ends a turn whose last words are a filler or call for more, by eagerness."""
OPEN_END_MS = {"low": 1400.0, "auto": 1200.0, "medium": 1200.0, "high": 800.0}
"""The same if the language model considers the words unfinished …"""
UNKNOWN_END_MS = {"low": 800.0, "auto": 600.0, "medium": 600.0, "high": 450.0}
"""… and if nothing is known of them."""
OPEN, COMPLETE = 0.1, 0.15
"""Probabilities of the language model: words up to the first are unfinished, from the second on complete. It gives 38
of 59 beginnings of requests less than 0.1 and 44 less than 0.15; of 195 complete ones, 5 and 8. Below 0.25 it would be
47 and 16, and two of these three beginnings wait for other reasons."""
OPEN_QUESTION, SURE = 0.9, 0.97
"""The same for a reply that asks back: what it asks for is missing, whatever the model thought of the words. It asks
back for 11 of the 12 beginnings above 0.25. So do the jokes that answer 4 of the 179 complete requests, whose own
probability spares 2 of them this wait."""
USUAL_WORDS_PER_S = 2.6
"""The usual pace of English."""


class Sign(Enum):
    """The sign that a block gave. FALLEN: the voice has fallen, though the detector still takes it for speech. PAUSE
    comes once per silence, RESUMED when speech goes on after either."""

    ONSET = auto()
    FALLEN = auto()
    PAUSE = auto()
    RESUMED = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class WordsSoFar:
    """The words so far, as they are known.

    count      how many there are; at most 1 if the language has no list, so that no pace is judged
    complete   probability that they are a whole request; None: unknown
    held       their ending wants more
    """

    count: int = 0
    complete: float | None = None
    held: bool = False


def heard_words(text: str, complete: float | None, known: TalkWords | None) -> WordsSoFar:
    """These words, with the language model's judgement of them."""
    count = len(text.split())
    return WordsSoFar(min(count, 1) if known is None else count, complete, wants_more(text, known))


def end_silence_ms(detection: ServerVad | SemanticVad, words: WordsSoFar, speech_ms: float) -> float:
    """The silence, in milliseconds, that would end the turn now.

    Server detection: the fixed wait it asks for. Semantic: from SHORTEST_END_MS for words that are surely complete up
    to the eagerness's own wait for words that surely are not, by the logarithm of the judgement. It is longer for slow
    speakers, longest after a filler, and never above LONGEST_END_MS.
    """
    if isinstance(detection, ServerVad):
        return float(detection.silence_duration_ms)
    if words.held:
        return HELD_END_MS[detection.eagerness]
    if words.complete is None:
        wait = UNKNOWN_END_MS[detection.eagerness]
    else:
        wait = _wait_ms(detection, words.complete, OPEN, COMPLETE)
    if words.count >= 3 and speech_ms >= 100:
        pace = words.count / (speech_ms / 1000)
        wait *= min(1.3, max(1.0, USUAL_WORDS_PER_S / pace))
    return min(LONGEST_END_MS, wait)


def question_silence_ms(detection: SemanticVad, complete: float | None) -> float:
    """The silence, in milliseconds, before a reply may sound that only asks back, if words with this judgement ended
    the turn. Asked too early, it costs more than it gains: the person is about to say what it asks for."""
    return _wait_ms(detection, complete or 0.0, OPEN_QUESTION, SURE)


def _wait_ms(detection: SemanticVad, complete: float, surely_open: float, surely_complete: float) -> float:
    """The wait by the logarithm of the judgement between two probabilities."""
    doubt = math.log(surely_complete / max(surely_open, complete)) / math.log(surely_complete / surely_open)
    return SHORTEST_END_MS + (OPEN_END_MS[detection.eagerness] - SHORTEST_END_MS) * max(0.0, doubt)


class TurnDetector:
    """Follows one stream of blocks. Positions are samples at `rate` from the stream's first one."""

    def __init__(self, detection: ServerVad | SemanticVad, rate: int) -> None:
        self._rate = rate
        self._detection = detection
        self._position = 0
        self._run = 0
        self.quick = False
        """One block makes a beginning, because speech over a reply must lower it at once and is judged anyway. Such
        speech began where the sound rose: a detector that does not know the kind of voice (a shouting one) takes long
        to believe it."""
        self._own = OwnLevel()
        self._before: deque[tuple[int, float, float]] = deque(maxlen=RISE_BLOCKS)
        """The last blocks: where each began, its probability and its power."""
        self.forget_turn()

    def forget_turn(self) -> None:
        """Drop the turn that is under way, but not the position."""
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
        """Use new settings, for the silence under way too."""
        self._detection = detection

    @property
    def position(self) -> int:
        return self._position

    @property
    def threshold(self) -> float:
        return self._detection.threshold if isinstance(self._detection, ServerVad) else 0.5

    @property
    def speech_ms(self) -> float:
        """Milliseconds of speech in this turn so far, without its silences."""
        return self._speech_samples * 1000 / self._rate

    @property
    def sure(self) -> float:
        """Mean probability of speech from its first to its last block."""
        total, blocks = self._heard
        return total / max(1, blocks)

    @property
    def power(self) -> float:
        """The power of this turn's speech, weighted towards its loud parts."""
        total, squares = self._powers
        return squares / total if total else 0.0

    @property
    def fall(self) -> int:
        """The number of this fall of the voice, counted from the turn's beginning; 0 while the voice is up."""
        return self._falls if self._fell else 0

    @property
    def silence_ms(self) -> float:
        return (self._position - self.end_sample) * 1000 / self._rate if self.speaking else 0.0

    @property
    def _quiet_ms(self) -> float:
        """The time that decides the end of a turn: the silence or, from the pause on and if we decide, the time since
        the voice fell. Behind the last sample the detector still hears speech, for longer after some words than after
        others."""
        if isinstance(self._detection, ServerVad) or not self._paused:
            return self.silence_ms
        return max(self.silence_ms, (self._position - self._fell_at) * 1000 / self._rate)

    def know(self, words: WordsSoFar) -> None:
        """Note this knowledge of the words; it counts from the next block on."""
        self._words = words

    def was_user(self, power: float) -> None:
        """Note that a turn of this power had words: a much softer voice among others is not the user's."""
        self._own.spoke(power, self._position / self._rate)

    def pass_over(self, samples: int) -> None:
        """Count sound that is not looked at, between turns."""
        self._position += samples

    def step(self, probability: float, samples: int, power: float = 1.0) -> Sign | None:
        """Handle one more block of `samples` samples and mean square `power` that is speech with this probability."""
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
        """Handle a block of speech, by its loudness."""
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
        if not self.quick:  # a sounding reply says nothing about the room, and any voice over it is judged
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
        """The sample where the sound rose that is now believed to be speech, without our own voice before it."""
        floor, start = min(power for _, _, power in self._before), self._position
        for begin, probability, power in reversed(self._before):
            far = (self._position - begin) * 1000 / self._rate > RISE_MS
            if begin < self._over or far or probability <= 0.0 or power < RISEN * floor:
                break
            start = begin
        return min(self.start_sample, start + round(USUAL_RISE_MS * self._rate / 1000))
