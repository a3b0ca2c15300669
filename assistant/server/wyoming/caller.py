"""One connection: one request at a time. A new request, or the end of the connection, ends the work on the last one.

A request that fails is answered by one `error` event, and the connection ends: clients that do not know the event would
wait for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import TypeAlias, TypeVar

from wyoming.error import Error
from wyoming.event import Event, Eventable, async_write_event
from wyoming.ping import Pong

from assistant.base.channel import Channel
from assistant.base.errors import AssistantError, ChannelClosed, PeerError
from assistant.base.ids import random_ids
from assistant.base.sound import Pcm
from assistant.realtime.fields import Fields
from assistant.server.backend import ServerContext
from assistant.server.wyoming.frames import StreamedSound, read_frame, text_pieces
from assistant.server.wyoming.hearing import HearingWish, hear, read_hearing
from assistant.server.wyoming.houses import Houses, read_asked
from assistant.server.wyoming.offers import offers
from assistant.server.wyoming.speaking import read_speaking, speak_to
from assistant.server.wyoming.waking import known_words, read_names, wait_for_name

log = logging.getLogger(__name__)
T = TypeVar("T")
IN_FLIGHT = 64
"""Pieces of sound or text that wait for their work, 1 MiB at most; then the client is slowed down. With the frame that
is being read it is 2 MiB for each of the callers."""
LAST_WORD_SECONDS = 2.0

Work: TypeAlias = Callable[[], Coroutine[None, None, None]]
Ear: TypeAlias = Callable[[Channel[Pcm]], Coroutine[None, None, None]]


class WyomingCaller:
    """Serves one client of the protocol."""

    def __init__(self, reader: StreamReader, writer: StreamWriter, context: ServerContext, houses: Houses) -> None:
        self._reader, self._writer, self._context, self._houses = reader, writer, context, houses
        self._engines = context.talks.engines
        self._conversation = random_ids("house")
        self._ear: Ear = partial(hear, self._engines.asr, HearingWish(), send=self._send)
        """The work on sound that the client asked for last; on the first stream it need not ask."""
        self._microphone = StreamedSound()
        self._work: asyncio.Task[None] | None = None
        self._sounds: Channel[Pcm] | None = None
        self._texts: Channel[str] | None = None
        """Input that the work still takes; None: it takes none."""
        self._answers: dict[str, Callable[[Event], Awaitable[None]]] = {
            "describe": self._describe, "ping": self._ping,
            "transcribe": self._transcribe, "detect": self._detect,
            "audio-start": self._audio_start, "audio-chunk": self._audio_chunk, "audio-stop": self._audio_stop,
            "synthesize": self._synthesize, "synthesize-start": self._synthesize_start,
            "synthesize-chunk": self._synthesize_chunk, "synthesize-stop": self._synthesize_stop,
            "transcript": self._transcript,
        }  # fmt: skip

    async def serve(self) -> None:
        """Until the connection ends, which also ends the work, or a request fails."""
        try:
            while (event := await read_frame(self._reader)) is not None:
                if event.type in self._answers:  # the protocol wants others to be ignored
                    await self._answers[event.type](event)
        except PeerError as error:
            await self._drop()
            await self._refuse(error)
        except OSError:  # it broke, or the system gave up on a client that answers no more
            return
        finally:
            await self._drop()
            await self._hang_up()

    # --------------------------------------------------------------------------- requests

    async def _describe(self, event: Event) -> None:
        await self._send(offers(self._context))

    async def _ping(self, event: Event) -> None:
        await self._send(Pong(Fields(event.data, event.type).text("text")))

    async def _transcribe(self, event: Event) -> None:
        self._ear = partial(hear, self._engines.asr, read_hearing(event, self._engines.asr), send=self._send)
        await self._listen()

    async def _detect(self, event: Event) -> None:
        words = known_words(self._context.talks.wake_words)
        self._ear = partial(wait_for_name, words, read_names(event, words), send=self._send)
        await self._listen()

    async def _listen(self) -> None:
        await self._drop()
        self._microphone, self._sounds = StreamedSound(), Channel(IN_FLIGHT)
        self._start_work(partial(self._ear, self._sounds))

    async def _audio_start(self, event: Event) -> None:
        if self._sounds is None:
            await self._listen()

    async def _audio_chunk(self, event: Event) -> None:
        await _give(self._sounds, self._microphone.pieces(event))

    async def _audio_stop(self, event: Event) -> None:
        if self._sounds is not None:
            self._sounds.close()

    async def _synthesize(self, event: Event) -> None:
        if self._texts is not None and not self._texts.closed:
            return  # the whole of a text that comes in pieces, for servers that cannot stream
        await self._start_speaking(event, streamed=False)
        await self._synthesize_chunk(event)
        await self._synthesize_stop(event)

    async def _synthesize_start(self, event: Event) -> None:
        await self._start_speaking(event, streamed=True)

    async def _start_speaking(self, event: Event, *, streamed: bool) -> None:
        wanted = read_speaking(event, self._context, streamed=streamed)
        await self._drop()
        self._texts = Channel(IN_FLIGHT)
        self._start_work(partial(speak_to, self._engines.tts, wanted, self._texts, self._send))

    async def _synthesize_chunk(self, event: Event) -> None:
        await _give(self._texts, text_pieces(Fields(event.data, event.type).need_text("text")))

    async def _synthesize_stop(self, event: Event) -> None:
        if self._texts is not None:
            self._texts.close()

    async def _transcript(self, event: Event) -> None:
        asked = read_asked(event, self._conversation)
        await self._drop()
        self._start_work(partial(self._houses.answer, asked, self._send))

    # ------------------------------------------------------------------------------- work

    def _start_work(self, work: Work) -> None:
        self._work = asyncio.create_task(self._worked(work))

    async def _worked(self, work: Work) -> None:
        try:
            await work()
        except ConnectionError:
            return  # the client has gone, which ends the reading too
        except AssistantError as error:
            await self._refuse(error)
        except Exception:
            log.exception("a request over Wyoming failed")
            await self._refuse(AssistantError("the request failed; ask again"))
        finally:
            self._take_no_more()

    def _take_no_more(self) -> None:
        for given in (self._sounds, self._texts):
            if given is not None:
                given.close()
        self._sounds = self._texts = None

    async def _drop(self) -> None:
        """End the work on the last request; nothing of it runs any more when this returns."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
            self._work = None
            self._take_no_more()  # it may not even have begun

    # ------------------------------------------------------------------------------- wire

    async def _send(self, said: Eventable) -> None:
        await async_write_event(said.event(), self._writer)

    async def _refuse(self, error: AssistantError) -> None:
        """The last word to this client."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(LAST_WORD_SECONDS):
                await self._send(Error(str(error), getattr(error, "code", "server_error")))
        self._writer.close()

    async def _hang_up(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                await self._writer.wait_closed()
        except TimeoutError:  # too much is unread
            self._writer.transport.abort()
        except OSError:
            return


async def _give(given: Channel[T] | None, pieces: Iterable[T]) -> None:
    """Hand over pieces; those that come when nothing takes them any more are dropped."""
    with contextlib.suppress(ChannelClosed):
        for one in pieces:
            if given is None:
                return
            await given.send(one)
