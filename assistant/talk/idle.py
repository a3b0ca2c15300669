"""Nobody speaks: the protocol's idle timeout, counted from the end of the last reply as it plays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from assistant.events import ServerVad
from assistant.talk.context import TalkContext


@dataclass(frozen=True, slots=True)
class IdleOver:
    """Nobody spoke for as long as the front allows."""


class IdleTimer:
    """`tell` is called when the time is over."""

    def __init__(self, shared: TalkContext, tell: Callable[[IdleOver], Awaitable[None]]) -> None:
        self._shared, self._tell = shared, tell
        self._waiting: asyncio.Task[None] | None = None

    def start(self, play_end: float) -> None:
        """A reply is out that plays until `play_end`, clock seconds."""
        detection = self._shared.settings.turn_detection
        if isinstance(detection, ServerVad) and detection.idle_timeout_ms is not None:
            self.stop()
            end = max(play_end, self._shared.now()) + detection.idle_timeout_ms / 1000
            self._waiting = self._shared.group.create_task(self._until(end))

    def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    async def _until(self, moment: float) -> None:
        await self._shared.around.clock.sleep_until(moment)
        await self._tell(IdleOver())
