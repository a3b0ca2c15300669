"""Brings the models' state in line with the talk while nobody waits for it, after a cut, an undo or a switch, and makes
it ready for the next turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Literal

from assistant.base.errors import EngineFailed
from assistant.contracts import Prompt, Synced
from assistant.events import Error, StateChanged
from assistant.talk.context import TalkContext


class StateSync:
    """Syncs run one at a time, in the order of the requests: two at once would each roll back the other's work."""

    def __init__(self, context: TalkContext) -> None:
        self._context = context
        self._latest: asyncio.Task[None] | None = None

    def soon(self) -> None:
        """Begin a sync, behind those that were requested before."""
        before = self._latest

        # A task, so that the front's next command need not wait; a reply waits for it (`wait`).
        async def chain() -> None:
            if before is not None:
                await asyncio.wait([before])
            await self._sync()
            self.ahead()

        self._latest = self._context.group.create_task(chain())

    async def wait(self) -> None:
        """Wait until every requested sync is done."""
        if self._latest is not None:
            await asyncio.wait([self._latest])
            self._latest = None

    async def now(self) -> None:
        await self.wait()
        await self._sync()

    def ahead(self) -> None:
        """After a turn, do in advance the work that the next turn would otherwise have to do, if there is time. The
        voice's work waits until the last sound was played, because that sound may be cut until then."""
        self._context.group.create_task(self._prepare(self._context.turn.play_end))

    async def _prepare(self, play_end: float | None) -> None:
        services, talk = self._context.services, self._context.talk
        with suppress(EngineFailed):  # the next reply meets this failure too, and reports it
            if (llm := services.llm.state) is not None:
                await llm.prepare(talk, self._prompt())
            if play_end is not None:
                await services.clock.sleep_until(play_end)
            if (tts := services.tts.state) is not None:
                await tts.prepare(talk)

    async def settle(self) -> tuple[Synced | None, Synced | None]:
        """Bring the model and the voice in line with the talk, and tell nobody. Raises EngineFailed."""
        services, talk = self._context.services, self._context.talk
        llm, tts = services.llm.state, services.tts.state
        folded = None if llm is None else await llm.sync(talk, self._prompt())
        spoken = None if tts is None else await tts.sync(talk, self._context.conversation.uttered())
        return folded, spoken

    async def _sync(self) -> None:
        try:
            folded, spoken = await self.settle()
        except EngineFailed as error:
            await self._context.emit(Error("server_error", str(error), kind="server_error"))
            return
        await self._tell("llm", folded)
        await self._tell("tts", spoken)

    def _prompt(self) -> Prompt:
        return self._context.view.prompt(self._context.settings)

    async def _tell(self, engine: Literal["llm", "tts"], settled: Synced | None) -> None:
        if settled is not None and settled.what is not None:
            await self._context.emit(StateChanged(settled.what, engine, settled.position, settled.ms))
