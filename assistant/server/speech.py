"""`/v1/audio/speech`: the speaking engine alone, in OpenAI's shape, streamed if the format allows it.

`pcm` and `wav` go out as they are made; libsndfile encodes compressed formats once the sound is complete.
"""

from __future__ import annotations

import asyncio
import base64
import io
import struct
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from itertools import count

import numpy as np
import soundfile
from aiohttp import web

from assistant.base.errors import PeerError
from assistant.base.ids import random_ids
from assistant.base.pcm import to_pcm16
from assistant.contracts import TTS
from assistant.events import REPLY_RATE, Pcm
from assistant.realtime.settings import read_voice
from assistant.server.answers import EventStream, json_fields, while_connected
from assistant.server.backend import ServerContext
from assistant.text.segment import Segmenter

MAX_INPUT = 4096
STREAMED = {"pcm": "audio/pcm", "wav": "audio/wav"}
ENCODED = {"mp3": ("MP3", "MPEG_LAYER_III", "audio/mpeg"), "flac": ("FLAC", "PCM_16", "audio/flac"),
           "opus": ("OGG", "OPUS", "audio/ogg")}  # fmt: skip
FORMATS = (*ENCODED, *STREAMED)
UNKNOWN_LENGTH = 0xFFFFFFFF
"""A length that players understand as: to the end of the stream."""


async def audio_speech(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """`POST /v1/audio/speech`."""
    body = await json_fields(request)
    text = body.need_text("input")
    if not text.strip():
        raise _unspoken()
    if len(text) > MAX_INPUT:
        raise PeerError("string_above_max_length", f"input has {len(text)} characters; at most {MAX_INPUT}", "input")
    wanted = body.text("response_format") or "mp3"
    if wanted not in FORMATS:
        raise PeerError(
            "invalid_value",
            f"response_format {wanted[:40]!r} is not supported; use one of {', '.join(FORMATS)}",
            "response_format",
        )
    speed = body.number("speed", 0.25, 4.0) or 1.0
    # Refused rather than ignored: the answer is only sound, which could not report that it was ignored.
    if speed != 1.0 and not context.talks.engines.tts.paces:
        raise PeerError("invalid_value", f"this voice has one pace: speed must be 1.0, not {speed:g}", "speed")
    sounds = speak(context.talks.engines.tts, _whole_text(text), read_voice(body, context.facts), speed)
    async with aclosing(sounds):
        if body.choice("stream_format", ("audio", "sse")) == "sse":
            return await _send_events(request, sounds, wanted, len(text))
        if wanted in STREAMED:
            return await _send_stream(request, sounds, wanted)
        pcm = await while_connected(request, _whole(sounds))
    if not pcm.size:
        raise _unspoken()
    data = await asyncio.to_thread(encode, pcm, wanted)  # tens of milliseconds that would hold up all talks
    return web.Response(body=data, content_type=ENCODED[wanted][2])


async def _whole_text(text: str) -> AsyncGenerator[str, None]:
    yield text


async def speak(
    tts: TTS, texts: AsyncIterator[str], voice: str | None, speed: float = 1.0
) -> AsyncGenerator[Pcm, None]:
    """The sound of a text that may still be written, piece by piece, in a separate talk that is forgotten at the
    end."""
    talk, index = random_ids("http"), count()
    try:
        async for said in _pieces(texts):
            async with aclosing(tts.speak(talk, voice, f"{talk}.{next(index)}", said, speed=speed)) as sounds:
                async for sound in sounds:
                    if sound.pcm.size:
                        yield sound.pcm
    finally:
        if (state := tts.state) is not None:
            await state.forget_talk(talk)  # also if the client goes away in the middle, which closes this generator


async def _pieces(texts: AsyncIterator[str]) -> AsyncIterator[str]:
    """The words of each piece that can be spoken on its own."""
    segmenter = Segmenter(shown={})  # nothing is shown beside a file of sound
    async for text in texts:
        for span in segmenter.feed(text):
            if span.said.strip():
                yield span.said
    for span in segmenter.finish():
        if span.said.strip():
            yield span.said


async def _send_stream(request: web.Request, sounds: AsyncGenerator[Pcm, None], wanted: str) -> web.StreamResponse:
    """Send the headers with the first sound, so that an engine that fails before it can still report that."""
    response = web.StreamResponse(headers={"Content-Type": STREAMED[wanted]})
    while (pcm := await while_connected(request, _next(sounds))) is not None:
        if not response.prepared:
            await response.prepare(request)
            if wanted == "wav":
                await response.write(wav_header())
        await response.write(to_pcm16(pcm))
    if not response.prepared:
        raise _unspoken()
    await response.write_eof()
    return response


async def _send_events(
    request: web.Request, sounds: AsyncGenerator[Pcm, None], wanted: str, characters: int
) -> web.StreamResponse:
    """Deltas of base64 sound, then the usage. Only raw samples can be cut into deltas."""
    if wanted != "pcm":
        raise PeerError("invalid_value", 'stream_format "sse" needs response_format "pcm" here', "response_format")
    out = EventStream(request)
    samples = 0
    while (pcm := await while_connected(request, _next(sounds))) is not None:
        samples += len(pcm)
        await out.send_event({"type": "speech.audio.delta", "audio": base64.b64encode(to_pcm16(pcm)).decode()})
    if not samples:
        raise _unspoken()
    frames = round(samples * 25 / REPLY_RATE)
    usage = {"input_tokens": characters, "output_tokens": frames, "total_tokens": characters + frames}
    await out.send_event({"type": "speech.audio.done", "usage": usage})
    return await out.close_stream()


def _unspoken() -> PeerError:
    """The error for text with only marks, pictures or unknown letters: an empty file would explain nothing."""
    return PeerError("invalid_value", "input has no words to speak", "input")


async def _next(sounds: AsyncGenerator[Pcm, None]) -> Pcm | None:
    return await anext(sounds, None)


async def _whole(sounds: AsyncGenerator[Pcm, None]) -> Pcm:
    pieces = [pcm async for pcm in sounds]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)


def encode(pcm: Pcm, wanted: str) -> bytes:
    """A whole sound as a file of a compressed format. Opus in Ogg supports 24 kHz."""
    major, subtype, _ = ENCODED[wanted]
    file = io.BytesIO()
    soundfile.write(file, np.clip(pcm, -1.0, 1.0), REPLY_RATE, format=major, subtype=subtype)
    return file.getvalue()


def wav_header() -> bytes:
    """A 16-bit mono WAV header of unknown length, as streams have it."""
    fmt = struct.pack("<HHIIHH", 1, 1, REPLY_RATE, REPLY_RATE * 2, 2, 16)
    return (
        b"RIFF" + struct.pack("<I", UNKNOWN_LENGTH) + b"WAVEfmt " + struct.pack("<I", 16) + fmt
        + b"data" + struct.pack("<I", UNKNOWN_LENGTH)
    )  # fmt: skip
