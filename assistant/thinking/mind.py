"""The local language model behind the Thinker contract: prompts to steps, and steps to state.

The engine holds one sequence; a talk that is not the present owner has its state in a capsule, or none any more: then
it is rebuilt from its tokens. All engine calls run on the cohost's thread, one replay per step. What a talk wants is
always said as a whole prompt; `Tape.plan` finds how little there is to do, so an undo, a cut and a next turn are one
code path.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path

from assistant.cohost import Cohost, Work
from assistant.engines import (
    Cost,
    Line,
    Prompt,
    PromptReady,
    ReplyEnd,
    Settled,
    ThinkOptions,
    ThinkPiece,
)
from assistant.errors import EngineFailed
from assistant.schedule import Lane
from assistant.thinking.language import Language
from assistant.thinking.state import TalkState
from assistant.thinking.tape import Step, Tape, wanted_steps
from assistant.thinking.writing import Writing
from capsules.errors import CapsuleError, CapsuleTooLarge
from capsules.prefix import Realm
from capsules.registry import Registry
from llm_engine import HybridLLM, Sampling
from llm_engine.schedule import chunks

REPLY_ROOM = 256
"""Positions that a prompt leaves free for the reply."""
RESTING = 64
"""Talks without a front whose tokens stay in memory."""
KEPT_SHARE = 0.6
"""Of the context, after the oldest turns had to go: far below full, so that it happens seldom."""


class LocalThinker:
    """`folder` keeps parked talks over a restart; None keeps them in memory only."""

    capsules = True

    def __init__(
        self,
        cohost: Cohost,
        llm: HybridLLM,
        language: Language,
        registry: Registry,
        name: str,
        *,
        sampling: Sampling,
        folder: Path | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._cohost, self._llm, self._language, self._registry = cohost, llm, language, registry
        self._sampling, self._folder, self._now = sampling, folder, now
        self._realm = Realm(name, precision=llm.fingerprint.digest)
        self._talks: dict[str, TalkState] = {}
        self._owner: str | None = None
        self._resting: dict[str, None] = {}

    # --------------------------------------------------------------------------------- the contract

    async def reply(self, talk: str, prompt: Prompt, options: ThinkOptions) -> AsyncGenerator[ThinkPiece, None]:
        def work() -> Work[ThinkPiece]:
            return self._guarded(talk, self._reply(talk, prompt, options))

        made: AsyncGenerator[ThinkPiece, None] = self._cohost.each(Lane.THINK, work)
        async with aclosing(made) as pieces:
            async for piece in pieces:
                yield piece

    async def settle(self, talk: str, prompt: Prompt) -> Settled:
        return await self._cohost.call(Lane.THINK, lambda: self._settle(talk, prompt))

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        if self._cohost.waiting:
            return None
        return await self._cohost.call(Lane.THINK, lambda: self._turn_end(talk, prompt), idle_work=True)

    async def warm(self, prompt: Prompt) -> Settled:
        return await self._cohost.call(Lane.THINK, lambda: self._warm(prompt))

    async def park(self, talk: str) -> None:
        await self._cohost.call(Lane.THINK, lambda: self._park(talk))

    async def forget(self, talk: str) -> None:
        await self._cohost.call(Lane.THINK, lambda: self._forget(talk))

    # ------------------------------------------------------------------------ on the cohost's thread

    def _guarded(self, talk: str, work: Work[ThinkPiece]) -> Work[ThinkPiece]:
        """Whatever broke in the middle may have left the state between two boundaries: begin from the tokens again."""
        try:
            yield from work
        except Exception:
            if talk in self._talks:
                self._talks[talk].tape = Tape()
            self._owner = None
            raise

    def _reply(self, talk: str, prompt: Prompt, options: ThinkOptions) -> Work[ThinkPiece]:
        begin = self._now()
        state = self._own(talk)
        owned = self._now()
        wanted = self._fitting(state, prompt)
        kept, what = self._back_to(state, wanted)
        rolled = self._now()
        yield from self._fold(state, wanted, kept)
        total = state.tape.position
        costs: tuple[Cost, ...] = (
            Cost("restore", (owned - begin) * 1000),
            Cost("rollback" if what == "rollback" else "plan", (rolled - owned) * 1000),
            Cost("prefill", (self._now() - rolled) * 1000),
        )
        yield PromptReady(total, kept, costs)
        begin = self._now()
        self._llm.set_sampling(self._sampling_for(options))
        writing = Writing(self._llm, self._language, state, prompt, options)
        yield from writing.steps()
        cost = Cost("decode", (self._now() - begin) * 1000)
        yield ReplyEnd(writing.reason, writing.tokens, (cost,))

    def _sampling_for(self, options: ThinkOptions) -> Sampling:
        asked = {
            name: value
            for name in ("temperature", "top_k", "top_p", "seed")
            if (value := getattr(options, name)) is not None
        }
        return replace(self._sampling, **asked)

    def _settle(self, talk: str, prompt: Prompt) -> Settled:
        """Roll back what is no longer so. Nothing is appended: one append per turn keeps the folding the same."""
        state = self._talks.get(talk)
        if state is None:
            return Settled(None, 0, 0.0)
        begin = self._now()
        wanted = self._wanted(state, prompt, open_reply=False)
        plan = state.tape.plan(wanted)
        if plan.keep >= state.tape.position:
            return Settled(None, plan.keep, 0.0)
        self._own(talk)
        kept, what = self._back_to(state, wanted)
        ms = (self._now() - begin) * 1000
        return Settled("rollback" if what == "rollback" else "rebuild", kept, ms)

    def _turn_end(self, talk: str, prompt: Prompt) -> float | None:
        """Only from a state that is there already: this must cost less than it saves."""
        if self._owner not in (None, talk):
            return None
        before = replace(prompt, lines=prompt.lines[:-1])
        state = self._own(talk)
        wanted = self._wanted(state, before, open_reply=False)
        plan = state.tape.plan(wanted)
        if plan.keep < state.tape.position or len(plan.steps) > 1 or any(step.written for step in plan.steps):
            return None
        self._back_to(state, wanted)
        for step in state.tape.plan(wanted).steps:
            self._append(state, step.ids)
        if not state.tape.position:
            return None
        layout, encode = self._language.layout, self._language.encode
        asked = prompt.lines[-1]
        tail = layout.closing if before.lines and before.lines[-1].role == "assistant" else ""
        words = layout.turn(Line("user", asked.text)).removesuffix(layout.user_tail)
        ids = encode(tail + words)
        if self._llm.position + len(ids) >= self._llm.max_positions:
            return None
        return self._llm.turn_end_probability(ids)

    def _warm(self, prompt: Prompt) -> Settled:
        """A persona's capsule: from the registry (disk included), else folded now, pinned and saved."""
        begin = self._now()
        ids = tuple(self._language.encode(self._language.layout.system(prompt.system, prompt.tools)))
        if not ids:
            return Settled(None, 0, 0.0)
        self._release()
        plan, capsule = self._registry.reenter(self._realm, ids, fingerprint=self._llm.fingerprint)
        if capsule is not None and plan.position == len(ids):
            self._llm.restore(capsule)
            self._registry.pin(plan.key)
            return Settled("restore", len(ids), (self._now() - begin) * 1000)
        self._llm.reset()
        self._llm.append(ids)
        capsule = self._llm.snapshot(name="persona")
        self._registry.put(capsule, self._realm, pin=True, save=True)
        return Settled("rebuild", len(ids), (self._now() - begin) * 1000)

    # ------------------------------------------------------------------------------- who has the engine

    def _own(self, talk: str) -> TalkState:
        """Make the engine's state this talk's, as its tape says."""
        state = self._talks.get(talk)
        if state is not None and self._owner == talk:
            return state
        self._release()
        self._resting.pop(talk, None)
        if state is None:
            state = self._talks[talk] = self._unparked(talk) or TalkState()
        self._owner = talk
        if state.key is not None and state.tape.position:
            try:
                capsule = self._registry.get(state.key, self._llm.fingerprint)
            except CapsuleError:
                capsule = None
            self._registry.remove(state.key)
            state.key = None
            if capsule is not None and capsule.tokens == state.tape.ids:
                self._llm.restore(capsule)
                self._llm.hold(state.point)
                state.point = None
                return state
        self._llm.reset()
        state.tape, state.point = Tape(), None
        return state

    def _release(self) -> None:
        """The present owner's state moves into a capsule; too big to keep means to be rebuilt later."""
        owner = self._talks.get(self._owner) if self._owner is not None else None
        if owner is not None and owner.tape.position:
            owner.point = self._llm.checkpoint_before(owner.tape.before_reply())
            with suppress(CapsuleTooLarge):
                capsule = self._llm.snapshot(name=self._owner or "")
                owner.key = self._registry.put(capsule, self._realm, name=f"talk/{self._owner}")
        self._owner = None

    def _forget(self, talk: str) -> None:
        self._resting.pop(talk, None)
        state = self._talks.pop(talk, None)
        if state is not None and state.key is not None:
            self._registry.remove(state.key)
        if self._owner == talk:
            self._owner = None

    def _park(self, talk: str) -> None:
        """Snapshot, save, and let go; what is written down beside it finds the tokens again."""
        state = self._talks.get(talk)
        if state is None:
            return
        if self._owner == talk:
            self._release()
        state.point = None
        self._resting[talk] = None
        while len(self._resting) > RESTING:
            self._forget(next(iter(self._resting)))
        if self._folder is None or state.key is None or not self._registry.save(state.key):
            return
        if state.write(self._folder, talk):
            del self._talks[talk], self._resting[talk]

    def _unparked(self, talk: str) -> TalkState | None:
        return None if self._folder is None else TalkState.take(self._folder, talk)

    # ------------------------------------------------------------------------------ from tape to state

    def _wanted(self, state: TalkState, prompt: Prompt, open_reply: bool) -> list[Step]:
        shown = replace(prompt, lines=prompt.lines[state.dropped :])
        language = self._language
        return wanted_steps(shown, language.layout, language.encode, state.written.get, open_reply=open_reply)

    def _fitting(self, state: TalkState, prompt: Prompt) -> list[Step]:
        """The steps of as much of the prompt as the context holds, the oldest turns going first and many at once."""
        if state.dropped >= len(prompt.lines):
            state.dropped = 0
        wanted = self._wanted(state, prompt, open_reply=True)
        limit = self._llm.max_positions - REPLY_ROOM
        if _length(wanted) <= limit:
            return wanted
        while state.dropped < len(prompt.lines) - 1:
            state.dropped += 1
            if prompt.lines[state.dropped].role != "user":
                continue
            wanted = self._wanted(state, prompt, open_reply=True)
            if _length(wanted) <= limit * KEPT_SHARE:
                return wanted
        if _length(wanted) <= limit:
            return wanted
        raise EngineFailed(
            f"the last message takes {_length(wanted)} tokens, this model holds {limit} beside its reply; "
            "say less at once or start with a larger --max-positions"
        )

    def _back_to(self, state: TalkState, wanted: list[Step]) -> tuple[int, str | None]:
        """Roll back to where the tape leaves what is wanted; a stored capsule may be nearer than nothing."""
        plan = state.tape.plan(wanted)
        if plan.keep == 0 and wanted and (base := self._restored(state, wanted)):
            return base, "restore"
        if plan.keep == state.tape.position:
            return plan.keep, None
        if plan.keep == 0:
            self._llm.reset()
            state.tape = Tape()
            return 0, "rebuild"
        self._llm.rollback(plan.keep)
        state.tape.keep(plan.keep)
        return plan.keep, "rollback"

    def _restored(self, state: TalkState, wanted: list[Step]) -> int:
        """Start from a persona's capsule. Returns its position, 0 if there is none."""
        system = wanted[0]
        plan, capsule = self._registry.reenter(self._realm, system.ids, fingerprint=self._llm.fingerprint)
        if capsule is None or plan.position != len(system.ids):
            return 0
        self._llm.restore(capsule)
        state.tape = Tape([system])
        return plan.position

    def _fold(self, state: TalkState, wanted: list[Step], kept: int) -> Work[ThinkPiece]:
        """Append what is missing, one chunk of the prefill grid per step."""
        for step in state.tape.plan(wanted).steps:
            yield from self._append_by_chunk(state, step.ids)

    def _append_by_chunk(self, state: TalkState, ids: Sequence[int]) -> Work[ThinkPiece]:
        done = 0
        try:
            for chunk in chunks(self._llm.position, len(ids)):
                self._llm.append(ids[done : done + chunk.count])
                done += chunk.count
                yield None
        finally:
            if done:
                state.tape.appended(ids[:done])

    def _append(self, state: TalkState, ids: Sequence[int]) -> None:
        for _ in self._append_by_chunk(state, ids):
            pass


def _length(steps: Sequence[Step]) -> int:
    return sum(len(step.ids) for step in steps)
