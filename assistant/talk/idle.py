"""The protocol's idle timeout, while nobody speaks. It counts from the end of the last reply as it plays."""

from __future__ import annotations

import asyncio

from assistant.events import ServerVad
from assistant.talk.context import TalkContext
from assistant.talk.messages import IdleOver


class IdleTimer:
    """Puts IdleOver into the inbox when the time is over. Turn-taking decides whether the talk still is idle then."""

    def __init__(self, context: TalkContext) -> None:
        self._context = context
        self._waiting: asyncio.Task[None] | None = None

    def start(self, play_end: float) -> None:
        """Begin after a reply that plays until `play_end`, clock seconds."""
        detection = self._context.settings.turn_detection
        if isinstance(detection, ServerVad) and detection.idle_timeout_ms is not None:
            self.stop()
            # Count from the end of playing, not of sending: the reply was made in a fraction of its length.
            end = max(play_end, self._context.now()) + detection.idle_timeout_ms / 1000
            self._waiting = self._context.group.create_task(self._until(end))

    def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    async def _until(self, moment: float) -> None:
        await self._context.services.clock.sleep_until(moment)
        await self._context.inbox.send(IdleOver())
