"""Sound to words, as it comes. A pause is written down while it lasts, so that the transcript is ready when the client
says that the sound is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from wyoming.asr import Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.event import Event, Eventable

from assistant.asr.recording import Dictation
from assistant.base.channel import Channel
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import ASR, MOST_TERMS
from assistant.realtime.fields import Fields
from assistant.server.listen import checked_language
from assistant.talk.off_loop import SessionThreads

BLOCK = HEARING_RATE // 10
"""Satellites send 10 to 60 ms at a time; less than this at once is not worth a change of threads."""

Send: TypeAlias = Callable[[Eventable], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HearingWish:
    """A request for a transcript. `terms`: words that are likelier than usual; `asked`: the language that was named."""

    language: str = ""
    terms: tuple[str, ...] = ()
    asked: str = ""


def read_hearing(event: Event, asr: ASR) -> HearingWish:
    """Raises PeerError for a language that these ears do not know."""
    fields = Fields(event.data, event.type)
    named = [*(fields.array("transcript_names") or ()), *(fields.array("transcript_terms") or ())]
    terms = tuple(str(term) for term in named[:MOST_TERMS])
    asked = fields.text("language") or ""
    return HearingWish(checked_language(asked, asr.facts), terms, asked)


async def hear(asr: ASR, wanted: HearingWish, sounds: Channel[Pcm], send: Send) -> None:
    """Send the words as far as they are certain, and the transcript when `sounds` is closed."""
    threads = SessionThreads(asyncio.to_thread)
    with ExitStack() as stack:
        try:
            dictation = await threads(lambda: stack.enter_context(_dictation(asr, wanted)))
            told, texts = ToldWords(send, wanted.language), []
            async for block in blocks(sounds):
                texts += [part.text for part in await threads(partial(dictation.add_sound, block))]
                certain = await threads(dictation.certain_words) if asr.facts.cased else ""
                await told.so_far(" ".join([*texts, certain.strip()]).strip())
            texts += [part.text for part in await threads(dictation.end_sound)]
            await told.tell_all(" ".join(texts))
        finally:
            await threads.finished()


@contextmanager
def _dictation(asr: ASR, wanted: HearingWish) -> Iterator[Dictation]:
    dictation = Dictation(asr, wanted.terms, wanted.asked)
    try:
        yield dictation
    finally:
        dictation.give_back()


class ToldWords:
    """The words that the client has. They come in pieces that add up to the transcript."""

    def __init__(self, send: Send, language: str) -> None:
        self._send, self._language = send, language or None
        self._sent: str | None = None

    async def so_far(self, text: str) -> None:
        """Words that will not change any more. Ears that take some back after all are told by the transcript."""
        if not text:
            return
        if self._sent is None:
            await self._open_stream()
        sent = self._sent or ""
        if text.startswith(sent) and len(text) > len(sent):
            self._sent = text
            await self._send(TranscriptChunk(text[len(sent) :]))

    async def tell_all(self, text: str) -> None:
        await self.so_far(text)
        if self._sent is None:
            await self._open_stream()
        await self._send(Transcript(text, language=self._language))
        await self._send(TranscriptStop())

    async def _open_stream(self) -> None:
        self._sent = ""
        await self._send(TranscriptStart(language=self._language))


async def blocks(sounds: Channel[Pcm]) -> AsyncIterator[Pcm]:
    """The sound in blocks of at least 100 ms; the last may be shorter."""
    waiting: list[Pcm] = []
    async for pcm in sounds:
        waiting.append(pcm)
        if sum(one.size for one in waiting) >= BLOCK:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
