"""A session's face to its front, and which of its parts answers which message.

A front opens a session through `Talks`, runs it beside its own loop, sends commands and reads events:

    session = talks.open()
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        async for event in session.events: ...        # ends when the session has ended
        # elsewhere: await session.send(CreateResponse()); at the end: session.close()

One task owns the talk: commands and what hearing noticed reach it in order, one at a time, so no part needs a lock. A
reply runs beside it and speaks to the front itself; it is cancelled before anything is said of its end, so nothing of
it can follow. Who speaks is decided in `turn_taking`, all of it; the other messages go to the part that knows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from assistant.base.channel import Channel
from assistant.base.errors import ChannelClosed, EngineFailed, PeerError
from assistant.contracts import Prompt
from assistant.events import (
    CancelResponse,
    Command,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Error,
    Event,
    Item,
    ItemRetrieved,
    ReportHeard,
    RetrieveItem,
    Rewind,
    Settings,
    SightChanged,
    SwitchPersona,
    TruncateItem,
    Undo,
    UpdateSettings,
)
from assistant.talk.amends import Amends
from assistant.talk.context import Services, TalkContext
from assistant.talk.conversation import Conversation
from assistant.talk.edits import Edits
from assistant.talk.hearing import Hearing
from assistant.talk.idle import IdleTimer
from assistant.talk.inlet import Inlet
from assistant.talk.keeping import Keeping
from assistant.talk.messages import (
    Cleared,
    ClientCancel,
    IdleOver,
    Inbox,
    NothingToCommit,
    Refused,
    ReplyOut,
    ReplyOver,
    SayNow,
    UserBegan,
    UserEnded,
    UserMayBeDone,
    UserProgress,
    UserWords,
)
from assistant.talk.pending import PendingTranscripts
from assistant.talk.preferences import Preferences
from assistant.talk.replies import Replies
from assistant.talk.shown import Shown
from assistant.talk.sync import StateSync
from assistant.talk.take_back import EXCHANGE, TakeBack
from assistant.talk.tool_effects import ToolEffects
from assistant.talk.turn_effects import TurnEffects
from assistant.talk.turns import TurnTimes
from assistant.talk.view import ReplyView
from assistant.tools.kept import Slots

Answer: TypeAlias = Callable[..., Awaitable[None]]
"""Takes a message of one kind."""
BESIDE_CANDIDATES = (
    UserProgress, UserMayBeDone, UserEnded, UserWords, NothingToCommit, ReplyOver, RetrieveItem, ReportHeard,
)  # fmt: skip
"""What leaves a reply that is made in private as it is. Anything else may change what it would be: it is dropped."""


class _Closed(Exception):
    """Ends the session's task group from inside."""


class Session:
    """A talk while somebody is connected to it. `run` returns after `close`; then `events` is closed too."""

    def __init__(
        self,
        talk: str,
        services: Services,
        settings: Settings,
        conversation: Conversation | None = None,
        on_end: Callable[[Session], None] = lambda session: None,
        keeping: Keeping | None = None,
    ) -> None:
        self.talk = talk
        """The conversation's id; `Talks.open(resume=…)` takes it."""
        self.id = services.ids("sess")
        self.conversation = conversation if conversation is not None else Conversation()
        self._services, self._on_end, self._sees = services, on_end, services.llm.sees
        self._stop, self._begun, self.moved = asyncio.Event(), False, False
        view = ReplyView(services.personas, services.tools(self), self.conversation, services.llm.sees)
        self._context = context = TalkContext(
            talk, services, settings, self.conversation, view, keeping or Keeping()
        )
        self._inlet = Inlet(context.inbox, services.offload)
        self._hearing = Hearing(context, self._inlet)
        self._state_sync = StateSync(context)
        self._preferences = Preferences(context, self._state_sync)
        take_back = TakeBack(context, self._state_sync)
        turns, idle = TurnTimes(context), IdleTimer(context)
        words = PendingTranscripts(context, turns)
        self._replies = Replies(
            context, self._state_sync, turns, idle, words, ToolEffects(context, take_back, self._preferences)
        )
        self._turns = TurnEffects(
            context, self._replies, turns, words, idle, Amends(context, self._hearing, take_back)
        )
        self._shown = Shown(context, self._replies.candidates.look, self._state_sync.soon)
        self._edits = Edits(context, self._replies, self._state_sync, take_back, self._shown)
        self._answers = self._table(self._edits, words)

    # ---------------------------------------------------------------------------- what fronts use

    @property
    def events(self) -> Channel[Event]:
        """What the front is told, in order."""
        return self._context.events

    @property
    def settings(self) -> Settings:
        """What holds now."""
        return self._context.settings

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation, oldest first."""
        return self.conversation.items

    def prompt_as(self, persona: str) -> Prompt:
        """What the model reads of the talk as this persona."""
        return self._context.view.prompt(replace(self.settings, persona=persona))

    @property
    def undoing(self) -> Slots:
        """What the exchange before this one changed of what the session's own tools keep, as it was before."""
        return self.conversation.before(self.conversation.turns_back(EXCHANGE))

    async def send(self, command: Command) -> None:
        """Hand a command over; waits while too many are waiting. Raises ChannelClosed after `close`."""
        await self._inlet.send(command)

    def close(self, *, moved: bool = False) -> None:
        """End the session as soon as possible; a running reply stops at the engines' next step. `moved`: another front
        goes on with the talk."""
        self.moved = self.moved or moved
        if self._begun and not self._stop.is_set():  # before, it has not taken over what was kept
            self._edits.leave()
            kept = self._context.view.kept
            self._context.keeping.note(self.conversation, kept)
            self.conversation.kept = kept.to_json()
            kept.close()
        self._inlet.close()
        self._stop.set()

    def say(self, text: str) -> None:
        """Speak these words when nobody else speaks; dropped when the session is swamped."""
        self._context.inbox.offer(SayNow(text))

    async def run(self) -> None:
        """Serve commands until `close`. Call it once."""
        try:
            if not self._stop.is_set():
                self._context.view.kept.resume(self.conversation.kept)
                self._begun = True
            async with self._context.group as group:
                group.create_task(self._hearing.run())
                group.create_task(self._inlet.run())
                group.create_task(self._serve())
                group.create_task(self._end_when_closed())
                if torn := self._context.keeping.torn():
                    await self._context.emit(Error("talk_cut_short", torn, kind="server_error"))
                if len(self.conversation):
                    self._state_sync.ahead()
        except* (_Closed, ChannelClosed):
            pass
        finally:
            self.close()
            self.events.close()
            self.conversation.leave()
            try:
                with contextlib.suppress(EngineFailed):  # the engines end too: what the journal holds is kept
                    await self._replies.close()
                    if self._edits.cut and not self.moved:  # else the next session's, which has begun
                        await self._state_sync.settle()
                    for engine in self._services.engines.stateful:
                        await engine.park(self.talk)
            finally:
                self._context.keeping.note_words(self.conversation)
                self._on_end(self)

    # -------------------------------------------------------------------------- one message at a time

    async def _end_when_closed(self) -> None:
        # Raised, not returned: it is the exception that makes the group cancel everything else at once.
        await self._stop.wait()
        raise _Closed

    async def _serve(self) -> None:
        async for message in self._context.inbox:
            try:
                if not (isinstance(message, BESIDE_CANDIDATES) or self._shown.idle_frame(message)):
                    await self._replies.candidates.drop()
                await self._answers[type(message)](message)
                self._shown.follow()
                for frame in self._shown.told():
                    await self._context.emit(frame)
            except PeerError as error:
                self._services.metrics.errors.labels(error.code).inc()
                cause = getattr(message, "cause", None)
                await self._context.emit(Error(error.code, str(error), error.param, cause))

    def _table(self, edits: Edits, words: PendingTranscripts) -> Mapping[type[Inbox], Answer]:
        """Which part answers which message. A test holds it complete."""
        turns = self._turns.take
        return {
            UserBegan: turns, UserProgress: turns, UserMayBeDone: turns, UserEnded: turns,
            Cleared: turns, IdleOver: turns, SayNow: turns,
            UserWords: partial(self._words, words),
            NothingToCommit: self._refuse_commit,
            Refused: self._refuse,
            ReplyOver: self._reply_over,
            CreateResponse: self._create_response,
            CancelResponse: self._cancel,
            UpdateSettings: lambda command: self._preferences.update(command.settings),
            SwitchPersona: self._switch_persona,
            RetrieveItem: self._retrieve,
            CreateItem: edits.create,
            DeleteItem: lambda command: edits.delete(command.item_id),
            TruncateItem: edits.truncate,
            ReportHeard: edits.heard,
            Undo: lambda command: edits.undo(command.turns),
            Rewind: edits.rewind,
        }  # fmt: skip

    async def _refuse_commit(self, nothing: NothingToCommit) -> None:
        raise PeerError(
            "input_audio_buffer_commit_empty",
            f"the input buffer holds {nothing.had_ms:.0f} ms of sound; a commit needs at least 100 ms",
        )

    async def _refuse(self, refused: Refused) -> None:
        raise refused.error

    async def _words(self, pending: PendingTranscripts, words: UserWords) -> None:
        self._shown.heard(words)  # before a reply that waits for them builds its prompt
        await pending.arrived(words)

    async def _create_response(self, command: CreateResponse) -> None:
        if command.params.input is None and command.params.conversation == "auto" and self._replies.active is None:
            self._shown.asked()
        await self._replies.create(command.params)

    async def _reply_over(self, over: ReplyOver) -> None:
        if await self._replies.over(over):
            await self._turns.take(ReplyOut())
        if self._sees != self._services.llm.sees:
            self._sees = not self._sees
            await self._context.emit(SightChanged(self._sees))

    async def _cancel(self, command: CancelResponse) -> None:
        active = self._replies.running(command.response_id)
        if active is None:
            raise PeerError("response_cancel_not_active", "Cancellation failed: no active response found")
        if active is self._replies.active:
            await self._turns.take(ClientCancel())
        else:  # one beside the conversation is nobody's turn
            await self._replies.stop(active, "client_cancelled")

    async def _switch_persona(self, command: SwitchPersona) -> None:
        asked = self._context.now()
        settings = self._preferences.as_persona(command.name)
        await self._replies.stop(self._replies.active, "client_cancelled")
        await self._preferences.become(settings, asked)

    async def _retrieve(self, command: RetrieveItem) -> None:
        entry = self.conversation.entry(command.item_id, "item_retrieve_invalid_item_id")
        await self._context.emit(ItemRetrieved(entry.item))
