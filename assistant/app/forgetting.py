"""A sentence forgotten for good: gone from every talk's words, from the journals' bytes, and from the models' states.

Every talk of a person begins with the memory, so its state holds the sentence whatever was said in it. The states of
all talks are therefore dropped, those of models that ran here earlier too, and folded again from what was said when
they are needed. States that programs named are theirs and hold no memory.

The home's store says what is being forgotten until nothing holds it, so a start goes on where a kill came between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING

from assistant.device.thread import EngineKind
from assistant.talk.talks import Talks
from assistant.tools.errors import AnswerError
from assistant.tools.home import HomeRows
from assistant.tools.memory import serial_of
from assistant.tools.rows import Thing

if TYPE_CHECKING:
    from assistant.app.models import Models

STATES = ("talk/", "persona/")
"""Beginnings of the names of our own stored states."""
log = logging.getLogger(__name__)


class Forgetting:
    def __init__(self, talks: Talks, models: Models, home: HomeRows) -> None:
        self._talks, self._models, self._home = talks, models, home
        self._tasks: set[asyncio.Task[bool]] = set()

    async def __aenter__(self) -> Forgetting:
        await self.go_on()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Leave to the next start what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def forget(self, fact: str) -> bool:
        """The sentence is out of the file already. Whoever asked for it may leave meanwhile. False: it stays in a talk
        that another program has open, or on a full disk, until the next start."""
        return await asyncio.shield(self._start_task(self._forget(fact)))

    def _start_task(self, work: Coroutine[None, None, bool]) -> asyncio.Task[bool]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _forget(self, fact: str) -> bool:
        if self._models.llm.state is not None:
            await self._models.llm.warm({})  # the personas, which are folded anew as the file has changed
        told = await self._talks.forget_words(fact)
        await self._models.deployment.thread.call(EngineKind.LLM, self._drop_states)
        if not all(gone.result() for gone in told if gone.done()):
            return False
        if all(gone.done() for gone in told):
            self._home.forgotten(fact)
        else:
            self._start_task(self._finish(fact, told))
        return True

    async def _finish(self, fact: str, told: Sequence[asyncio.Future[bool]]) -> bool:
        """Once the replies that had read it are over."""
        await asyncio.wait(told)  # not `gather`, which a stop would have cancel what the talks promised
        await self._models.deployment.thread.call(EngineKind.LLM, self._drop_states)
        if gone := all(one.result() for one in told):
            self._home.forgotten(fact)
        return gone

    async def go_on(self) -> None:
        """Finish what an earlier process began to forget."""
        for fact in self._home.forgetting:
            try:
                self._home.forget(Thing(serial_of(fact), fact))
            except AnswerError as error:
                log.warning("something that is to be forgotten stays in the memory: %s", error)
            else:
                await self.forget(fact)

    def _drop_states(self) -> None:
        for deployment in self._models.deployments:
            registry = deployment.registry
            for one in registry.listing():
                ours = one.name.startswith(STATES) or (not one.name and one.scope == "llm")
                if ours and not one.pinned:
                    registry.remove(one.key)
