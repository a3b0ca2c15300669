"""A whole recording written down: cut at its pauses, so that one pass is bounded, and each stretch read by itself.

The stretches are the segments that subtitles need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import ASR, HeardWord, SpeechBlock, Transcriber
from assistant.text.written import as_written

SPEECH_ABOVE = 0.5
SILENCE_BELOW = 0.35
PAUSE_S = 0.6
PADDING_S = 0.25
LONGEST_S = 20.0
FEED_S = 1.0


@dataclass(frozen=True, slots=True)
class Segment:
    """Words and where they are, in seconds."""

    start: float
    end: float
    text: str
    words: tuple[HeardWord, ...] = ()
    """Their times, where the engine gives any, count from the start of the recording."""


def stretches(blocks: Iterable[SpeechBlock], rate: int) -> list[tuple[float, float]]:
    """Where speech is, in seconds: padded, split at pauses and at 20 s. What is open at the end is closed there."""
    found: list[tuple[float, float]] = []
    start: float | None = None
    last = now = 0.0

    def close(end: float, padding: float) -> None:
        assert start is not None
        earlier = found[-1][1] if found else 0.0
        found.append((max(earlier, start - PADDING_S), end + padding))

    for block in blocks:
        begin, now = block.start_sample / rate, block.end_sample / rate
        if start is None and block.probability >= SPEECH_ABOVE:
            start = begin
        if start is None:
            continue
        if block.probability >= SILENCE_BELOW:
            last = now
        if now - last > PAUSE_S:
            close(last, PADDING_S)
            start = None
        elif now - start >= LONGEST_S:
            close(now, 0.0)
            start = None
    if start is not None:
        close(last, PADDING_S)
    return found


def write_down(asr: ASR, pcm: Pcm) -> list[Segment]:
    """[n] samples at 16 kHz → segments. Takes as long as it takes; call it off the event loop."""
    # A second of silence behind it: the detector looks back, and speech up to the last sample has to end somewhere.
    blocks = asr.detector().push(np.pad(pcm, (0, HEARING_RATE)))
    transcriber = asr.transcriber()
    try:
        return _segments(transcriber, pcm, blocks)
    finally:  # here and not by the caller: it may have gone, and this thread works on to the end all the same
        asr.release(transcriber)


def _segments(transcriber: Transcriber, pcm: Pcm, blocks: Sequence[SpeechBlock]) -> list[Segment]:
    segments = []
    for start, end in stretches(blocks, HEARING_RATE):
        sound = pcm[round(start * HEARING_RATE) : round(end * HEARING_RATE)]
        step = round(FEED_S * HEARING_RATE)
        for at in range(0, len(sound), step):
            transcriber.push(sound[at : at + step])
        heard = transcriber.final()
        text = heard.text if transcriber.facts.cased else as_written(heard.text)
        if heard.speech and text.strip():
            words = tuple(moved(word, start * 1000) for word in heard.words)
            segments.append(Segment(start, min(end, len(pcm) / HEARING_RATE), text.strip(), words))
    return segments


def moved(word: HeardWord, ms: float) -> HeardWord:
    """The same word on another clock."""
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
