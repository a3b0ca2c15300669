"""A voice behind `/audio/speech`, as 24 kHz PCM. The server does not report where in the sound the words are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from assistant.base.errors import EngineFailed
from assistant.base.pcm import from_pcm16
from assistant.base.tongues import ENGLISH_NAMES, base_of, is_english
from assistant.contracts import SpeechChunk, Synced
from assistant.remote.server import Address, Server

NO_PCM = ("text/", "application/json", "audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac")
"""Content types that would be noise if played as samples."""
NOTHING = Synced(None, 0, 0.0)


class RemoteTTS:
    """Each piece is a separate request."""

    paces = True
    state = None
    languages: tuple[str, ...] = ()

    def __init__(self, address: Address, voices: Sequence[str] = ()) -> None:
        self._server = Server(address)
        self._voices = tuple(voices)

    @property
    def name(self) -> str:
        return self._server.model or self._server.address.base

    @property
    def voices(self) -> Sequence[str]:
        return self._voices

    async def close(self) -> None:
        await self._server.close()

    async def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0,
        language: str | None = None,
    ) -> AsyncGenerator[SpeechChunk, None]:  # fmt: skip
        body: dict[str, object] = {
            "model": await self._server.model_name(),
            "input": text,
            "voice": voice or (self._voices[0] if self._voices else "default"),
            "response_format": "pcm",
            "stream_format": "audio",
            "speed": speed,
        }
        if language is not None and not is_english(language) and (name := ENGLISH_NAMES.get(base_of(language))):
            body["language"] = name  # as servers name it that take one; others go by the text
        odd = b""
        async with self._server.request("POST", "/audio/speech", body) as answer:
            if answer.content_type.startswith(NO_PCM):
                raise EngineFailed(f"{answer.url} sent {answer.content_type}; raw PCM of 24 kHz was asked for")
            async for data in answer.content.iter_any():
                sound = odd + data
                whole = len(sound) // 2 * 2
                odd = sound[whole:]
                if whole:
                    yield SpeechChunk(from_pcm16(sound[:whole]))

    async def warm(self, voice: str | None) -> Synced:
        await self._server.model_name()
        return NOTHING
