"""Candidates: replies begun in private when the user may have finished, released once that is certain, else dropped.

`turn_taking` decides which of these happens; this file carries it out. There is at most one candidate per talk. It is
an ordinary `Reply` whose outlet holds everything back, made from a draft of the conversation that includes the guessed
words. A dropped candidate leaves no trace: everything it made goes with its outlet, and both models take its work back
(`Stateful`). If a model cannot do that, there are no candidates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from assistant.base.errors import EngineFailed, PeerError
from assistant.contracts import Prompt
from assistant.events import AudioPart, Message
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry
from assistant.talk.messages import CandidateChecked
from assistant.talk.order import ReplyOrder
from assistant.talk.outlet import Outlet
from assistant.talk.pending import PendingTranscripts
from assistant.talk.reply import Reply
from assistant.talk.sync import StateSync
from assistant.telemetry.trace import TurnTrace

Failure: TypeAlias = EngineFailed | PeerError


@dataclass(slots=True)
class Candidate:
    """A reply to words that may be the whole turn. `prompt` is None until it has begun."""

    item_id: str
    text: str
    order: ReplyOrder
    prompt: Prompt | None = None
    begun: float = 0.0
    outlet: Outlet = field(init=False)
    reply: Reply = field(init=False)
    task: asyncio.Task[Failure | None] = field(init=False)


class Candidates:
    """`order` makes the order of a reply from the current settings."""

    def __init__(
        self, context: TalkContext, state_sync: StateSync, words: PendingTranscripts, order: Callable[[], ReplyOrder]
    ) -> None:
        self._context, self._state_sync, self._words, self._order = context, state_sync, words, order
        self._engines = context.services.engines
        self._possible = context.services.candidates and self._engines.keep_capsules
        self._now: Candidate | None = None
        self._folding: asyncio.Task[None] | None = None
        self._folded = ""
        self._taking_back: set[asyncio.Task[None]] = set()
        self._dropped, self._wasted_ms = 0, 0.0
        self._trace: TurnTrace | None = None
        """The times of the turn that is over; None until it is."""

    def fold_words(self, text: str) -> None:
        """Let the model read words that will not change, while the user still speaks. The latest words win."""
        if self._possible and text != self._folded and not self._folds:
            self._folded = text
            prompt = self._context.view.said(self._context.settings, text)
            self._folding = self._context.group.create_task(self._fold(prompt))

    def look_ahead(self) -> None:
        """Let the model look at a picture that is in the talk, before the words to it have come."""
        if self._engines.llm.state is not None and self._now is None and not self._folds:
            prompt = self._context.view.prompt(self._context.settings)
            self._folding = self._context.group.create_task(self._fold(prompt))

    @property
    def _folds(self) -> bool:
        return self._folding is not None and not self._folding.done()

    async def _fold(self, prompt: Prompt) -> None:
        if (llm := self._engines.llm.state) is not None:
            with suppress(EngineFailed):  # the reply meets this failure too, and reports it
                await llm.fold_heard(self._context.talk, prompt)

    async def begin_candidate(self, item_id: str, text: str) -> None:
        """Answer these words in private."""
        if not self._possible:
            return
        if self._now is not None and (self._now.item_id, self._now.text) == (item_id, text):
            return
        await self.drop_candidate()
        if self._trace is not None:
            self._dropped, self._wasted_ms, self._trace = 0, 0.0, None
        candidate = self._now = Candidate(item_id, text, self._order())
        guessed = Entry(Message(item_id, "user", (AudioPart(text),)))
        candidate.task = self._context.group.create_task(self._make(candidate, guessed))

    async def _make(self, candidate: Candidate, guessed: Entry) -> Failure | None:
        """Make the reply to its end. A failure is reported later, once it is known whether anybody wanted the reply."""
        await self._state_sync.wait()
        if candidate.item_id in self._context.conversation:
            return None  # the turn is over, so the candidate never began
        private = TurnTrace(0, self._context.now())
        outlet = candidate.outlet = Outlet(self._context, private, guessed)
        candidate.reply = Reply(candidate.order, self._context, outlet, self._words)
        candidate.prompt, candidate.begun = candidate.order.prompt(outlet.conversation), self._context.now()
        for engine in self._engines.stateful:
            engine.guess(self._context.talk)
        failure = None
        try:
            await candidate.reply.run()
        except* (EngineFailed, PeerError) as group:
            failure = first_failure(group)
        return failure

    def hand_over(self) -> Candidate | None:
        """Return the candidate, if there is one, when the turn is over. The caller must release or drop it."""
        candidate, self._now, self._folded = self._now, None, ""
        return candidate

    def check_against_turn(self, candidate: Candidate) -> CandidateChecked:
        """Compare the candidate with the turn, now that the turn is written down."""
        failed = candidate.task.done() and candidate.task.result() is not None
        if candidate.prompt is None or failed:
            return CandidateChecked(fits=False)
        return CandidateChecked(fits=candidate.prompt == candidate.order.prompt(self._context.conversation))

    async def release_candidate(self, candidate: Candidate, trace: TurnTrace) -> None:
        """Make it the reply of the turn, timed by `trace`."""
        for engine in self._engines.stateful:
            engine.confirm(self._context.talk)
        ready, certain = candidate.outlet.ready, trace.committed
        trace.figure("candidate_begun_ms", (certain - candidate.begun) * 1000)
        if ready is not None:
            trace.figure("candidate_ready_ms", (certain - ready) * 1000)
        in_time = ready is not None and ready <= certain
        self._context.services.metrics.candidates.labels("released" if in_time else "late").inc()
        await candidate.outlet.release(trace)

    async def drop_candidate(self, candidate: Candidate | None = None) -> None:
        """Stop its work before returning, and have it taken back before the models do anything that is asked for later.
        With None, drop the candidate that was not handed over."""
        if candidate is None:
            candidate, self._now = self._now, None
        if candidate is None:
            return
        candidate.task.cancel()
        await asyncio.wait([candidate.task])
        if candidate.prompt is None:
            return
        self._dropped += 1
        self._note()
        self._context.services.metrics.candidates.labels("dropped").inc()
        for engine in self._engines.stateful:
            back = asyncio.ensure_future(self._take_back(engine.take_back(self._context.talk)))
            self._taking_back.add(back)
            back.add_done_callback(self._taking_back.discard)
        await asyncio.sleep(0)  # both have asked by then, so nothing that is asked for later comes before them

    async def _take_back(self, dropping: Coroutine[None, None, float]) -> None:
        try:
            wasted_ms = await dropping
        except EngineFailed:  # the state is lost with it, and is rebuilt from what was said
            return
        self._context.services.metrics.wasted_ms.inc(wasted_ms)
        self._wasted_ms += wasted_ms
        self._note()

    def count_waste(self, trace: TurnTrace) -> None:
        """Count wasted work in this turn's times, including what becomes known of it later."""
        self._trace = trace
        self._note()

    def _note(self) -> None:
        if self._trace is not None and self._dropped:
            self._trace.figure("candidates_dropped", self._dropped)
            self._trace.figure("wasted_ms", self._wasted_ms)

    async def close(self) -> None:
        """Remove every trace of a candidate from the models' state, which is stored now."""
        await self.drop_candidate()
        if self._taking_back:
            await asyncio.wait(self._taking_back)


def first_failure(group: ExceptionGroup[Failure]) -> Failure:
    """The first failure, however deep in groups it lies."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, EngineFailed | PeerError)
    return error
