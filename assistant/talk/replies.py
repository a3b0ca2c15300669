"""Replies begin, run beside the talk, and end: one at a time in the conversation, a few beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from assistant.base.errors import EngineFailed, PeerError
from assistant.base.tongues import is_english
from assistant.contracts import CANNOT_SEE, ReplyOptions
from assistant.events import Response, ResponseCreated, ResponseParams
from assistant.talk.candidates import Candidate, Candidates, first_failure
from assistant.talk.context import TalkContext
from assistant.talk.cover import SignOfLife
from assistant.talk.effects import ReleaseCandidate
from assistant.talk.idle import IdleTimer
from assistant.talk.messages import ReplyBegun, ReplyEnded, ReplyOver
from assistant.talk.order import Ending, ReplyOrder, several
from assistant.talk.outlet import Outlet
from assistant.talk.pending import PendingTranscripts
from assistant.talk.prompt import entries_of
from assistant.talk.reply import Reply
from assistant.talk.sync import StateSync
from assistant.talk.tool_effects import ToolEffects
from assistant.talk.turns import TurnTimes
from assistant.telemetry.trace import TurnTrace

ASIDES = 4
"""Side branches that may run at once."""


@dataclass(slots=True)
class Active:
    """A reply and the task it runs in."""

    reply: Reply
    task: asyncio.Task[None] = field(init=False)


class Replies:
    """Begins and stops replies, and reports both to turn-taking. The decisions are made elsewhere."""

    def __init__(
        self, context: TalkContext, state_sync: StateSync, turns: TurnTimes, idle: IdleTimer,
        words: PendingTranscripts, tool_effects: ToolEffects,
    ) -> None:  # fmt: skip
        self.active: Active | None = None
        self.last: Reply | None = None
        """The conversation's last reply that is over; it may still sound."""
        self._context, self._state_sync, self._turns = context, state_sync, turns
        self.idle, self._words, self._tool_effects = idle, words, tool_effects
        self.candidates = Candidates(context, state_sync, words, lambda: self._order(ResponseParams(), None))
        self._asides: dict[str, Active] = {}
        self._sign = SignOfLife(context)
        self._aside_talks: set[str] = set()
        """Talks of side branches that the engines still hold something of."""

    @property
    def _voices(self) -> list[Active]:
        """The replies that speak outside the conversation; of several answers to one turn each front plays one."""
        orders = [(aside, aside.reply.order.response) for aside in self._asides.values()]
        return [aside for aside, response in orders if response.modality == "audio" and response.answer is None]

    def running(self, response_id: str | None) -> Active | None:
        """The reply with this id; None: the conversation's own."""
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

    async def create(self, params: ResponseParams) -> None:
        """Begin a reply that the front asks for. Raises PeerError if it may not have one now."""
        spoken = (params.modality or self._context.settings.modality) == "audio"
        if params.conversation == "none":
            if spoken and (self.active is not None or self._voices):
                raise PeerError(
                    "conversation_already_has_active_response",
                    "A reply outside the conversation speaks where no other does. "
                    "Wait until the running response is finished, or ask for text.",
                )
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
        elif spoken and self._voices:
            raise PeerError(
                "conversation_already_has_active_response",
                f"A response outside the conversation speaks: {self._voices[0].reply.id}. "
                "Wait until it is finished, or cancel it.",
            )
        if params.answers > 1:
            self._check_answers(params)
        if params.conversation == "auto":
            self._turns.asked()
        if params.answers > 1:
            await self._start_several(params)
        else:
            await self.start(params)

    async def start(self, params: ResponseParams, say: str | None = None) -> None:
        """Begin a reply. Raises PeerError for params that cannot be met; then nothing has begun."""
        self.idle.stop()
        aside = params.conversation == "none"
        if not aside:
            await self.hush_asides()  # two voices at once are understood by nobody
        candidate = self.candidates.hand_over()
        order = self._order(params, say) if candidate is None else candidate.order
        trace = self._turns.trace(aside=aside)
        self.candidates.count_waste(trace)
        await self._begin(order, trace, candidate)

    async def _begin(self, order: ReplyOrder, trace: TurnTrace, candidate: Candidate | None = None) -> None:
        reply = Reply(order, self._context, Outlet(self._context, trace), self._words)
        await self._context.emit(ResponseCreated(order.response))
        await self._state_sync.wait()  # a rollback under way must not meet the reply in the engine
        active = Active(reply)
        active.task = self._context.group.create_task(self._run(active, candidate))
        if not reply.in_conversation:
            self._asides[reply.id] = active
            self._aside_talks.add(order.talk)
        else:
            self.active = active
            self._context.tell(ReplyBegun())
            self._sign.watch(lambda: active.reply)

    def _check_answers(self, params: ResponseParams) -> None:
        if params.conversation == "none" or params.input is not None:
            raise PeerError("invalid_value", "several answers continue the talk and cannot have an input of their own")
        if not self._context.services.engines.keep_capsules:
            raise PeerError("capsules_off", "several answers need the models' state, which a server does not share")
        if len(self._asides) + params.answers - 1 > ASIDES:
            raise PeerError(
                "rate_limit_exceeded", f"at most {ASIDES} replies run outside the conversation; wait for one of them"
            )

    async def _start_several(self, params: ResponseParams) -> None:
        """Begin several answers. Each equals, bit for bit, the one made alone: states are forked before any begins."""
        self.idle.stop()
        await self.candidates.drop_candidate()
        orders = several(self._order(params, None) for _ in range(params.answers))
        await self._state_sync.wait()
        for order in orders[1:]:
            self._aside_talks.add(order.talk)
            try:
                for engine in self._context.services.engines.stateful:
                    await engine.fork(self._context.talk, order.talk)
            except EngineFailed as error:
                raise PeerError("server_error", str(error)) from error
        trace = self._turns.trace(aside=False)
        self.candidates.count_waste(trace)
        for order in orders:
            main = order.response.in_conversation
            await self._begin(order, trace if main else self._turns.trace(aside=True))

    def _order(self, params: ResponseParams, say: str | None) -> ReplyOrder:
        settings, view = self._context.settings, self._context.view
        persona = view.persona(settings)
        aside = params.conversation == "none"
        if params.input is not None:
            entries_of(self._context.conversation, params.input)
        view.tools(settings, params)
        response_id = self._context.services.ids("resp")
        voice = params.voice or settings.voice or persona.voice
        limit = params.max_output_tokens or settings.max_output_tokens
        response = Response(
            response_id, "in_progress", params.modality or settings.modality, voice, not aside,
            max_output_tokens=limit, metadata=params.metadata,
        )  # fmt: skip
        sampling = persona.sampling
        return ReplyOrder(
            talk=f"{self._context.talk}/{response_id}" if aside else self._context.talk,
            response=response, voice=voice, speed=settings.speed, paced=settings.paced,
            options=ReplyOptions(
                response_id, limit, sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed,
                tool_choice=params.tool_choice or settings.tool_choice, english=is_english(self._context.language),
                cannot_see=self._context.phrase("cannot_see", CANNOT_SEE),
            ),
            prompt=partial(view.prompt, settings, params),
            own_tools=view.own_tools(settings, params),
            say=say,
        )  # fmt: skip

    async def _run(self, active: Active, candidate: Candidate | None) -> None:
        failure = None
        try:
            if candidate is not None and await self._released(active, candidate):
                failure = await candidate.task
            else:
                await active.reply.run()
        except* (EngineFailed, PeerError) as group:
            failure = first_failure(group)
        await self._context.inbox.send(ReplyOver(active.reply.id, failure))

    async def _released(self, active: Active, candidate: Candidate) -> bool:
        """Whether the reply was begun in private. If not, the candidate is dropped and the reply begins now."""
        released = False
        try:
            await self._words.ready()
            trace = active.reply.trace
            effects = self._context.tell(self.candidates.check_against_turn(candidate))
            if released := ReleaseCandidate() in effects:
                active.reply = candidate.reply
                await self.candidates.release_candidate(candidate, trace)
        finally:
            if not released:
                await self.candidates.drop_candidate(candidate)
        return released

    async def over(self, over: ReplyOver) -> bool:
        """Handle a reply that came to its own end, unless it was stopped meanwhile. True: it was the conversation's."""
        active = self.running(over.response_id)
        if active is None:
            return False
        reply = active.reply
        self._let_go(reply)
        match over.failure:
            case None:
                await self._finish(reply)
            case PeerError(code=code):
                await self._finish(reply, Ending("failed", None, code, str(over.failure)))
            case EngineFailed():
                await self._finish(reply, Ending("failed", None, "server_error", str(over.failure)))
        return reply.in_conversation

    async def stop(self, active: Active | None, reason: str) -> None:
        """Cancel a reply, if there is one: from this moment only its end goes out."""
        if active is None:
            return
        reply = active.reply
        # Stopped and cancelled before the first wait, so that nothing it was about to send comes behind its end. The
        # end is sent only after its task has ended: by then the engines have let go, so their work cannot meet another
        # reply, and the journal has every token of the words that are reported as said.
        reply.stop()
        active.task.cancel()
        self._let_go(reply)
        await asyncio.wait([active.task])
        await self._finish(reply, Ending("cancelled", reason))

    async def hush_asides(self) -> None:
        """Stop what speaks outside the conversation."""
        for aside in self._voices:
            await self.stop(aside, "turn_detected")

    def cover(self, words: str) -> None:
        """Say a phrase while the conversation's reply is silent."""
        if self.active is not None:
            self.active.reply.cover(words)

    def leave(self) -> Reply | None:
        """The front is gone: the running reply makes nothing more. Returns it, or the last one."""
        self._sign.stop()
        if self.active is not None:
            self.active.reply.stop()
            self.active.task.cancel()
        return next(self.latest(), None)

    def _let_go(self, reply: Reply) -> None:
        if reply.in_conversation:
            self.active = None
            self._sign.stop()
        else:
            self._asides.pop(reply.id, None)

    async def _finish(self, reply: Reply, ending: Ending | None = None) -> None:
        response = await reply.conclude(ending)
        services = self._context.services
        services.metrics.replies.labels(response.status).inc()
        timeline = reply.trace.timeline(reply.id)
        if reply.trace.closed:
            services.metrics.observe(timeline)
            if services.trace_log is not None:
                services.trace_log.write(timeline, {"talk": self._context.talk, "status": response.status})
        if not reply.in_conversation:
            self._context.group.create_task(self._forget(reply.order.talk))
            if self.active is None:
                self.idle.start(reply.lead.play_end)
            return
        self.last = reply
        self._context.tell(ReplyEnded(reply.lead.play_end))
        self._turns.ended(reply.trace)
        await self._tool_effects.do(reply.effects)
        self._state_sync.ahead()  # after the tools' changes, so that the talk is prepared as it is now
        self.idle.start(reply.lead.play_end)

    async def _forget(self, talk: str) -> None:
        for engine in self._context.services.engines.stateful:
            await engine.forget_talk(talk)
        self._aside_talks.discard(talk)

    async def close(self) -> None:
        """Let go of everything half done: nothing runs any more. The person was told that something is forgotten, so it
        is, even if their front left in the middle of the answer."""
        await self.candidates.close()
        if self.active is not None:
            await self._tool_effects.do([one for one in self.active.reply.effects if one.effect == "forget"])
        for talk in tuple(self._aside_talks):
            await self._forget(talk)
