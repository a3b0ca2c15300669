"""The models' state is brought in line with the talk while nobody waits for it: after a cut, an undo, a switch; and
made ready for the next turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Literal

from assistant.base.errors import EngineFailed
from assistant.contracts import Synced
from assistant.events import Error, StateChanged
from assistant.talk.context import TalkContext
from assistant.talk.view import ReplyView


class StateSync:
    """One at a time, in the order in which they were asked for."""

    def __init__(self, shared: TalkContext, view: ReplyView) -> None:
        self._shared, self._view = shared, view
        self._latest: asyncio.Task[None] | None = None

    def soon(self) -> None:
        """Begin, behind those that were asked for before."""
        before = self._latest

        async def chain() -> None:
            if before is not None:
                await asyncio.wait([before])
            await self._sync()
            self.ahead()

        self._latest = self._shared.group.create_task(chain())

    async def wait(self) -> None:
        """Until all that was asked for is done."""
        if self._latest is not None:
            await asyncio.wait([self._latest])
            self._latest = None

    async def now(self) -> None:
        await self.wait()
        await self._sync()

    def ahead(self) -> None:
        """A turn is over: what the next would find undone is done now, if there is time."""
        self._shared.group.create_task(self._prepare())

    async def _prepare(self) -> None:
        with suppress(EngineFailed):  # the next reply meets it too, and tells
            await self._shared.around.llm.prepare(self._shared.talk, self._view.prompt(self._shared.settings))

    async def _sync(self) -> None:
        around, talk = self._shared.around, self._shared.talk
        try:
            mind = await around.llm.sync(talk, self._view.prompt(self._shared.settings))
            voice = await around.tts.sync(talk, self._shared.conversation.uttered())
        except EngineFailed as error:
            await self._shared.emit(Error("server_error", str(error), kind="server_error"))
            return
        await self._tell("llm", mind)
        await self._tell("tts", voice)

    async def _tell(self, engine: Literal["llm", "tts"], settled: Synced) -> None:
        if settled.what is not None:
            await self._shared.emit(StateChanged(settled.what, engine, settled.position, settled.ms))
