"""`/v1/audio/transcriptions`: the hearing engine alone, in OpenAI's shape.

A long recording is cut at its pauses, and each stretch of speech is written down by itself: that bounds the work of
one pass and gives the segments that subtitles need.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import soundfile
from aiohttp import web

from assistant.base.errors import PeerError
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE
from assistant.contracts import ASR, SpeechBlock, Transcriber
from assistant.events import Pcm
from assistant.realtime.fields import Json
from assistant.server.answers import EventStream, while_connected
from assistant.server.backend import Backend
from assistant.text.written import as_written

MAX_FILE = 64 * 1024 * 1024
MAX_SECONDS = 3600.0
FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
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
        text = as_written(transcriber.final().text.strip())
        if text:
            segments.append(Segment(start, min(end, len(pcm) / HEARING_RATE), text))
    return segments


def read_file(data: bytes) -> Pcm:
    """A sound file's samples at 16 kHz, mixed to mono. Raises PeerError."""
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            if file.frames > MAX_SECONDS * file.samplerate:  # from the header: a small FLAC can unfold to gigabytes
                raise PeerError("invalid_value", f"file is longer than {MAX_SECONDS / 60:.0f} minutes", "file")
            sound = file.read(dtype="float32", always_2d=True)
            rate = file.samplerate
    except (soundfile.LibsndfileError, RuntimeError, ValueError):
        raise PeerError("invalid_value", "file cannot be read as sound; WAV, FLAC, OGG and MP3 work", "file") from None
    # Float files may hold anything, and one NaN would spread through the filters over all that follows.
    mono = np.nan_to_num(sound.mean(axis=1), nan=0.0, posinf=0.0, neginf=0.0).astype(np.float32)
    return resample(mono, rate, HEARING_RATE)


async def _read_form(request: web.Request) -> tuple[bytes, dict[str, str]]:
    if not (request.content_type or "").startswith("multipart/"):
        raise PeerError("invalid_type", "the body must be multipart/form-data with a part called file", "file")
    data: bytes | None = None
    fields: dict[str, str] = {}
    try:  # part by part with a bound of its own each: `request.post()` would keep every part whole in memory
        async for part in await request.multipart():
            name = getattr(part, "name", None)
            content = bytearray()
            while chunk := await part.read_chunk():  # type: ignore[union-attr]
                content += chunk
                if len(content) > (MAX_FILE if name == "file" else 65536):
                    raise PeerError("invalid_value", f"the part {name} is too large", name)
            if name == "file":
                data = bytes(content)
            elif name:
                fields[name] = content.decode("utf-8", "replace")
    except (ValueError, AttributeError) as error:
        raise PeerError("invalid_event", f"the multipart body is damaged: {str(error)[:100]}") from None
    if data is None:
        raise PeerError("missing_required_parameter", "the part called file is missing", "file")
    return data, fields


async def audio_transcriptions(request: web.Request, backend: Backend) -> web.StreamResponse:
    """`POST /v1/audio/transcriptions`."""
    data, fields = await _read_form(request)
    wanted = fields.get("response_format") or "json"
    if wanted not in FORMATS:
        raise PeerError(
            "invalid_value",
            f"response_format {wanted[:40]!r} is not made here; take one of {', '.join(FORMATS)}",
            "response_format",
        )
    pcm = await asyncio.to_thread(read_file, data)
    work = asyncio.to_thread(write_down, backend.talks.engines.asr, pcm)
    segments = await while_connected(request, work)
    text = " ".join(segment.text for segment in segments)
    seconds = round(len(pcm) / HEARING_RATE, 3)
    usage: Json = {"type": "duration", "seconds": seconds}
    if fields.get("stream", "").lower() in {"true", "1"}:
        return await _send_events(request, segments, text, usage)
    if wanted == "text":
        return web.Response(text=text + "\n")
    if wanted in {"srt", "vtt"}:
        return web.Response(text=subtitles(segments, wanted))
    if wanted == "json":
        return web.json_response({"text": text, "usage": usage})
    listed = [{"id": n, "start": s.start, "end": s.end, "text": s.text} for n, s in enumerate(segments)]
    body = {"task": "transcribe", "language": "english", "duration": seconds, "text": text}
    return web.json_response(body | {"segments": listed, "usage": usage})


async def _send_events(request: web.Request, segments: list[Segment], text: str, usage: Json) -> web.StreamResponse:
    out = EventStream(request)
    for index, segment in enumerate(segments):
        delta = segment.text if index == 0 else f" {segment.text}"
        await out.send({"type": "transcript.text.delta", "delta": delta})
    await out.send({"type": "transcript.text.done", "text": text, "usage": usage})
    return await out.end()


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
