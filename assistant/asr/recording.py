"""Transcribes sound as it comes, or a whole recording: cut at its pauses, so that each pass is bounded, with each
stretch read by itself.

The stretches double as the segments of subtitles.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assistant.asr.cutting import quietest_place
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.base.tongues import may_be_english
from assistant.contracts import ASR, HeardWord, SpeechBlock
from assistant.text.written import as_written

SPEECH_ABOVE = 0.5
SILENCE_BELOW = 0.35
PAUSE_S = 0.6
PADDING_S = 0.25
LONGEST_S = 20.0


@dataclass(frozen=True, slots=True)
class Segment:
    """Words and their times in the recording, in seconds."""

    start: float
    end: float
    text: str
    words: tuple[HeardWord, ...] = ()
    """Word times, if the engine reports any, count from the start of the recording."""
    confidence: float | None = None


class Stretches:
    """Stretches of speech in seconds: padded, and split at pauses. One that reaches 20 s is cut at the quietest place
    of its second half. `quiet_place`: the time of that place, for a stretch that begins at the given time; None if the
    sound ends before the stretch is too long."""

    def __init__(self, rate: int, quiet_place: Callable[[float], float | None]) -> None:
        self._rate, self._quiet_place = rate, quiet_place
        self._earlier = self._last = self.now = 0.0
        self.start: float | None = None
        """The begin of the stretch that is open."""

    @property
    def until(self) -> float:
        """The end of the open stretch, if nothing more is said: silence behind it does not belong to it."""
        return self._last + PADDING_S

    def add_block(self, block: SpeechBlock) -> tuple[float, float] | None:
        """The next block; returns the stretch that is over with it."""
        begin, self.now = block.start_sample / self._rate, block.end_sample / self._rate
        if self.start is None and block.probability >= SPEECH_ABOVE:
            self.start = max(self._earlier, begin - PADDING_S)
        if self.start is None:
            return None
        if block.probability >= SILENCE_BELOW:
            self._last = self.now
        if self.now - self._last > PAUSE_S:
            return self.end_open()
        if self.now - self.start < LONGEST_S or (cut := self._quiet_place(self.start)) is None:
            return None
        over = self.start, cut
        self.start, self._earlier = cut if self._last > cut else None, cut
        return over

    def end_open(self) -> tuple[float, float] | None:
        """End the open stretch."""
        if self.start is None:
            return None
        over = self.start, self.until
        self.start, self._earlier = None, self.until
        return over


class Dictation:
    """Writes down sound as it comes, each stretch of speech by itself. Loading ears and reading take time: make it,
    and call everything but `give_back`, off the event loop, one call at a time. `terms`: words that are likelier than
    usual; `language`: the one that somebody named (BCP-47)."""

    def __init__(self, asr: ASR, terms: Sequence[str] = (), language: str = "") -> None:
        self._asr, self._language = asr, language or None
        self._transcriber, self._detector = asr.transcriber(), asr.detector()
        self._transcriber.listen_in(self._language)
        if terms:
            self._transcriber.expect(terms)
        self._stretches = Stretches(HEARING_RATE, self._quiet_place)
        self._sound = np.zeros(0, np.float32)
        self._first = 0
        """The place of the first sample of `_sound`; earlier ones are not needed any more."""
        self._pushed = 0
        """The transcriber has the open stretch up to this sample."""
        self._samples = 0

    def add_sound(self, pcm: Pcm) -> list[Segment]:
        """Some more sound, [n] at 16 kHz; returns the stretches that are over with it."""
        self._sound = np.concatenate([self._sound, pcm])
        self._samples += pcm.size
        return self._found(pcm)

    def end_sound(self) -> list[Segment]:
        """The sound is over: the detector lags, so a second of silence follows it."""
        found = self._found(np.zeros(HEARING_RATE, np.float32))
        return found + self._read_stretch(self._stretches.end_open())

    def certain_words(self) -> str:
        """The words of the open stretch that will not change any more. In a pause everything is read, so that the end
        of the sound need not wait for it."""
        if self._stretches.start is None:
            return ""
        if self._stretches.now > self._stretches.until:
            return self._transcriber.pause().stable
        return self._transcriber.partial().stable

    def give_back(self) -> None:
        """Give the ears back. No call may be under way."""
        self._asr.release(self._transcriber)
        self._asr.release_detector(self._detector)

    def _found(self, pcm: Pcm) -> list[Segment]:
        found = []
        for block in self._detector.push(pcm):
            found += self._read_stretch(self._stretches.add_block(block))
        start = self._stretches.start
        if start is not None:
            self._push(start, min(self._stretches.now, self._stretches.until))
        keep = round((self._stretches.now - 2 * PADDING_S if start is None else start) * HEARING_RATE)
        if keep > self._first:
            self._sound, self._first = self._sound[keep - self._first :], keep
        return found

    def _push(self, start: float, end: float) -> None:
        """Bring the transcriber, which begins an utterance at `start`, to `end`."""
        begin, until = max(self._pushed, round(start * HEARING_RATE)), round(end * HEARING_RATE)
        if until > begin:
            self._transcriber.push(self._sound[begin - self._first : until - self._first])
            self._pushed = until

    def _read_stretch(self, stretch: tuple[float, float] | None) -> list[Segment]:
        if stretch is None:
            return []
        start, end = stretch
        if round(end * HEARING_RATE) < self._pushed:  # cut within what it has
            self._transcriber.reset()
            self._pushed = 0
        self._push(start, end)
        self._pushed = round(end * HEARING_RATE)
        heard = self._transcriber.final()
        facts = self._transcriber.facts
        english = may_be_english(facts.languages, self._language)
        text = as_written(heard.text) if english and not facts.cased else heard.text
        if not heard.speech or not text.strip():
            return []
        words = tuple(moved(word, start * 1000) for word in heard.words)
        return [Segment(start, min(end, self._samples / HEARING_RATE), text.strip(), words, heard.confidence)]

    def _quiet_place(self, start: float) -> float | None:
        first, over = (round(at * HEARING_RATE) - self._first for at in (start, start + LONGEST_S))
        if over > self._sound.size:
            return None
        return start + quietest_place(self._sound[first:over], LONGEST_S / 2) / HEARING_RATE


def words_in(asr: ASR, pcm: Pcm, rate: int) -> str:
    """The words of a recording of any rate."""
    return " ".join(segment.text for segment in write_down(asr, resample(pcm, rate, HEARING_RATE)))


def write_down(asr: ASR, pcm: Pcm, language: str = "") -> list[Segment]:
    """[n] samples at 16 kHz → segments. May take long; call it off the event loop."""
    return list(writing_down(asr, pcm, language))


def writing_down(asr: ASR, pcm: Pcm, language: str = "") -> Generator[Segment, None, None]:
    """The same segments one by one, as they are transcribed."""
    dictation = Dictation(asr, language=language)
    try:
        for second in _seconds(pcm):
            yield from dictation.add_sound(second)
        yield from dictation.end_sound()
    finally:  # here and not in the caller, which may be gone while this thread still works to the end
        dictation.give_back()


def _seconds(pcm: Pcm) -> Iterator[Pcm]:
    for at in range(0, len(pcm), HEARING_RATE):
        yield pcm[at : at + HEARING_RATE]


def moved(word: HeardWord, ms: float) -> HeardWord:
    """The same word with its times shifted."""
    if word.start_ms is None or word.end_ms is None:
        return word
    return replace(word, start_ms=word.start_ms + ms, end_ms=word.end_ms + ms)


def subtitles(segments: Sequence[Segment], form: str) -> str:
    """SubRip or WebVTT text."""
    mark = "," if form == "srt" else "."
    head = "" if form == "srt" else "WEBVTT\n\n"
    blocks = []
    for number, segment in enumerate(segments, 1):
        times = f"{_stamp(segment.start, mark)} --> {_stamp(segment.end, mark)}"
        blocks.append((f"{number}\n" if form == "srt" else "") + f"{times}\n{segment.text}\n")
    return head + "\n".join(blocks)


def _stamp(seconds: float, mark: str) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}{mark}{ms % 1000:03d}"
