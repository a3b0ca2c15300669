"""A fork of the voice for words beside a reply, so that the voice goes on as if they had not been said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from assistant.talk.context import TalkContext


def aside_of(talk: str) -> str:
    """The talk that the fork belongs to."""
    return f"{talk}/cover"


@asynccontextmanager
async def voice_aside(context: TalkContext, talk: str) -> AsyncIterator[None]:
    """While it is open, the voice may speak in `aside_of(talk)`."""
    voice = context.services.tts.state
    try:
        if voice is not None:
            await voice.fork(talk, aside_of(talk))
        yield
    finally:
        if voice is not None:
            await voice.forget_talk(aside_of(talk))
