"""Words to sound, as they come: a sentence is spoken while the next one is still being written."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.event import Event
from wyoming.tts import SynthesizeStopped

from assistant.base.channel import Channel
from assistant.base.errors import PeerError
from assistant.base.pcm import to_pcm16
from assistant.contracts import TTS
from assistant.events import REPLY_RATE
from assistant.realtime.fields import Fields
from assistant.server.backend import ServerContext
from assistant.server.speech import speak
from assistant.server.wyoming.hearing import Send

WIDTH, MONO = 2, 1


@dataclass(frozen=True, slots=True)
class SpeakingWish:
    """A request for sound. `streamed`: its text comes in pieces, and the client waits for the end of the whole."""

    voice: str | None
    streamed: bool


def read_speaking(event: Event, context: ServerContext, *, streamed: bool) -> SpeakingWish:
    """Raises PeerError for a voice that is not here, and for text with marks of its own."""
    fields = Fields(event.data, event.type)
    if fields.text("text_format") not in (None, "text"):
        raise PeerError("invalid_value", "only plain text is spoken here, no SSML", "text_format")
    voices = context.talks.engines.tts.voices
    asked = fields.obj("voice")
    name = None if asked is None else asked.text("name")
    if name is not None and name not in voices:
        raise PeerError("invalid_value", f"there is no voice {name[:40]!r}; there are {', '.join(voices)}", "voice")
    settings = context.talks.defaults
    own = settings.voice or context.facts.character(settings.persona).voice
    return SpeakingWish(name or (own if own in voices else None), streamed)


async def speak_to(tts: TTS, wanted: SpeakingWish, texts: Channel[str], send: Send) -> None:
    """Send the sound of the texts, which end when the channel is closed. Cancelled, it stops the voice before its next
    row. Text without words is a sound without samples."""
    await send(AudioStart(REPLY_RATE, WIDTH, MONO))
    async with aclosing(speak(tts, texts, wanted.voice)) as sounds:
        async for pcm in sounds:
            await send(AudioChunk(REPLY_RATE, WIDTH, MONO, to_pcm16(pcm)))
    await send(AudioStop())
    if wanted.streamed:
        await send(SynthesizeStopped())
