"""`/v1/audio/transcriptions`: the hearing engine alone, in OpenAI's shape.

A long recording is cut at its pauses, and each stretch of speech is written down by itself: that bounds the work of
one pass and gives the segments that subtitles need.
"""

from __future__ import annotations

import asyncio
import io

import numpy as np
import soundfile
from aiohttp import web

from assistant.asr.recording import Segment, subtitles, write_down
from assistant.base.errors import PeerError
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE
from assistant.events import Pcm
from assistant.realtime.fields import Json
from assistant.server.answers import EventStream, while_connected
from assistant.server.context import ServerContext

MAX_FILE = 64 * 1024 * 1024
MAX_SECONDS = 3600.0
FORMATS = ("json", "text", "srt", "verbose_json", "vtt")


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


async def audio_transcriptions(request: web.Request, context: ServerContext) -> web.StreamResponse:
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
    work = asyncio.to_thread(write_down, context.talks.engines.asr, pcm)
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
