"""Replies begin, run beside the talk, and end: one at a time in the conversation, a few beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from assistant.base.errors import EngineFailed, PeerError
from assistant.contracts import ReplyOptions
from assistant.events import Response, ResponseCreated, ResponseParams
from assistant.talk.context import TalkContext
from assistant.talk.idle import IdleTimer
from assistant.talk.order import ReplyOrder
from assistant.talk.prompt import entries_of
from assistant.talk.reply import Reply
from assistant.talk.sync import StateSync
from assistant.talk.turns import TurnTimes
from assistant.talk.view import ReplyView

ASIDES = 4
"""Side branches that may run at once."""


@dataclass(frozen=True, slots=True)
class ReplyOver:
    """A reply's task has ended by itself."""

    reply: Reply
    failure: EngineFailed | PeerError | None


@dataclass(slots=True)
class Active:
    """A reply and the task it runs in."""

    reply: Reply
    task: asyncio.Task[None] = field(init=False)


class Replies:
    """`words_ready` waits for the user's words; `tell` hears of a reply that ended by itself; `effects` does what
    the tools of a reply wanted done to the talk, once its end was told to the front."""

    def __init__(
        self,
        shared: TalkContext,
        view: ReplyView,
        state_sync: StateSync,
        turns: TurnTimes,
        idle: IdleTimer,
        words_ready: Callable[[], Awaitable[None]],
        tell: Callable[[ReplyOver], Awaitable[None]],
        effects: Callable[[Reply], Awaitable[None]],
    ) -> None:
        self.active: Active | None = None
        self.last: Reply | None = None
        """The last reply of the conversation that is over; it may still sound."""
        self._shared, self._view, self._state_sync, self._turns = shared, view, state_sync, turns
        self._idle, self._words_ready, self._tell, self._effects = idle, words_ready, tell, effects
        self._asides: dict[str, Active] = {}
        self._aside_talks: set[str] = set()
        self._wanted = False

    def running(self, response_id: str | None) -> Active | None:
        """The reply of this id; None: the conversation's own."""
        if response_id is None:
            return self.active
        everyone = (self.active, *self._asides.values())
        return next((one for one in everyone if one is not None and one.reply.id == response_id), None)

    def latest(self) -> Iterator[Reply]:
        """The reply that runs in the conversation, then the last one that did."""
        if self.active is not None:
            yield self.active.reply
        if self.last is not None:
            yield self.last

    def makes(self, item_id: str) -> bool:
        """Whether the running reply of the conversation made this item."""
        return self.active is not None and item_id in self.active.reply.item_ids

    async def to_turn(self) -> None:
        """A turn is over and a reply is due; behind a reply that nobody interrupted it waits."""
        if self.active is not None:
            self._wanted = True
            return
        await self.start(ResponseParams())

    async def create(self, params: ResponseParams) -> None:
        """The front asks for a reply. Raises PeerError where it may have none now."""
        if params.conversation == "none":
            if len(self._asides) >= ASIDES:
                raise PeerError(
                    "rate_limit_exceeded", f"{ASIDES} replies outside the conversation run already; wait for one"
                )
        elif self.active is not None:
            raise PeerError(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self.active.reply.id}. "
                "Wait until the response is finished before creating a new one.",
            )
        if params.conversation == "auto":
            self._turns.asked()
        await self.start(params)

    async def start(self, params: ResponseParams, say: str | None = None) -> None:
        """Begin a reply. Raises PeerError, with nothing begun, for params that cannot be met."""
        self._idle.stop()
        around = self._shared.around
        aside = params.conversation == "none"
        order = self._order(params, say)
        reply = Reply(
            order, self._shared.conversation, around.llm, around.tts, around.clock, around.ids,
            self._shared.emit, self._turns.trace(aside=aside), self._words_ready,
        )  # fmt: skip
        await self._shared.emit(ResponseCreated(order.response))
        await self._state_sync.wait()
        active = Active(reply)
        active.task = self._shared.group.create_task(self._run(reply))
        if aside:
            self._asides[reply.id] = active
            self._aside_talks.add(order.talk)
        else:
            self.active = active
            self._wanted = False

    def _order(self, params: ResponseParams, say: str | None) -> ReplyOrder:
        settings = self._shared.settings
        persona = self._view.persona(settings)
        aside = params.conversation == "none"
        if params.input is not None:
            entries_of(self._shared.conversation, params.input)
        self._view.tools(settings, params)
        response_id = self._shared.around.ids("resp")
        voice = params.voice or settings.voice or persona.voice
        limit = params.max_output_tokens or settings.max_output_tokens
        response = Response(
            response_id, "in_progress", params.modality or settings.modality, voice, not aside,
            max_output_tokens=limit, metadata=params.metadata,
        )  # fmt: skip
        sampling = persona.sampling
        return ReplyOrder(
            talk=f"{self._shared.talk}/{response_id}" if aside else self._shared.talk,
            response=response, voice=voice, speed=settings.speed, paced=settings.paced,
            options=ReplyOptions(
                response_id, limit, sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed,
                tool_choice=params.tool_choice or settings.tool_choice,
            ),
            prompt=partial(self._view.prompt, settings, params),
            own_tools=self._view.own_tools(settings, params),
            say=say,
        )  # fmt: skip

    async def _run(self, reply: Reply) -> None:
        failure = None
        try:
            await reply.run()
        except* (EngineFailed, PeerError) as group:
            failure = _first(group)
        await self._tell(ReplyOver(reply, failure))

    async def over(self, over: ReplyOver) -> None:
        """A reply came to its own end, unless it was stopped in the meantime."""
        reply = over.reply
        if reply.in_conversation:
            if self.active is None or self.active.reply is not reply:
                return
            self.active = None
        elif self._asides.pop(reply.id, None) is None:
            return
        match over.failure:
            case None:
                await self._finish(reply)
            case PeerError(code=code):
                await self._finish(reply, "failed", error=(code, str(over.failure)))
            case EngineFailed():
                await self._finish(reply, "failed", error=("server_error", str(over.failure)))
        if reply.in_conversation:
            await self.due()

    async def due(self) -> None:
        """A turn was over while a reply ran that has ended now: answer it."""
        if self._wanted:
            await self.start(ResponseParams())

    async def stop(self, active: Active | None, reason: str) -> None:
        """Cancel a reply, if there is one: from this moment nothing of it goes out but its end."""
        if active is None:
            return
        reply = active.reply
        reply.stop()
        active.task.cancel()
        if reply.in_conversation:
            self.active = None
        else:
            self._asides.pop(reply.id, None)
        await self._finish(reply, "cancelled", reason)
        await asyncio.wait([active.task])

    async def _finish(self, reply: Reply, *ending: Any, **kinds: Any) -> None:
        response = await reply.finish(*ending, **kinds)
        around = self._shared.around
        around.metrics.replies.labels(response.status).inc()
        timeline = reply.trace.timeline(reply.id)
        if reply.trace.closed:
            around.metrics.observe(timeline)
            if around.trace_log is not None:
                around.trace_log.write(timeline, {"talk": self._shared.talk, "status": response.status})
        if not reply.in_conversation:
            self._shared.group.create_task(self._forget(reply.order.talk))
            return
        self.last = reply
        self._turns.ended(reply.trace)
        await self._effects(reply)
        self._state_sync.ahead()
        self._idle.start(reply.play_end)

    async def _forget(self, talk: str) -> None:
        await self._shared.around.llm.forget(talk)
        await self._shared.around.tts.forget(talk)
        self._aside_talks.discard(talk)

    async def close(self) -> None:
        """Nothing runs any more: what was left half done is let go."""
        for talk in tuple(self._aside_talks):
            await self._forget(talk)


def _first(group: ExceptionGroup[EngineFailed | PeerError]) -> EngineFailed | PeerError:
    """The first failure, however deep in groups it lies."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, EngineFailed | PeerError)
    return error
