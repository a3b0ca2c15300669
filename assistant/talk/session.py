"""A session's face to its front, and which of its parts answers which message.

A front opens a session through `Talks`, runs it beside its own loop, sends commands and reads events:

    session = talks.open()
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        async for event in session.events: ...        # ends when the session has ended
        # elsewhere: await session.send(CreateResponse()); at the end: session.close()

One task owns the talk: commands and what hearing noticed reach it in order, one at a time. A reply runs beside it and
speaks to the front itself; it is cancelled before anything is said of its end, so nothing of it can follow.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from assistant.base.channel import Channel
from assistant.base.errors import ChannelClosed, EngineFailed, PeerError
from assistant.contracts import Line
from assistant.events import (
    CancelResponse,
    Command,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Error,
    Event,
    IdleTimeout,
    Item,
    ItemRetrieved,
    PersonaSwitched,
    ReportHeard,
    ResponseParams,
    RetrieveItem,
    Rewind,
    Settings,
    SettingsUpdated,
    SwitchPersona,
    ToolSpec,
    TruncateItem,
    Undo,
    UpdateSettings,
)
from assistant.personas import Persona
from assistant.talk.context import Services, TalkContext
from assistant.talk.conversation import Conversation
from assistant.talk.edits import Edits
from assistant.talk.hearing import (
    Cleared,
    Hearing,
    NothingToCommit,
    Noticed,
    UserBegan,
    UserEnded,
    UserProgress,
    UserWords,
)
from assistant.talk.idle import IdleOver, IdleTimer
from assistant.talk.replies import Replies, ReplyOver
from assistant.talk.reply import Reply
from assistant.talk.sync import StateSync
from assistant.talk.turn_taking import PendingTranscripts, TurnTaking
from assistant.talk.turns import TurnTimes
from assistant.talk.view import ReplyView
from assistant.tools.kept import Slots

COMMANDS_IN_FLIGHT = 64
EXCHANGE = 2
"""Turns that a spoken "undo that" takes back: itself, and the one before."""


@dataclass(frozen=True, slots=True)
class _SayNow:
    """The talk itself has something to say (a timer went off)."""

    text: str


_Inbox: TypeAlias = Noticed | ReplyOver | IdleOver | _SayNow


class _Closed(Exception):
    """Ends the session's task group from inside."""


class Session:
    """A talk while somebody is connected to it. `run` returns after `close`; then `events` is closed too."""

    def __init__(
        self,
        talk: str,
        around: Services,
        settings: Settings,
        conversation: Conversation | None = None,
        on_end: Callable[[Session], None] = lambda session: None,
    ) -> None:
        self.talk = talk
        """The conversation's id; `Talks.open(resume=…)` takes it."""
        self.id = around.ids("sess")
        self.conversation = conversation if conversation is not None else Conversation()
        self._around = around
        self._shared = shared = TalkContext(talk, around, settings, self.conversation)
        self._commands: Channel[Command] = Channel(COMMANDS_IN_FLIGHT)
        self._inbox: Channel[_Inbox] = Channel(COMMANDS_IN_FLIGHT)
        self._stop = asyncio.Event()
        self._on_end = on_end
        self._hearing = Hearing(
            around.asr, around.clock, self._commands, self._inbox, lambda: shared.settings.turn_detection,
            self._complete, around.ids, around.offload,
        )  # fmt: skip
        self._tools = around.tools(self)
        self._view = ReplyView(around.personas, self._tools, self.conversation)
        self._turns = TurnTimes(shared)
        self._state_sync = StateSync(shared, self._view)
        self._idle = IdleTimer(shared, self._inbox.send)
        self._words = PendingTranscripts(shared, self._turns)
        self._replies = Replies(
            shared, self._view, self._state_sync, self._turns, self._idle, self._words.ready, self._inbox.send,
            self._effects,
        )  # fmt: skip
        self._floor = TurnTaking(shared, self._replies, self._turns, self._words, self._idle, self._hearing.drop)
        self._edits = Edits(shared, self._replies, self._state_sync, self._tools.kept)

    # ---------------------------------------------------------------------------- what fronts use

    @property
    def events(self) -> Channel[Event]:
        """What the front is told, in order."""
        return self._shared.events

    @property
    def settings(self) -> Settings:
        """What holds now."""
        return self._shared.settings

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation, oldest first."""
        return self.conversation.items

    @property
    def own_tool_specs(self) -> tuple[ToolSpec, ...]:
        """The session's own tools as its present settings and persona offer them to the model."""
        return self._view.own_tools(self.settings).specs

    @property
    def undoing(self) -> Slots:
        """What the exchange before this one changed of what the session's own tools keep, as it was before."""
        return self.conversation.before(self.conversation.turns_back(EXCHANGE))

    async def send(self, command: Command) -> None:
        """Hand a command over; waits while too many are waiting. Raises ChannelClosed after `close`."""
        await self._commands.send(command)

    def close(self) -> None:
        """End the session as soon as possible; a running reply stops at the engines' next step."""
        if not self._stop.is_set():
            self.conversation.kept = self._tools.kept.to_json()
            self._tools.kept.close()
        self._commands.close()
        self._stop.set()

    def say(self, text: str) -> None:
        """Speak these words when nobody else speaks; dropped when the session is swamped."""
        self._inbox.offer(_SayNow(text))

    async def run(self) -> None:
        """Serve commands until `close`. Call it once."""
        try:
            self._tools.kept.resume(self.conversation.kept)
            async with self._shared.group as group:
                group.create_task(self._hearing.run())
                group.create_task(self._serve())
                group.create_task(self._end_when_closed())
                if len(self.conversation):
                    self._state_sync.ahead()
        except* (_Closed, ChannelClosed):
            pass
        finally:
            self.close()
            self.events.close()
            self.conversation.leave()
            try:
                with contextlib.suppress(EngineFailed):  # the engines end too: the words are kept, the state is not
                    await self._replies.close()
                    await self._around.llm.park(self.talk)
                    await self._around.tts.park(self.talk)
            finally:
                self._on_end(self)

    # -------------------------------------------------------------------------- one message at a time

    async def _end_when_closed(self) -> None:
        await self._stop.wait()
        raise _Closed

    async def _serve(self) -> None:
        async for message in self._inbox:
            try:
                await self._handle(message)
            except PeerError as error:
                self._around.metrics.errors.labels(error.code).inc()
                cause = getattr(message, "cause", None)
                await self._shared.emit(Error(error.code, str(error), error.param, cause))

    async def _handle(self, message: _Inbox) -> None:
        match message:
            case UserBegan():
                await self._floor.began(message)
            case UserProgress():
                await self._floor.progress(message)
            case UserEnded():
                await self._floor.ended(message)
            case UserWords():
                await self._words.arrived(message)
            case Cleared():
                await self._floor.cleared(message)
            case NothingToCommit():
                raise PeerError(
                    "input_audio_buffer_commit_empty",
                    f"the input buffer holds {message.had_ms:.0f} ms of sound; a commit needs at least 100 ms",
                )
            case ReplyOver():
                await self._replies.over(message)
            case IdleOver():
                await self._idle_over()
            case _SayNow():
                await self._say(message.text)
            case UpdateSettings():
                await self._update(message.settings)
            case CreateResponse():
                await self._replies.create(message.params)
            case CancelResponse():
                await self._cancel(message.response_id)
            case SwitchPersona():
                await self._switch_persona(message.name)
            case RetrieveItem():
                entry = self.conversation.entry(message.item_id, "item_retrieve_invalid_item_id")
                await self._shared.emit(ItemRetrieved(entry.item))
            case CreateItem():
                await self._edits.create(message)
            case DeleteItem():
                await self._edits.delete(message.item_id)
            case TruncateItem():
                await self._edits.truncate(message)
            case ReportHeard():
                self._edits.heard(message)
            case Undo():
                await self._edits.undo(message.turns)
            case Rewind():
                await self._edits.rewind(message)

    async def _update(self, settings: Settings) -> None:
        before = self.settings
        self._known_persona(settings.persona, "session.persona")
        self._view.tools(settings)
        if not self._around.tts.paces:
            settings = replace(settings, speed=1.0)
        self._shared.settings = settings
        await self._shared.emit(SettingsUpdated(settings))
        if self._replies.active is None and self._view.prompt(before) != self._view.prompt(settings):
            self._state_sync.soon()

    async def _cancel(self, response_id: str | None) -> None:
        active = self._replies.running(response_id)
        if active is None:
            raise PeerError("response_cancel_not_active", "Cancellation failed: no active response found")
        if active is self._replies.active:
            await self._floor.stop_player()
        await self._replies.stop(active, "client_cancelled")
        if self._replies.active is None:
            await self._replies.due()

    async def _switch_persona(self, name: str) -> None:
        begin = self._shared.now()
        persona = self._known_persona(name, "name")
        settings = replace(self.settings, persona=name, voice=None, instructions=None)
        self._view.tools(settings)
        await self._replies.stop(self._replies.active, "client_cancelled")
        self._shared.settings = settings
        await self._state_sync.now()
        await self._around.tts.warm(persona.voice)
        await self._shared.emit(PersonaSwitched(name, persona.voice, (self._shared.now() - begin) * 1000))

    def _known_persona(self, name: str, param: str) -> Persona:
        """Raises PeerError."""
        persona = self._around.personas.get(name)
        if persona is None:
            known = ", ".join(self._around.personas)
            raise PeerError("invalid_value", f"there is no persona {name!r}; known: {known}", param)
        return persona

    async def _say(self, text: str) -> None:
        if self._replies.active is None and not self._floor.taken:
            await self._replies.start(ResponseParams(), text)

    async def _idle_over(self) -> None:
        """Nobody spoke: an empty turn of the user, and a reply to it."""
        if self._replies.active is not None or self._floor.taken:
            return
        item_id = self._around.ids("item")
        now_ms = self._hearing.input_ms
        await self._shared.emit(IdleTimeout(item_id, now_ms, now_ms))
        await self._words.commit(item_id, "")
        self._turns.silent()
        await self._replies.start(ResponseParams())

    # ------------------------------------------------------------------------------- what parts ask

    async def _complete(self, text: str) -> float | None:
        """For hearing: how complete these words sound as the next turn. Silent while a reply is being made."""
        if self._replies.active is not None:
            return None
        prompt = self._view.prompt(self.settings)
        asked = replace(prompt, lines=(*prompt.lines, Line("user", text)))
        try:
            return await self._around.llm.turn_end_probability(self.talk, asked)
        except EngineFailed:
            return None

    async def _effects(self, reply: Reply) -> None:
        """A reply is out: now what its tools wanted done to the talk."""
        for done in reply.effects:
            match done.effect:
                case "undo":
                    await self._edits.take_back(EXCHANGE)
                case "start_over":
                    await self._edits.take_back_all()
                case "switch_persona":
                    with contextlib.suppress(PeerError):
                        await self._switch_persona(done.argument)
