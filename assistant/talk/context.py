"""What the parts of one session share, and what all sessions of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from assistant.base.channel import Channel
from assistant.base.clock import Clock
from assistant.base.ids import Ids
from assistant.contracts import ASR, LLM, TTS
from assistant.events import Event, Settings
from assistant.personas import Persona
from assistant.talk.conversation import Conversation
from assistant.talk.hearing import Offload
from assistant.telemetry.metrics import Metrics
from assistant.telemetry.trace import TraceLog
from assistant.tools.kept import Slots
from assistant.tools.registry import ToolRegistry

EVENTS_IN_FLIGHT = 256


class ToolHost(Protocol):
    """What a talk's own tools may ask of the session that they serve."""

    @property
    def settings(self) -> Settings: ...

    @property
    def undoing(self) -> Slots: ...

    def say(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Services:
    """What every session of a process shares."""

    llm: LLM
    tts: TTS
    asr: ASR
    clock: Clock
    ids: Ids
    offload: Offload
    personas: dict[str, Persona]
    tools: Callable[[ToolHost], ToolRegistry]
    """Makes a talk's own tools: they may keep timers and lists, so each talk has its own."""
    metrics: Metrics
    trace_log: TraceLog | None = None


@dataclass(slots=True)
class TalkContext:
    """What the parts of one session share. All of its tasks run in `group`; only `settings` is ever replaced."""

    talk: str
    around: Services
    settings: Settings
    conversation: Conversation
    events: Channel[Event] = field(default_factory=lambda: Channel(EVENTS_IN_FLIGHT))
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    async def emit(self, event: Event) -> None:
        """Tell the front; waits while it has too much unread. Raises ChannelClosed when it has gone."""
        await self.events.send(event)

    def now(self) -> float:
        return self.around.clock.now()
