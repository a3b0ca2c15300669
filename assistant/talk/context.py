"""What the parts of one session share, and what all sessions of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from assistant.base.channel import Channel
from assistant.base.clock import Clock
from assistant.base.ids import Ids, random_ids
from assistant.contracts import ASR, LLM, TTS
from assistant.events import Error, Event, Settings
from assistant.personas import Persona
from assistant.talk.conversation import Conversation
from assistant.talk.keeping import Keeping
from assistant.talk.messages import Inbox, TurnMessage
from assistant.talk.playing import FrontPlayer
from assistant.talk.turn_taking import Effect, TurnTakingState, step
from assistant.talk.view import ReplyView
from assistant.telemetry.metrics import Metrics
from assistant.telemetry.trace import TraceLog
from assistant.tools.registry import ToolRegistry
from assistant.tools.rows import Changes

EVENTS_IN_FLIGHT = 256
"""Some seconds of a reply. A front that reads no more stops its own reply there, and its memory does not grow."""
INBOX = 64

T = TypeVar("T")


class ToolHost(Protocol):
    """What a talk's own tools may ask of the session that they serve."""

    @property
    def settings(self) -> Settings: ...

    @property
    def undoing(self) -> Changes: ...


class Offload(Protocol):
    """Runs a function off the event loop and gives its result."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


def no_tools(host: ToolHost) -> ToolRegistry:
    """For talks without tools of their own."""
    return ToolRegistry()


@dataclass(frozen=True, slots=True)
class Engines:
    """The three models behind every talk."""

    llm: LLM
    tts: TTS
    asr: ASR


@dataclass(frozen=True, slots=True)
class Services:
    """What every session of a process shares. Wiring makes one."""

    engines: Engines
    clock: Clock
    personas: dict[str, Persona]
    offload: Offload
    tools: Callable[[ToolHost], ToolRegistry] = no_tools
    """Makes a talk's own tools: they change the store of the home and record for an undo what this talk changed."""
    metrics: Metrics = field(default_factory=Metrics)
    trace_log: TraceLog | None = None
    ids: Ids = random_ids
    candidates: bool = True
    """Whether replies are begun in private before a turn is certain to be over."""
    echo: bool = False
    """Whether our own voice is taken out of what the microphone brings."""

    @property
    def llm(self) -> LLM:
        return self.engines.llm

    @property
    def tts(self) -> TTS:
        return self.engines.tts

    @property
    def asr(self) -> ASR:
        return self.engines.asr


@dataclass(slots=True)
class TalkContext:
    """What the parts of one session share. All of its tasks run in `group`; only `settings` and `turn` are ever
    replaced."""

    talk: str
    services: Services
    settings: Settings
    conversation: Conversation
    view: ReplyView
    keeping: Keeping = field(default_factory=Keeping)
    # Made here and not handed in: each belongs to this session alone and begins empty.
    turn: TurnTakingState = field(default=TurnTakingState(), init=False)
    """Who speaks. Replaced by `tell` alone."""
    inbox: Channel[Inbox] = field(default_factory=lambda: Channel(INBOX), init=False)
    """What the session's one task takes, one message at a time."""
    events: Channel[Event] = field(default_factory=lambda: Channel(EVENTS_IN_FLIGHT), init=False)
    playing: FrontPlayer = field(default_factory=FrontPlayer, init=False)
    """What the front makes of these events on its loudspeaker."""
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup, init=False)

    def tell(self, message: TurnMessage) -> tuple[Effect, ...]:
        """Turn-taking learns of this now. What a reply tells of itself has no effects; those of everything else are
        `TurnEffects`' to carry out."""
        self.turn, effects = step(self.turn, message, self.settings, self.now())
        return effects

    async def emit(self, event: Event) -> None:
        """Tell the front, when all that changed is in the journal; waits while it has too much unread. Raises
        ChannelClosed when it has gone."""
        if self.keeping.changed(self.conversation):
            self.keeping.note(self.conversation)
            if trouble := self.keeping.trouble():
                await self.events.send(Error("talk_not_kept", trouble, kind="server_error"))
        await self.events.send(event)
        if self.services.echo:
            self.playing.told(event, self.settings, self.now())

    def now(self) -> float:
        return self.services.clock.now()
