"""What the parts of one session share, and what all sessions of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assistant.channel import Channel
from assistant.clock import Clock
from assistant.conversation import Conversation
from assistant.engines import Ears, Speaker, Thinker
from assistant.events import Event, Settings
from assistant.hearing.stage import Offload
from assistant.ids import Ids
from assistant.personas import Persona
from assistant.telemetry.metrics import Metrics
from assistant.telemetry.trace import TraceLog
from assistant.thinking.tools import ToolRegistry

if TYPE_CHECKING:
    from assistant.session.session import Session

EVENTS_IN_FLIGHT = 256


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every session of a process shares."""

    thinker: Thinker
    speaker: Speaker
    ears: Ears
    clock: Clock
    ids: Ids
    offload: Offload
    personas: dict[str, Persona]
    tools: Callable[[Session], ToolRegistry]
    """Makes a talk's own tools: they may keep timers and lists, so each talk has its own."""
    metrics: Metrics
    trace_log: TraceLog | None = None


@dataclass(slots=True)
class Shared:
    """What the parts of one session share. All of its tasks run in `group`; only `settings` is ever replaced."""

    talk: str
    around: Surroundings
    settings: Settings
    conversation: Conversation
    events: Channel[Event] = field(default_factory=lambda: Channel(EVENTS_IN_FLIGHT))
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    async def emit(self, event: Event) -> None:
        """Tell the front; waits while it has too much unread. Raises ChannelClosed when it has gone."""
        await self.events.send(event)

    def now(self) -> float:
        return self.around.clock.now()
