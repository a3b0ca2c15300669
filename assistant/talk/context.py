"""Data shared by the parts of one session, and by all sessions of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from assistant.base.channel import Channel
from assistant.base.clock import Clock
from assistant.base.ids import Ids, random_ids
from assistant.base.tongues import Abilities, is_english
from assistant.contracts import ASR, LLM, TTS, Stateful, WakeWords
from assistant.events import Error, Event, Settings
from assistant.personas import Persona
from assistant.talk.approvals import Approvals
from assistant.talk.conversation import Conversation
from assistant.talk.effects import Effect
from assistant.talk.keeping import Keeping
from assistant.talk.messages import Inbox, TurnMessage
from assistant.talk.playing import FrontPlayer
from assistant.talk.turn_taking import TurnTakingState, step
from assistant.talk.view import ReplyView
from assistant.telemetry.metrics import Metrics
from assistant.telemetry.trace import TraceLog
from assistant.text.languages import talk_words
from assistant.text.talk_words import TalkWords
from assistant.tools.registry import Tool, ToolRegistry
from assistant.tools.rows import Changes

EVENTS_IN_FLIGHT = 256
"""Some seconds of a reply. If a front stops reading, its own reply stalls there, and its memory does not grow."""
INBOX = 64

T = TypeVar("T")


class ToolHost(Protocol):
    """The requests that a talk's own tools may make of their session."""

    @property
    def settings(self) -> Settings: ...

    @property
    def undoing(self) -> Changes: ...


class ToolServers(Protocol):
    """The MCP servers of the home."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Those that a talk has which begins now."""

    @property
    def starting(self) -> tuple[str, ...]: ...

    async def one_is_up(self) -> None:
        """Return once one of those is ready, or given up."""

    async def tools_of(self, name: str) -> tuple[Tool, ...]:
        """Raises ToolError with a sentence for a server that does not work."""


class Offload(Protocol):
    """Runs a function off the event loop and returns its result."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


def no_tools(host: ToolHost) -> ToolRegistry:
    """The registry of talks that have no tools of their own."""
    return ToolRegistry()


@dataclass(frozen=True, slots=True)
class Engines:
    """The three models behind every talk."""

    llm: LLM
    tts: TTS
    asr: ASR

    @property
    def stateful(self) -> tuple[Stateful, ...]:
        """The model and the voice, as far as they hold the state of talks."""
        return tuple(state for state in (self.llm.state, self.tts.state) if state is not None)

    @property
    def keep_capsules(self) -> bool:
        """Whether both do. Only then can a talk be forked, or a reply be begun that may be taken back."""
        return len(self.stateful) == 2


@dataclass(frozen=True, slots=True)
class Services:
    """Shared by every session of a process. The wiring makes one."""

    engines: Engines
    clock: Clock
    personas: dict[str, Persona]
    offload: Offload
    tools: Callable[[ToolHost], ToolRegistry] = no_tools
    """Makes a talk's own tools: they change the store of the home and record for an undo what this talk changed."""
    servers: ToolServers | None = None
    thinks: tuple[str, ...] = ()
    """The languages of the model (BCP-47); empty: not known, and so are the voice's."""
    speaks: tuple[str, ...] = ()
    facts: Callable[[], tuple[str, ...]] = tuple
    """The sentences that are remembered of the user; talks begin with them."""
    forget: Callable[[str], Awaitable[bool]] | None = None
    """Takes a sentence out of everything that is stored of the talks; None: nothing is."""
    metrics: Metrics = field(default_factory=Metrics)
    trace_log: TraceLog | None = None
    ids: Ids = random_ids
    candidates: bool = True
    """Whether replies are begun in private before a turn is certain to be over."""
    lost: str | None = None
    """The words for a reply that came to nothing, or for a turn without a word; None: the model is asked anyway."""
    wake_words: WakeWords | None = None
    """Words that call a talk besides the names of its personas; None: there are none."""
    echo: bool = False
    """Whether our own voice is removed from the microphone's sound."""

    @property
    def abilities(self) -> Abilities:
        return Abilities(self.asr.facts.languages, self.thinks, self.speaks)

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
    """Shared by the parts of one session. All of its tasks run in `group`; only `settings` and `turn` are ever
    replaced."""

    talk: str
    services: Services
    settings: Settings
    conversation: Conversation
    view: ReplyView
    keeping: Keeping = field(default_factory=Keeping)
    # Made here and not passed in: each belongs to this session alone and begins empty.
    turn: TurnTakingState = field(default=TurnTakingState(), init=False)
    """The state of turn-taking. Only `tell` replaces it."""
    inbox: Channel[Inbox] = field(default_factory=lambda: Channel(INBOX), init=False)
    """The messages that the session's one task handles, one at a time."""
    events: Channel[Event] = field(default_factory=lambda: Channel(EVENTS_IN_FLIGHT), init=False)
    playing: FrontPlayer = field(default_factory=FrontPlayer, init=False)
    """A model of the front's loudspeaker, fed with these events."""
    approvals: Approvals = field(default_factory=Approvals, init=False)
    forgets: dict[str, asyncio.Future[bool]] = field(default_factory=dict, init=False)
    """The sentences that were forgotten while a reply was made, each with whether it is gone."""
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup, init=False)

    def tell(self, message: TurnMessage) -> tuple[Effect, ...]:
        """Give turn-taking this message now. Messages from a reply have no effects; `TurnEffects` carries out the
        effects of all others."""
        self.turn, effects = step(self.turn, message, self.settings, self.now(), self.known_words)
        return effects

    async def emit(self, event: Event) -> None:
        """Send the front an event once every change is in the journal; wait while it has too many unread. Raises
        ChannelClosed when the front is gone."""
        if self.keeping.changed(self.conversation):
            self.keeping.note(self.conversation)
            if trouble := self.keeping.trouble():
                await self.events.send(Error("talk_not_kept", trouble, kind="server_error"))
        await self.events.send(event)
        if self.services.echo:
            self.playing.told(event, self.settings, self.now())

    @property
    def language(self) -> str | None:
        """The code of the language that the front or the persona chose; None: neither did."""
        return self.view.language(self.settings)

    @property
    def known_words(self) -> TalkWords | None:
        """The words that steer the talk, in its language or the ears' own, if there is a list of them."""
        chosen = self.language
        return talk_words(self.services.asr.facts.languages if chosen is None else (chosen,))

    def phrase(self, name: str, english: str, **names: str) -> str:
        """A sentence of our own: the persona's, ours in English, or "" in another language. `names` fill the persona's
        in."""
        found = self.view.persona(self.settings).phrases.get(name)
        if found is None:
            return english if is_english(self.language) else ""
        for key, value in names.items():
            found = found.replace(f"{{{key}}}", value)
        return found

    def now(self) -> float:
        return self.services.clock.now()
