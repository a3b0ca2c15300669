"""A session's work on other threads, with a way to wait until all of it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from assistant.talk.context import Offload

T = TypeVar("T")


class SessionThreads:
    """Call it with a function to run that function off the event loop."""

    def __init__(self, offload: Offload) -> None:
        self._offload = offload
        self._working = 0
        self._at_rest = asyncio.Event()
        self._at_rest.set()

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Run the function, shielded: cancelling the wait would not stop the thread, which is at rest only at the
        end."""
        self._working += 1
        self._at_rest.clear()
        work = asyncio.ensure_future(self._offload(function))
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    async def finished(self) -> None:
        """Wait until no thread works for this session."""
        await self._at_rest.wait()

    def _done(self, work: asyncio.Future[T]) -> None:
        self._working -= 1
        if not self._working:
            self._at_rest.set()
        if not work.cancelled():
            work.exception()  # raised to the waiting caller; nobody may be waiting any more
