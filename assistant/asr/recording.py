"""Transcribes a whole recording: cut at its pauses, so that each pass is bounded, with each stretch read by itself.

The stretches double as the segments of subtitles.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assistant.asr.cutting import quietest_place
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import ASR, HeardWord, SpeechBlock, SpeechDetector
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


def stretches(blocks: Iterable[SpeechBlock], pcm: Pcm, rate: int) -> Iterator[tuple[float, float]]:
    """Stretches of speech in seconds: padded, and split at pauses. One that reaches 20 s is cut at the quietest place
    of its second half, and one still open at the end is closed there.

    blocks  of `pcm`, [n], with some silence behind it
    """
    start: float | None = None
    earlier = last = now = 0.0
    for block in blocks:
        begin, now = block.start_sample / rate, block.end_sample / rate
        if start is None and block.probability >= SPEECH_ABOVE:
            start = max(earlier, begin - PADDING_S)
        if start is None:
            continue
        if block.probability >= SILENCE_BELOW:
            last = now
        if now - last > PAUSE_S:
            earlier = last + PADDING_S
            yield start, earlier
            start = None
        elif now - start >= LONGEST_S and (cut := _quiet_place(pcm, start, rate)) is not None:
            yield start, cut
            start, earlier = cut if last > cut else None, cut
    if start is not None:
        yield start, last + PADDING_S


def _quiet_place(pcm: Pcm, start: float, rate: int) -> float | None:
    """The time to cut a stretch that begins at `start`; None if the sound ends before it is too long."""
    first, over = round(start * rate), round((start + LONGEST_S) * rate)
    return None if over > pcm.size else start + quietest_place(pcm[first:over], LONGEST_S / 2) / rate


def words_in(asr: ASR, pcm: Pcm, rate: int) -> str:
    """The words of a recording of any rate."""
    return " ".join(segment.text for segment in write_down(asr, resample(pcm, rate, HEARING_RATE)))


def write_down(asr: ASR, pcm: Pcm) -> list[Segment]:
    """[n] samples at 16 kHz → segments. May take long; call it off the event loop."""
    return list(writing_down(asr, pcm))


def writing_down(asr: ASR, pcm: Pcm) -> Generator[Segment, None, None]:
    """The same segments one by one, as they are transcribed."""
    transcriber, detector = asr.transcriber(), asr.detector()
    try:
        for start, end in stretches(_blocks(detector, pcm), pcm, HEARING_RATE):
            sound = pcm[round(start * HEARING_RATE) : round(end * HEARING_RATE)]
            for second in _seconds(sound):
                transcriber.push(second)
            heard = transcriber.final()
            text = heard.text if transcriber.facts.cased else as_written(heard.text)
            if heard.speech and text.strip():
                words = tuple(moved(word, start * 1000) for word in heard.words)
                yield Segment(start, min(end, len(pcm) / HEARING_RATE), text.strip(), words, heard.confidence)
    finally:  # here and not in the caller, which may be gone while this thread still works to the end
        asr.release(transcriber)
        asr.release_detector(detector)


def _blocks(detector: SpeechDetector, pcm: Pcm) -> Iterator[SpeechBlock]:
    """Blocks with a second of silence appended: the detector lags, and speech up to the last sample must end
    somewhere."""
    for second in (*_seconds(pcm), np.zeros(HEARING_RATE, np.float32)):
        yield from detector.push(second)


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
