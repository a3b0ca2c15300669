"""One talk: wires hearing, thinking and speaking, and decides nothing that a pure table can decide.

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
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from assistant.channel import Channel
from assistant.clock import Clock
from assistant.conversation import Conversation, Entry, item_text
from assistant.engines import Ears, Line, Prompt, Settled, Speaker, Thinker, ThinkOptions
from assistant.errors import ChannelClosed, EngineFailed, PeerError
from assistant.events import (
    REPLY_RATE,
    AudioCleared,
    AudioCommitted,
    AudioPart,
    CancelResponse,
    Command,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Duck,
    Error,
    Event,
    IdleTimeout,
    Item,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    Message,
    PersonaSwitched,
    ReportHeard,
    Response,
    ResponseCreated,
    ResponseParams,
    Resume,
    RetrieveItem,
    Rewind,
    ServerVad,
    Settings,
    SettingsUpdated,
    SpeechStarted,
    SpeechStopped,
    StateChanged,
    StopPlayback,
    SwitchPersona,
    TextPart,
    ToolSpec,
    TranscriptCompleted,
    TranscriptDelta,
    TranscriptFailed,
    TranscriptPartial,
    TruncateItem,
    Undo,
    UpdateSettings,
)
from assistant.hearing.stage import (
    Cleared,
    Hearing,
    NothingToCommit,
    Noticed,
    Offload,
    UserBegan,
    UserEnded,
    UserProgress,
    UserWords,
)
from assistant.ids import Ids
from assistant.interrupt import Action, Phase, Signal, actions, manner_of, verdict
from assistant.personas import DEFAULT, Persona
from assistant.reply import Reply, ReplyOrder
from assistant.telemetry.metrics import Metrics
from assistant.telemetry.trace import TraceLog, TurnTrace
from assistant.thinking.prompt import build, choose_tools, entries_of
from assistant.thinking.tools import ToolRegistry

EVENTS_IN_FLIGHT = 256
COMMANDS_IN_FLIGHT = 64
ASIDES = 4
"""Side branches that may run at once."""


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


@dataclass(frozen=True, slots=True)
class _ReplyOver:
    """A reply's task has ended by itself."""

    reply: Reply
    failure: str | None


@dataclass(frozen=True, slots=True)
class _IdleOver:
    pass


@dataclass(frozen=True, slots=True)
class _SayNow:
    """The talk itself has something to say (a timer went off)."""

    text: str


@dataclass(slots=True)
class _Overlap:
    """The user's speech that is under way."""

    item_id: str
    start_ms: int
    moment: float
    announced: bool = False


@dataclass(slots=True)
class _Active:
    """A reply and the task it runs in."""

    reply: Reply
    task: asyncio.Task[None] = field(init=False)


_Inbox: TypeAlias = Noticed | _ReplyOver | _IdleOver | _SayNow


class _Closed(Exception):
    """Ends the session's task group from inside."""


class Session:
    """A talk while somebody is connected to it. `run` returns after `close`; then `events` is closed too."""

    def __init__(
        self,
        talk: str,
        around: Surroundings,
        settings: Settings,
        conversation: Conversation | None = None,
        on_end: Callable[[Session], None] = lambda session: None,
    ) -> None:
        self.talk = talk
        """The conversation's id; `Talks.open(resume=…)` takes it."""
        self.id = around.ids("sess")
        self.events: Channel[Event] = Channel(EVENTS_IN_FLIGHT)
        self.conversation = conversation if conversation is not None else Conversation()
        self._around, self._clock, self._ids = around, around.clock, around.ids
        self._settings = settings
        self._commands: Channel[Command] = Channel(COMMANDS_IN_FLIGHT)
        self._inbox: Channel[_Inbox] = Channel(COMMANDS_IN_FLIGHT)
        self._stop = asyncio.Event()
        self._on_end = on_end
        self._hearing = Hearing(
            around.ears, around.clock, self._commands, self._inbox, lambda: self._settings.turn_detection,
            self._complete, around.ids, around.offload,
        )  # fmt: skip
        self._tools = around.tools(self)
        self._active: _Active | None = None
        self._asides: dict[str, _Active] = {}
        self._last: Reply | None = None
        self._overlap: _Overlap | None = None
        self._ducked = False
        self._waiting_words: dict[str, asyncio.Future[None]] = {}
        self._turn = 0
        self._trace: TurnTrace | None = None
        self._barged_in = False
        self._reply_wanted = False
        self._heard_ms: dict[str, float] = {}
        self._cut_here: set[str] = set()
        self._settling: asyncio.Task[None] | None = None
        self._idle: asyncio.Task[None] | None = None
        self._yielded_ms: float | None = None

    # ---------------------------------------------------------------------------- what fronts use

    @property
    def settings(self) -> Settings:
        """What holds now."""
        return self._settings

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation, oldest first."""
        return self.conversation.items

    @property
    def own_tool_specs(self) -> tuple[ToolSpec, ...]:
        """The session's own tools as its present settings and persona offer them to the model."""
        return self._own_tools(self._settings, None).specs

    async def send(self, command: Command) -> None:
        """Hand a command over; waits while too many are waiting. Raises ChannelClosed after `close`."""
        await self._commands.send(command)

    def close(self) -> None:
        """End the session as soon as possible; a running reply stops at the engines' next step."""
        self._commands.close()
        self._stop.set()

    def say(self, text: str) -> None:
        """Speak these words when nobody else speaks; dropped when the session is swamped."""
        self._inbox.offer(_SayNow(text))

    async def run(self) -> None:
        """Serve commands until `close`. Call it once."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._hearing.run())
                group.create_task(self._serve())
                group.create_task(self._end_when_closed())
        except* (_Closed, ChannelClosed):
            pass
        finally:
            self.close()
            self.events.close()
            self._tools.close()
            try:
                await self._around.thinker.park(self.talk)
                await self._around.speaker.park(self.talk)
            finally:
                self._on_end(self)

    async def _end_when_closed(self) -> None:
        await self._stop.wait()
        raise _Closed

    async def _serve(self) -> None:
        async for message in self._inbox:
            try:
                await self._handle(message)
            except PeerError as error:
                await self._tell_error(error, getattr(message, "cause", None))

    async def _emit(self, event: Event) -> None:
        await self.events.send(event)

    async def _tell_error(self, error: PeerError, cause: str | None) -> None:
        self._around.metrics.errors.labels(error.code).inc()
        await self._emit(Error(error.code, str(error), error.param, cause))

    async def _handle(self, message: _Inbox) -> None:
        match message:
            case UserBegan():
                await self._user_began(message)
            case UserProgress():
                await self._user_progress(message)
            case UserEnded():
                await self._user_ended(message)
            case UserWords():
                await self._user_words(message)
            case NothingToCommit():
                raise PeerError(
                    "input_audio_buffer_commit_empty",
                    f"the input buffer holds {message.had_ms:.0f} ms of sound; a commit needs at least 100 ms",
                )
            case Cleared():
                if self._overlap is not None and self._overlap.item_id == message.item_id:
                    self._overlap = None
                    await self._unduck()
                await self._emit(AudioCleared())
            case _ReplyOver():
                await self._reply_over(message)
            case _IdleOver():
                await self._idle_over()
            case _SayNow():
                await self._say(message.text)
            case UpdateSettings():
                await self._update(message)
            case CreateItem():
                await self._create_item(message)
            case DeleteItem():
                await self._delete_item(message.item_id)
            case RetrieveItem():
                entry = self.conversation.entry(message.item_id, "item_retrieve_invalid_item_id")
                await self._emit(ItemRetrieved(entry.item))
            case TruncateItem():
                await self._truncate(message)
            case CreateResponse():
                await self._create_response(message)
            case CancelResponse():
                await self._cancel_response(message)
            case ReportHeard():
                self._report_heard(message)
            case Undo():
                await self._undo(message.turns)
            case Rewind():
                await self._rewind(message)
            case SwitchPersona():
                await self._switch_persona(message.name)

    # ------------------------------------------------------------------------------- the user speaks

    @property
    def _phase(self) -> Phase:
        if self._active is None:
            playing = self._last is not None and self._last.play_end > self._clock.now()
            if self._ducked:
                return Phase.DUCKED
            return Phase.PLAYED_OUT if playing else Phase.NONE
        if self._active.reply.first_sent is None:
            return Phase.PRIVATE
        return Phase.DUCKED if self._ducked else Phase.SOUNDING

    async def _user_began(self, began: UserBegan) -> None:
        self._stop_idle()
        self._overlap = _Overlap(began.item_id, began.start_ms, began.moment)
        await self._act(Signal.OVERLAP)

    async def _act(self, signal: Signal) -> None:
        """Do what the table says, in its order."""
        for action in actions(self._phase, signal, manner_of(self._settings)):
            await self._do(action)

    async def _do(self, action: Action) -> None:
        sounding = self._active.reply if self._active is not None else self._last
        at = (sounding.id, sounding.item_ids[-1]) if sounding is not None and sounding.item_ids else None
        match action:
            case Action.ANNOUNCE_SPEECH:
                await self._announce()
            case Action.DUCK if at is not None:
                self._ducked = True
                await self._emit(Duck(*at))
            case Action.RESUME if at is not None:
                self._ducked = False
                await self._emit(Resume(*at))
            case Action.STOP_PLAYER if at is not None:
                self._ducked = False
                await self._emit(StopPlayback(*at))
            case Action.STOP_REPLY:
                if self._active is not None:
                    await self._stop_reply(self._active, "turn_detected")
            case Action.FORGET_OVERLAP:
                if self._overlap is not None:
                    self._hearing.drop(self._overlap.item_id)
                    self._overlap = None

    async def _announce(self) -> None:
        overlap = self._overlap
        if overlap is not None and not overlap.announced:
            overlap.announced = True
            self._barged_in = self._phase is not Phase.NONE
            await self._emit(SpeechStarted(overlap.item_id, overlap.start_ms))

    async def _unduck(self) -> None:
        if self._ducked:
            await self._do(Action.RESUME)

    async def _user_progress(self, progress: UserProgress) -> None:
        overlap = self._overlap
        if overlap is None or overlap.item_id != progress.item_id:
            return
        if self._ducked:
            over = progress.silence_ms > 0
            if (signal := verdict(progress.speech_ms, progress.text, over)) is not None:
                await self._act(signal)
        if overlap.announced and progress.text:
            await self._emit(TranscriptPartial(progress.item_id, progress.text))

    async def _user_ended(self, ended: UserEnded) -> None:
        if ended.was_announced and (self._overlap is None or self._overlap.item_id != ended.item_id):
            return
        if self._ducked:
            await self._act(Signal.TURN_ENDED)
        if ended.was_announced:
            await self._announce()
            await self._emit(SpeechStopped(ended.item_id, ended.end_ms))
        self._overlap = None
        now = self._clock.now()
        self._turn += 1
        self._around.metrics.turns.inc()
        self._trace = TurnTrace(self._turn, ended.moment, spoken=True, after_barge_in=self._barged_in)
        self._trace.mark("turn_wait", now)
        self._trace.committed = now
        if self._barged_in and self._yielded_ms is not None:
            self._trace.figure("yield_ms", self._yielded_ms)
        self._barged_in, self._yielded_ms = False, None
        await self._commit_item(ended.item_id)
        detection = self._settings.turn_detection
        if not ended.by_hand and detection is not None and detection.create_response:
            await self._reply_to_turn()

    async def _commit_item(self, item_id: str) -> None:
        item = Message(item_id, "user", (AudioPart(),))
        self._waiting_words[item_id] = asyncio.get_running_loop().create_future()
        previous = self.conversation.add(Entry(item))
        await self._emit(AudioCommitted(item_id, previous))
        await self._emit(ItemAdded(item, previous))
        await self._emit(ItemDone(item, previous))

    async def _user_words(self, words: UserWords) -> None:
        future = self._waiting_words.pop(words.item_id, None)
        if future is None:
            return
        if self._trace is not None:
            self._trace.mark("transcribe", self._clock.now())
        if words.item_id in self.conversation:
            entry = self.conversation.entry(words.item_id)
            assert isinstance(entry.item, Message)
            item = replace(entry.item, content=(AudioPart(words.text),))
            self.conversation.put(replace(entry, item=item))
            if words.failed is not None:
                await self._emit(TranscriptFailed(words.item_id, 0, "transcription_failed", words.failed))
            else:
                if words.text:
                    await self._emit(TranscriptDelta(words.item_id, 0, words.text))
                await self._emit(TranscriptCompleted(words.item_id, 0, words.text, words.seconds))
        if not future.done():
            future.set_result(None)

    async def _words_ready(self) -> None:
        """All committed sound has been written down."""
        while self._waiting_words:
            await asyncio.wait(list(self._waiting_words.values()))

    async def _complete(self, text: str) -> float | None:
        """For hearing: how complete these words sound as the next turn. Silent while a reply is being made."""
        if self._active is not None:
            return None
        prompt = self._prompt(self._settings, None)
        asked = replace(prompt, lines=(*prompt.lines, Line("user", text)))
        try:
            return await self._around.thinker.turn_end_probability(self.talk, asked)
        except EngineFailed:
            return None

    # ----------------------------------------------------------------------------------- replies

    async def _reply_to_turn(self) -> None:
        """The turn is over and a reply is due; behind a reply that nobody interrupted it waits."""
        if self._active is not None:
            self._reply_wanted = True
            return
        await self._start(ResponseParams())

    async def _create_response(self, command: CreateResponse) -> None:
        params = command.params
        if params.conversation == "none":
            if len(self._asides) >= ASIDES:
                raise PeerError(
                    "rate_limit_exceeded", f"{ASIDES} replies outside the conversation run already; wait for one"
                )
        elif self._active is not None:
            raise PeerError(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self._active.reply.id}. "
                "Wait until the response is finished before creating a new one.",
            )
        if params.conversation == "auto" and (self._trace is None or self._trace.closed):
            self._turn += 1
            self._trace = TurnTrace(self._turn, self._clock.now())
        await self._start(params)

    async def _start(self, params: ResponseParams, say: str | None = None) -> None:
        """Begin a reply. Raises PeerError, with nothing begun, for params that cannot be met."""
        self._stop_idle()
        settings = self._settings
        persona = self._persona(settings)
        aside = params.conversation == "none"
        if params.input is not None:
            entries_of(self.conversation, params.input)
        self._tools_for(settings, params)
        response_id = self._ids("resp")
        voice = params.voice or settings.voice or persona.voice
        limit = params.max_output_tokens or settings.max_output_tokens
        response = Response(
            response_id, "in_progress", params.modality or settings.modality, voice, not aside,
            max_output_tokens=limit, metadata=params.metadata,
        )  # fmt: skip
        sampling = persona.sampling
        order = ReplyOrder(
            talk=f"{self.talk}/{response_id}" if aside else self.talk,
            response=response, voice=voice, speed=settings.speed, paced=settings.paced,
            options=ThinkOptions(
                response_id, limit, sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed,
                tool_choice=params.tool_choice or settings.tool_choice,
            ),
            prompt=partial(self._prompt, settings, params),
            own_tools=self._own_tools(settings, params),
            say=say,
        )  # fmt: skip
        trace = self._trace
        if aside or trace is None or trace.closed:
            trace = TurnTrace(self._turn, self._clock.now())
        reply = Reply(
            order, self.conversation, self._around.thinker, self._around.speaker, self._clock, self._ids,
            self._emit, trace, self._words_ready,
        )  # fmt: skip
        await self._emit(ResponseCreated(response))
        await self._settled()
        active = _Active(reply)
        active.task = self._group.create_task(self._run_reply(reply))
        if aside:
            self._asides[response_id] = active
        else:
            self._active = active

    async def _run_reply(self, reply: Reply) -> None:
        failure = None
        try:
            await reply.run()
        except* EngineFailed as group:
            failure = str(group.exceptions[0])
            while isinstance(first := group.exceptions[0], BaseExceptionGroup):
                group = first
                failure = str(group.exceptions[0])
        await self._inbox.send(_ReplyOver(reply, failure))

    async def _reply_over(self, over: _ReplyOver) -> None:
        """A reply came to its own end, unless it was stopped in the meantime."""
        reply = over.reply
        if reply.in_conversation:
            if self._active is None or self._active.reply is not reply:
                return
            self._active = None
        elif self._asides.pop(reply.id, None) is None:
            return
        if over.failure is None:
            await self._finish(reply)
        else:
            await self._finish(reply, "failed", error=("server_error", over.failure))
        if reply.in_conversation and self._reply_wanted:
            self._reply_wanted = False
            await self._start(ResponseParams())

    async def _stop_reply(self, active: _Active, reason: str) -> None:
        """Cancel a reply: from this moment nothing of it goes out but its end."""
        active.task.cancel()
        reply = active.reply
        if reply.in_conversation:
            self._active = None
        else:
            self._asides.pop(reply.id, None)
        if reason == "turn_detected" and self._overlap is not None and reply.last_sent:
            self._yielded_ms = max(0.0, (self._clock.now() - self._overlap.moment) * 1000)
        await self._finish(reply, "cancelled", reason)
        await asyncio.wait([active.task])

    async def _finish(self, reply: Reply, *ending: Any, **kinds: Any) -> None:
        response = await reply.finish(*ending, **kinds)
        self._around.metrics.replies.labels(response.status).inc()
        timeline = reply.trace.timeline(reply.id)
        if reply.trace.closed:
            self._around.metrics.observe(timeline)
            if self._around.trace_log is not None:
                self._around.trace_log.write(timeline, {"talk": self.talk, "status": response.status})
        if not reply.in_conversation:
            self._group.create_task(self._forget(reply.order.talk))
            return
        self._last = reply
        if self._trace is reply.trace:
            self._trace = None
        for effect in reply.effects:
            await self._effect(effect.effect, effect.argument)
        self._start_idle(reply)

    async def _forget(self, talk: str) -> None:
        await self._around.thinker.forget(talk)
        await self._around.speaker.forget(talk)

    async def _cancel_response(self, command: CancelResponse) -> None:
        wanted = command.response_id
        running = [active for active in [self._active, *self._asides.values()] if active is not None]
        for active in running:
            if (wanted is None and active is self._active) or active.reply.id == wanted:
                if self._ducked and active is self._active:
                    await self._do(Action.STOP_PLAYER)
                await self._stop_reply(active, "client_cancelled")
                return
        raise PeerError("response_cancel_not_active", "Cancellation failed: no active response found")

    async def _say(self, text: str) -> None:
        if self._active is None and self._overlap is None:
            await self._start(ResponseParams(), say=text)

    # ---------------------------------------------------------------------------- what a reply sees

    def _persona(self, settings: Settings) -> Persona:
        known = self._around.personas
        return known.get(settings.persona) or known[DEFAULT]

    def _tools_for(self, settings: Settings, params: ResponseParams | None) -> tuple[ToolSpec, ...]:
        """The client's tools and the session's own, the client's winning where names meet."""
        asked = settings.tools if params is None or params.tools is None else params.tools
        names = {tool.name for tool in asked}
        own = self._own_tools(settings, params)
        both = (*asked, *(spec for spec in own.specs if spec.name not in names))
        choice = settings.tool_choice if params is None or params.tool_choice is None else params.tool_choice
        return choose_tools(both, choice)

    def _own_tools(self, settings: Settings, params: ResponseParams | None) -> ToolRegistry:
        if not settings.built_in_tools or (params is not None and params.conversation == "none"):
            return ToolRegistry()
        asked = settings.tools if params is None or params.tools is None else params.tools
        taken = {tool.name for tool in asked}
        allowed = self._persona(settings).tools
        return ToolRegistry(
            tool for tool in self._tools
            if tool.spec.name not in taken and (allowed is None or tool.spec.name in allowed)
        )  # fmt: skip

    def _prompt(self, settings: Settings, params: ResponseParams | None) -> Prompt:
        system = settings.instructions if settings.instructions is not None else self._persona(settings).instructions
        if params is not None and params.instructions is not None:
            system = params.instructions
        entries = list(self.conversation)
        if params is not None and params.input is not None:
            entries = entries_of(self.conversation, params.input)
        return build(system, self._tools_for(settings, params), entries)

    # ----------------------------------------------------------------------------- items and cuts

    async def _update(self, command: UpdateSettings) -> None:
        before = self._settings
        if command.settings.persona not in self._around.personas:
            raise PeerError(
                "invalid_value",
                f"there is no persona {command.settings.persona!r}; known: {', '.join(self._around.personas)}",
                "session.persona",
            )
        choose_tools((*command.settings.tools, *self._tools.specs), command.settings.tool_choice)
        self._settings = command.settings
        await self._emit(SettingsUpdated(self._settings))
        if self._active is None and self._prompt(before, None) != self._prompt(self._settings, None):
            self._settle_soon()

    async def _create_item(self, command: CreateItem) -> None:
        item = command.item
        if isinstance(item, Message) and item.role == "assistant":
            item = replace(item, content=tuple(TextPart(item_text(replace(item, content=(p,)))) for p in item.content))
        previous = self.conversation.add(Entry(item), command.after)
        await self._emit(ItemAdded(item, previous))
        await self._emit(ItemDone(item, previous))

    async def _delete_item(self, item_id: str) -> None:
        self.conversation.entry(item_id)
        if self._active is not None and item_id in self._active.reply.item_ids:
            await self._stop_reply(self._active, "client_cancelled")
        self.conversation.delete(item_id)
        await self._emit(ItemDeleted(item_id))
        if self._active is None:
            self._settle_soon()

    async def _truncate(self, command: TruncateItem) -> None:
        if command.item_id in self._cut_here:
            await self._emit(ItemTruncated(command.item_id, command.content_index, 0, ""))
            return
        self.conversation.entry(command.item_id)
        if self._active is not None and command.item_id in self._active.reply.item_ids:
            await self._stop_reply(self._active, "client_cancelled")
        cut = self.conversation.truncate(command.item_id, command.content_index, command.audio_end_ms)
        if self._last is not None and command.item_id in self._last.item_ids:
            self._last.play_end = min(self._last.play_end, self._clock.now())
        await self._emit(ItemTruncated(cut.item_id, command.content_index, cut.audio_end_ms, cut.transcript))
        if cut.changed and self._active is None:
            self._settle_soon()

    def _report_heard(self, report: ReportHeard) -> None:
        if report.played_ms <= self._heard_ms.get(report.item_id, 0.0):
            return
        if report.item_id not in self._heard_ms:
            for reply in (self._active.reply if self._active else None, self._last):
                if reply is not None and reply.item_ids[:1] == [report.item_id]:
                    reply.trace.played(self._clock.now() - report.played_ms / 1000)
        if report.item_id in self.conversation:
            self._heard_ms[report.item_id] = report.played_ms

    def heard_samples(self, item_id: str) -> int | None:
        """What the front last said it had played of an item, in samples of the reply; None: it never did."""
        played_ms = self._heard_ms.get(item_id)
        return None if played_ms is None else int(played_ms * REPLY_RATE / 1000)

    async def _undo(self, turns: int) -> None:
        if turns < 1:
            raise PeerError("invalid_value", f"undo takes 1 turn or more, not {turns}", "turns")
        if self._active is not None:
            await self._stop_reply(self._active, "client_cancelled")
        await self._drop(self.conversation.turns_back(turns))

    async def _rewind(self, command: Rewind) -> None:
        self.conversation.entry(command.item_id)
        if self._active is not None:
            await self._stop_reply(self._active, "client_cancelled")
        text = self.conversation.cut_to_words(command.item_id, command.words)
        await self._drop(self.conversation.after(command.item_id))
        pieces = self.conversation.entry(command.item_id).pieces
        if command.words is not None:
            end_ms = sum(piece.samples for piece in pieces) * 1000 // REPLY_RATE
            await self._emit(ItemTruncated(command.item_id, 0, end_ms, text))

    async def _drop(self, item_ids: tuple[str, ...]) -> None:
        """Take items out from the end backwards; a front may still report on them, which is no mistake of its."""
        for item_id in item_ids:
            if item_id in self.conversation:
                self.conversation.delete(item_id)
                self._cut_here.add(item_id)
                self._heard_ms.pop(item_id, None)
                await self._emit(ItemDeleted(item_id))
        self._settle_soon()

    async def _effect(self, effect: str | None, argument: str) -> None:
        """What a tool of our own wanted done to the talk, now that its reply is out."""
        if effect == "undo":
            await self._drop(self.conversation.turns_back(2))
        elif effect == "start_over":
            await self._drop(tuple(reversed([item.id for item in self.conversation.items])))
        elif effect == "switch_persona":
            with contextlib.suppress(PeerError):
                await self._switch_persona(argument)

    async def _switch_persona(self, name: str) -> None:
        begin = self._clock.now()
        persona = self._around.personas.get(name)
        if persona is None:
            raise PeerError(
                "invalid_value", f"there is no persona {name!r}; known: {', '.join(self._around.personas)}", "name"
            )
        if self._active is not None:
            await self._stop_reply(self._active, "client_cancelled")
        self._settings = replace(self._settings, persona=name, voice=None, instructions=None)
        await self._settled()
        await self._settle()
        await self._around.speaker.warm(persona.voice)
        await self._emit(PersonaSwitched(name, persona.voice, (self._clock.now() - begin) * 1000))

    # ------------------------------------------------------------------------------- engine state

    def _settle_soon(self) -> None:
        """Bring both engines in line with the talk while nobody waits for them."""
        before = self._settling

        async def chain() -> None:
            if before is not None:
                await asyncio.wait([before])
            await self._settle()

        self._settling = self._group.create_task(chain())

    async def _settled(self) -> None:
        if self._settling is not None:
            await asyncio.wait([self._settling])
            self._settling = None

    async def _settle(self) -> None:
        try:
            mind = await self._around.thinker.settle(self.talk, self._prompt(self._settings, None))
            voice = await self._around.speaker.settle(self.talk, self.conversation.uttered())
        except EngineFailed as error:
            await self._emit(Error("server_error", str(error), kind="server_error"))
            return
        await self._tell_settled("llm", mind)
        await self._tell_settled("tts", voice)

    async def _tell_settled(self, engine: Any, settled: Settled) -> None:
        if settled.what is not None:
            await self._emit(StateChanged(settled.what, engine, settled.position, settled.ms))

    # --------------------------------------------------------------------------------------- idle

    def _start_idle(self, reply: Reply) -> None:
        detection = self._settings.turn_detection
        if isinstance(detection, ServerVad) and detection.idle_timeout_ms is not None:
            self._stop_idle()
            end = max(reply.play_end, self._clock.now()) + detection.idle_timeout_ms / 1000
            self._idle = self._group.create_task(self._idle_until(end))

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _idle_until(self, moment: float) -> None:
        await self._clock.sleep_until(moment)
        await self._inbox.send(_IdleOver())

    async def _idle_over(self) -> None:
        self._idle = None
        if self._active is not None or self._overlap is not None:
            return
        item_id = self._ids("item")
        now_ms = self._hearing.input_ms
        await self._emit(IdleTimeout(item_id, now_ms, now_ms))
        item = Message(item_id, "user", (AudioPart(""),))
        previous = self.conversation.add(Entry(item))
        await self._emit(AudioCommitted(item_id, previous))
        await self._emit(ItemAdded(item, previous))
        await self._emit(ItemDone(item, previous))
        self._turn += 1
        self._trace = TurnTrace(self._turn, self._clock.now())
        await self._start(ResponseParams())


