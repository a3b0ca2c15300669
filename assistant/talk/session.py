"""A session's face to its front, with the table of which part answers which message.

A front opens a session through `Talks`, runs it beside its own loop, sends commands and reads events:

    session = talks.open()
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        async for event in session.events: ...        # ends when the session has ended
        # elsewhere: await session.send(CreateResponse()); at the end: session.close()

One task owns the talk: commands and observations from hearing reach it in order, one at a time, so no part needs a
lock. A reply runs beside it and speaks to the front itself; it is cancelled before its end is announced, so nothing of
it can follow. Turn-taking reacts to every message first: it alone decides who speaks. Then the responsible part answers
those messages that ask for more.
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
from assistant.base.tongues import Abilities
from assistant.contracts import Prompt
from assistant.events import (
    AnswerCall,
    CancelResponse,
    Command,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Error,
    Event,
    Item,
    ItemRetrieved,
    MemoryChanged,
    Message,
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
from assistant.talk.approvals import AskedCall
from assistant.talk.context import Services, TalkContext
from assistant.talk.conversation import Conversation
from assistant.talk.edits import Edits
from assistant.talk.forgotten import told_as_forgotten, without_fact
from assistant.talk.hearing import Hearing
from assistant.talk.idle import IdleTimer
from assistant.talk.inlet import Inlet
from assistant.talk.keeping import Keeping
from assistant.talk.late_tools import LateTools
from assistant.talk.messages import (
    Cleared,
    ClientCancel,
    IdleOver,
    Inbox,
    NothingToCommit,
    Refused,
    ReplyEnded,
    ReplyOut,
    ReplyOver,
    SayNow,
    StillSilent,
    ToolsCame,
    UserBegan,
    UserEnded,
    UserMayBeDone,
    UserProgress,
    UserWords,
)
from assistant.talk.own_calls import told_again
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
from assistant.tools.errors import AnswerError
from assistant.tools.rows import MEMORY, Changes

Answer: TypeAlias = Callable[..., Awaitable[None]]
"""Handles a message of one kind."""


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
        self._over = False
        view = ReplyView(
            services.personas, services.tools(self), self.conversation, services.llm.sees, services.facts,
            services.thinks,
        )  # fmt: skip
        self._context = context = TalkContext(
            talk, services, settings, self.conversation, view, keeping or Keeping()
        )
        self._inlet = Inlet(context.inbox, services.offload)
        self._hearing = Hearing(context, self._inlet)
        self._state_sync = StateSync(context)
        self._preferences = Preferences(context, self._state_sync)
        self._late_tools = LateTools(context, self._state_sync, lambda: services.tools(self))
        take_back = TakeBack(context, self._state_sync)
        turns = TurnTimes(context)
        words = PendingTranscripts(context, turns)
        self._replies = Replies(
            context, self._state_sync, turns, IdleTimer(context), words,
            ToolEffects(context, take_back, self._preferences),
        )  # fmt: skip
        self._shown = Shown(context, self._replies.candidates, self._state_sync)
        amends = Amends(context, self._hearing, take_back)
        self._turns = TurnEffects(context, self._replies, turns, words, amends, self._shown)
        self._edits = Edits(context, self._replies, self._state_sync, take_back, self._shown)
        self._answers = self._table(self._edits, words)

    # ---------------------------------------------------------------------------- what fronts use

    @property
    def events(self) -> Channel[Event]:
        """The events for the front, in order."""
        return self._context.events

    @property
    def settings(self) -> Settings:
        """The settings that hold now."""
        return self._context.settings

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation, oldest first."""
        return self.conversation.items

    @property
    def history(self) -> tuple[Item | MemoryChanged, ...]:
        """The conversation for a front that comes back to it: with the sentences that it added to the memory, where it
        did. One that has been taken out since is not named."""
        kept = self._context.view.kept
        with contextlib.suppress(AnswerError):  # a memory that cannot be read is reported when a talk needs it
            return tuple(told_again(self.conversation, {row.text for row in kept.things(MEMORY)}))
        return self.items

    @property
    def abilities(self) -> Abilities:
        """The languages of ears, model and voice."""
        return self._services.abilities

    def prompt_as(self, persona: str) -> Prompt:
        """The talk as the model reads it as this persona."""
        return self._context.view.prompt(replace(self.settings, persona=persona))

    @property
    def undoing(self) -> Changes:
        """The rows that the session's own tools changed in the exchange before this one."""
        return self.conversation.changes(self.conversation.turns_back(EXCHANGE))

    @property
    def asked(self) -> AskedCall | None:
        """The call that waits for the person's word."""
        return self._context.approvals.waiting

    def ask_on(self, call: AskedCall) -> None:
        """Let a call wait that an earlier session of this talk asked about. Before `run`."""
        self._context.approvals.wait_for_answer(call)

    async def forget_words(self, fact: str, gone: asyncio.Future[bool] | None = None) -> asyncio.Future[bool]:
        """Take a sentence out of the talk. Its state is folded again, and the bytes of its journal are written anew.
        `gone` is set when no reply is being made any more that has read it. False: the bytes may still hold it."""
        gone = gone or asyncio.get_running_loop().create_future()
        both = zip(self.conversation, without_fact(self.conversation, fact), strict=True)
        marked = [left for entry, left in both if left is not entry]
        for left in marked:  # first, so that a reply that begins now does not read it
            self.conversation.put(left)
        if marked and self._begun and not self._stop.is_set():  # beside, as a front may be slow to read
            self._context.group.create_task(self._context.emit(told_as_forgotten(marked)))
        if self._context.turn.replying:  # it has read the sentence and may write it again
            self._context.keeping.forgets(self.conversation, fact)
            return self._context.forgets.setdefault(fact, gone)
        await self._replies.candidates.drop_candidate()
        for engine in self._services.engines.stateful:
            await engine.forget_talk(self.talk)
        gone.set_result(not self._over and self._context.keeping.forgets(self.conversation, fact))  # over: it is closed
        return gone

    async def _forget_again(self) -> None:
        """No reply is being made any more that began before something was forgotten."""
        while self._context.forgets and not self._context.turn.replying:
            await self.forget_words(*self._context.forgets.popitem())

    @property
    def takes_rings(self) -> bool:
        """Whether this talk announces timers: it answers turns by itself, or has answered one. A session that only
        writes down never does."""
        if not self.settings.built_in_tools:
            return False
        detection = self.settings.turn_detection
        answers = detection is not None and detection.create_response
        return answers or any(isinstance(item, Message) and item.role == "assistant" for item in self.items)

    @property
    def listens(self) -> bool:
        """Whether a finished timer may be announced now."""
        return self._context.turn.quiet

    async def send(self, command: Command) -> None:
        """Hand over a command; wait while too many are waiting. Raises ChannelClosed after `close`."""
        await self._inlet.send(command)

    def close(self, *, moved: bool = False) -> None:
        """End the session as soon as possible; a running reply stops at the engines' next step. `moved`: another front
        goes on with the talk."""
        self.moved = self.moved or moved
        self._context.view.kept.disconnect()
        if self._begun and not self._stop.is_set():  # before that, the journal may belong to the session it replaces
            self._edits.leave()
            self._context.keeping.note(self.conversation)
        self._inlet.close()
        self._stop.set()

    def say(self, text: str) -> bool:
        """Speak these words when nobody else speaks. Returns False if the session is swamped."""
        return self._context.inbox.offer(SayNow(text))

    async def run(self) -> None:
        """Serve commands until `close`. Call it once."""
        try:
            if not self._stop.is_set():
                recorded = self.conversation.changes([item.id for item in self.items])
                self._context.view.kept.connect(self, self._context.talk, recorded)
                self._begun = True
            async with self._context.group as group:
                group.create_task(self._hearing.run())
                group.create_task(self._inlet.run())
                group.create_task(self._serve())
                group.create_task(self._end_when_closed())
                group.create_task(self._late_tools.wait_for_servers())
                if torn := self._context.keeping.torn():
                    await self._context.emit(Error("talk_cut_short", torn, kind="server_error"))
                await self._preferences.tell_language()
                if len(self.conversation):
                    self._state_sync.ahead()
        except* (_Closed, ChannelClosed):
            pass
        finally:
            self.close()
            self.events.close()
            self.conversation.leave()
            try:
                with contextlib.suppress(EngineFailed):  # the engines end too: the journal's contents remain
                    await self._replies.close()
                    if self._edits.cut and not self.moved:  # else the next session's, which has begun
                        await self._state_sync.settle()
                    for engine in self._services.engines.stateful:
                        await engine.park(self.talk)
                    self._context.tell(ReplyEnded(self._context.now()))
                    await self._forget_again()
            finally:
                self._over = True
                self._context.keeping.leave(self.conversation)
                self._on_end(self)

    # -------------------------------------------------------------------------- one message at a time

    async def _end_when_closed(self) -> None:
        # Raised, not returned: the exception makes the group cancel everything else at once.
        await self._stop.wait()
        raise _Closed

    async def _serve(self) -> None:
        async for message in self._context.inbox:
            try:
                if not self._shown.is_frame(message):
                    await self._turns.react_to(message)
                await self._answers[type(message)](message)
                await self._shown.report()
                await self._forget_again()
                self._late_tools.take_in()
            except PeerError as error:
                self._services.metrics.errors.labels(error.code).inc()
                cause = getattr(message, "cause", None)
                await self._context.emit(Error(error.code, str(error), error.param, cause))

    def _table(self, edits: Edits, words: PendingTranscripts) -> Mapping[type[Inbox], Answer]:
        """The part that answers each kind of message, after turn-taking. A test checks that it is complete."""
        nothing = self._nothing_more
        return {
            UserBegan: nothing, UserProgress: nothing, UserMayBeDone: nothing, UserEnded: nothing,
            Cleared: nothing, IdleOver: nothing, SayNow: nothing, StillSilent: nothing,
            UserWords: words.arrived,
            ToolsCame: self._late_tools.came,
            NothingToCommit: self._refuse_commit,
            Refused: self._refuse,
            ReplyOver: self._reply_over,
            CreateResponse: lambda command: self._replies.create(command.params),
            CancelResponse: self._cancel,
            AnswerCall: self._answer_call,
            UpdateSettings: lambda command: self._preferences.update(command.settings),
            SwitchPersona: self._switch_persona,
            RetrieveItem: self._retrieve,
            CreateItem: partial(self._create_item, edits),
            DeleteItem: lambda command: edits.delete(command.item_id),
            TruncateItem: edits.cut_item,
            ReportHeard: edits.heard,
            Undo: lambda command: edits.undo(command.turns),
            Rewind: edits.rewind,
        }  # fmt: skip

    async def _nothing_more(self, message: Inbox) -> None:
        """Ignore a message that only turn-taking answers."""

    async def _refuse_commit(self, nothing: NothingToCommit) -> None:
        raise PeerError(
            "input_audio_buffer_commit_empty",
            f"the input buffer holds {nothing.had_ms:.0f} ms of sound; a commit needs at least 100 ms",
        )

    async def _refuse(self, refused: Refused) -> None:
        raise refused.error

    async def _create_item(self, edits: Edits, command: CreateItem) -> None:
        if (came := await edits.create(command)) is not None:
            await self._turns.react_to(came)

    async def _reply_over(self, over: ReplyOver) -> None:
        if await self._replies.over(over):
            await self._turns.react_to(ReplyOut())
        if self._sees != self._services.llm.sees:
            self._sees = not self._sees
            await self._context.emit(SightChanged(self._sees))

    async def _cancel(self, command: CancelResponse) -> None:
        active = self._replies.running(command.response_id)
        if active is None:
            raise PeerError("response_cancel_not_active", "Cancellation failed: no active response found")
        if active is self._replies.active:
            await self._turns.react_to(ClientCancel())
        else:  # a reply beside the conversation belongs to no turn
            await self._replies.stop(active, "client_cancelled")

    async def _answer_call(self, command: AnswerCall) -> None:
        self._context.approvals.decide(command.approval_id, command.approve)

    async def _switch_persona(self, command: SwitchPersona) -> None:
        asked = self._context.now()
        settings = self._preferences.as_persona(command.name)
        await self._replies.stop(self._replies.active, "client_cancelled")
        await self._preferences.become(settings, asked)

    async def _retrieve(self, command: RetrieveItem) -> None:
        entry = self.conversation.entry(command.item_id, "item_retrieve_invalid_item_id")
        await self._context.emit(ItemRetrieved(entry.item))
