"""`/v1/audio/transcriptions`: the hearing engine alone, in OpenAI's shape.

A long recording is cut at its pauses, and each stretch of speech is written down by itself: this bounds the work of
one pass and yields the segments that subtitles need.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp import web

from assistant.asr.recording import Segment, subtitles, write_down
from assistant.base.errors import AssistantError, PeerError
from assistant.base.sound import HEARING_RATE
from assistant.base.sound_file import read_sound
from assistant.contracts import AsrFacts
from assistant.events import Pcm
from assistant.realtime.fields import Json
from assistant.server.answers import EventStream, while_connected
from assistant.server.backend import ServerContext

MAX_FILE = 64 * 1024 * 1024
MAX_SECONDS = 3600.0
FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
GRANULARITIES = ("segment", "word")
NAMES = {"en": "english"}
"""`verbose_json` names the language in English words; a language without a word here is given by its code."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """A client's options for its transcript. `asked`: the language that it named; `language`: that, or the ears'."""

    form: str
    stream: bool
    words: bool
    language: str
    asked: str


def _read_wish(fields: dict[str, list[str]], facts: AsrFacts) -> _Wish:
    """Raises PeerError for options that these ears do not support."""

    def last(name: str) -> str:
        return fields.get(name, [""])[-1]

    form = last("response_format") or "json"
    if form not in FORMATS:
        raise PeerError(
            "invalid_value",
            f"response_format {form[:40]!r} is not supported; use one of {', '.join(FORMATS)}",
            "response_format",
        )
    language = checked_language(last("language"), facts)
    words = _words_wanted(fields, form, facts)
    return _Wish(form, last("stream").lower() in {"true", "1"}, words, language, last("language"))


def checked_language(wanted: str, facts: AsrFacts) -> str:
    """The wanted language, or the ears' first one; empty if neither is known. Raises PeerError for one that they do not
    know."""
    language = wanted or (facts.languages[0] if facts.languages else "")
    known = {code.partition("-")[0] for code in facts.languages}
    if known and language.lower().partition("-")[0] not in known:
        told = f"{facts.name} does not know the language {language[:40]!r}, only {', '.join(facts.languages)}"
        raise PeerError("invalid_value", told, "language")
    return language


def _words_wanted(fields: dict[str, list[str]], form: str, facts: AsrFacts) -> bool:
    param = "timestamp_granularities"
    wanted = fields.get(f"{param}[]", []) + fields.get(param, [])
    if unknown := [one for one in wanted if one not in GRANULARITIES]:
        raise PeerError("invalid_value", f"{param} are {' and '.join(GRANULARITIES)}, not {unknown[0][:40]!r}", param)
    if "word" not in wanted:
        return False
    if form != "verbose_json":
        raise PeerError("invalid_value", f"{param}[]=word needs response_format=verbose_json", param)
    if not facts.word_times:
        told = f"{facts.name} does not say when each word was spoken; ask for {param}[]=segment, or choose other ears"
        raise PeerError("invalid_value", told, param)
    return True


def read_file(data: bytes) -> Pcm:
    """A sound file's samples at 16 kHz, mixed to mono. Raises PeerError."""
    try:
        return read_sound(data, "file", MAX_SECONDS)
    except AssistantError as error:
        raise PeerError("invalid_value", str(error), "file") from error


async def read_form(request: web.Request, called: str = "file") -> tuple[bytes, dict[str, list[str]]]:
    """The file, which is the part with that name, and all values of every other part. Raises PeerError."""
    if not (request.content_type or "").startswith("multipart/"):
        raise PeerError("invalid_type", f"the body must be multipart/form-data with a part called {called}", called)
    data: bytes | None = None
    fields: dict[str, list[str]] = {}
    try:  # part by part, each with its own bound: `request.post()` would hold every part whole in memory
        async for part in await request.multipart():
            name = getattr(part, "name", None)
            content = bytearray()
            while chunk := await part.read_chunk():  # type: ignore[union-attr]
                content += chunk
                if len(content) > (MAX_FILE if name == called else 65536):
                    raise PeerError("invalid_value", f"the part {name} is too large", name)
            if name == called:
                data = bytes(content)
            elif name:
                fields.setdefault(name, []).append(content.decode("utf-8", "replace").strip())
    except (ValueError, AttributeError) as error:
        raise PeerError("invalid_event", f"the multipart body is damaged: {str(error)[:100]}") from None
    if data is None:
        raise PeerError("missing_required_parameter", f"the part called {called} is missing", called)
    return data, fields


async def audio_transcriptions(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """`POST /v1/audio/transcriptions`."""
    data, fields = await read_form(request)
    asr = context.talks.engines.asr
    wish = _read_wish(fields, asr.facts)
    pcm = await asyncio.to_thread(read_file, data)
    segments = await while_connected(request, asyncio.to_thread(write_down, asr, pcm, wish.asked))
    text = " ".join(segment.text for segment in segments)
    seconds = round(len(pcm) / HEARING_RATE, 3)
    usage: Json = {"type": "duration", "seconds": seconds}
    if wish.stream:
        return await _send_events(request, segments, text, usage)
    if wish.form == "text":
        return web.Response(text=text + "\n")
    if wish.form in {"srt", "vtt"}:
        return web.Response(text=subtitles(segments, wish.form))
    if wish.form == "json":
        return web.json_response({"text": text, "usage": usage})
    body: Json = {
        "task": "transcribe",
        "language": NAMES.get(wish.language, wish.language),
        "duration": seconds,
        "text": text,
        "segments": [{"id": n, "start": s.start, "end": s.end, "text": s.text} for n, s in enumerate(segments)],
        "usage": usage,
    }
    return web.json_response(body | ({"words": _words(segments)} if wish.words else {}))


def _words(segments: list[Segment]) -> list[Json]:
    """The words, each with its times in seconds."""
    words = [word for segment in segments for word in segment.words]
    return [
        {"word": word.text, "start": round(word.start_ms / 1000, 3), "end": round(word.end_ms / 1000, 3)}
        for word in words
        if word.start_ms is not None and word.end_ms is not None
    ]


async def _send_events(request: web.Request, segments: list[Segment], text: str, usage: Json) -> web.StreamResponse:
    out = EventStream(request)
    for index, segment in enumerate(segments):
        delta = segment.text if index == 0 else f" {segment.text}"
        await out.send_event({"type": "transcript.text.delta", "delta": delta})
    await out.send_event({"type": "transcript.text.done", "text": text, "usage": usage})
    return await out.close_stream()
