"""The local language model behind the LLM contract: prompts to steps, and steps to state.

All engine calls run on the engines' thread, one replay per step; between two steps another talk may have the engine.
What a talk wants is always said as a whole prompt; `TokenLog.plan` finds how little there is to do, so an undo, a cut
and a next turn are one code path.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from assistant.contracts import (
    Cost,
    Line,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    ReplyPiece,
    Synced,
)
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread, Job, Work
from assistant.llm.decoding import Writing
from assistant.llm.language import Language
from assistant.llm.lease import LLMLease
from assistant.llm.talk_state import TalkState
from assistant.llm.token_log import FoldStep, TokenLog
from assistant.llm.window import ContextWindow
from capsules.prefix import Realm
from capsules.registry import Registry
from llm_engine import HybridLLM, Sampling

T = TypeVar("T")


class LocalLLM:
    """`folder` keeps parked talks over a restart; None keeps them in memory only."""

    capsules = True

    def __init__(
        self,
        engine_thread: EngineThread,
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
        self._engine_thread, self._llm, self._language, self._registry = engine_thread, llm, language, registry
        self._sampling, self._now = sampling, now
        self._realm = Realm(name, precision=llm.fingerprint.digest)
        self._held = LLMLease(llm, registry, self._realm, folder)
        self._window = ContextWindow(language, llm.max_positions)
        self._preparing: dict[str, Job[None]] = {}

    # --------------------------------------------------------------------------------- the contract

    @property
    def limited(self) -> bool:
        return self._language.limited

    async def reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        def work() -> Work[ReplyPiece]:
            return self._guarded(talk, self._reply(talk, prompt, options))

        self._interrupt(talk)
        made: AsyncGenerator[ReplyPiece, None] = self._engine_thread.each(EngineKind.LLM, work, talk=talk)
        async with aclosing(made) as pieces:
            async for piece in pieces:
                yield piece

    async def prepare(self, talk: str, prompt: Prompt) -> None:
        def work() -> Work[None]:
            return self._guarded(_ahead(talk), self._prepare(talk, prompt))

        self._interrupt(talk)
        job: Job[None]
        async with self._engine_thread.job(EngineKind.LLM, work, talk=_ahead(talk), idle_work=True) as job:
            self._preparing[talk] = job
            async for _ in job.results():
                pass

    async def sync(self, talk: str, prompt: Prompt) -> Synced:
        return await self._call(talk, lambda: self._whole(talk, lambda: self._sync(talk, prompt)))

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        if self._engine_thread.waiting:
            return None

        def work() -> float | None:
            return self._whole(talk, lambda: self._turn_end(talk, prompt))

        return await self._engine_thread.call(EngineKind.LLM, work, talk=talk, idle_work=True)

    async def warm(self, prompt: Prompt) -> Synced:
        return await self._engine_thread.call(EngineKind.LLM, lambda: self._warm(prompt))

    async def park(self, talk: str) -> None:
        def park() -> None:
            self._held.forget(_ahead(talk))
            self._held.park(talk)

        await self._call(talk, park)

    async def forget(self, talk: str) -> None:
        def forget() -> None:
            self._held.forget(_ahead(talk))
            self._held.forget(talk)

        await self._call(talk, forget)

    async def _call(self, talk: str, work: Callable[[], T]) -> T:
        self._interrupt(talk)
        return await self._engine_thread.call(EngineKind.LLM, work, talk=talk)

    def _interrupt(self, talk: str) -> None:
        """Somebody waits: what is done ahead of time stops before its next step, and what it did stays."""
        if (job := self._preparing.pop(talk, None)) is not None:
            self._engine_thread.cancel(job)

    # ------------------------------------------------------------------------ on the engines' thread

    def _whole(self, talk: str, work: Callable[[], T]) -> T:
        """One step, after which the state is at a boundary or begins from the tokens again."""
        try:
            return work()
        except Exception:
            self._held.lose(talk)
            raise

    def _guarded(self, talk: str, work: Work[T]) -> Work[T]:
        """The same of many steps; the engine is this talk's at each."""
        with closing(work):
            try:
                for made in work:
                    yield made
                    self._held.back(talk)
            except Exception:
                self._held.lose(talk)
                raise

    def _reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> Work[ReplyPiece]:
        begin = self._now()
        wanted = self._fitting(talk, prompt)
        state = self._held.own(talk)
        owned = self._now()
        kept, what = self._back_to(state, wanted)
        rolled = self._now()
        yield from self._held.fold(state, state.tape.plan(wanted))
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

    def _sampling_for(self, options: ReplyOptions) -> Sampling:
        asked = {
            name: value
            for name in ("temperature", "top_k", "top_p", "seed")
            if (value := getattr(options, name)) is not None
        }
        return replace(self._sampling, **asked)

    def _sync(self, talk: str, prompt: Prompt) -> Synced:
        """Roll back what is no longer so. Nothing is appended: one append per turn keeps the folding the same."""
        state = self._held.find(talk)
        if state is None:
            return Synced(None, 0, 0.0)
        begin = self._now()
        wanted = self._window.steps(state, prompt, open_reply=False)
        plan = state.tape.plan(wanted)
        if plan.keep >= state.tape.position:
            return Synced(None, plan.keep, 0.0)
        self._held.own(talk)
        kept, what = self._back_to(state, wanted)
        ms = (self._now() - begin) * 1000
        return Synced("rollback" if what == "rollback" else "rebuild", kept, ms)

    def _turn_end(self, talk: str, prompt: Prompt) -> float | None:
        """Only from a state that is there already: this must cost less than it saves."""
        if self._held.owner not in (None, talk):
            return None
        before = replace(prompt, lines=prompt.lines[:-1])
        state = self._held.own(talk)
        wanted = self._window.steps(state, before, open_reply=False)
        plan = state.tape.plan(wanted)
        if plan.keep < state.tape.position or len(plan.steps) > 1 or any(step.written for step in plan.steps):
            return None
        self._back_to(state, wanted)
        for _ in self._held.fold(state, state.tape.plan(wanted)):
            pass
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

    def _warm(self, prompt: Prompt) -> Synced:
        """A persona's capsule: from the registry (disk included), else folded now, pinned and saved."""
        begin = self._now()
        ids = tuple(self._language.encode(self._language.layout.system(prompt.system, prompt.tools)))
        if not ids:
            return Synced(None, 0, 0.0)
        self._held.release()
        plan, capsule = self._registry.reenter(self._realm, ids, fingerprint=self._llm.fingerprint)
        if capsule is not None and plan.position == len(ids):
            self._llm.restore(capsule)
            self._registry.pin(plan.key)
            return Synced("restore", len(ids), (self._now() - begin) * 1000)
        self._llm.reset()
        self._llm.append(ids)
        capsule = self._llm.snapshot(name="persona")
        self._registry.put(capsule, self._realm, pin=True, save=True)
        return Synced("rebuild", len(ids), (self._now() - begin) * 1000)

    # ------------------------------------------------------------------------------ from tape to state

    def _fitting(self, talk: str, prompt: Prompt) -> list[FoldStep]:
        """The steps of as much of the prompt as finds room. Where not all does, the talk goes on with what was folded
        ahead of time, even if that is only begun; else its oldest turns go now."""
        state = self._known(talk, prompt)
        wanted = self._window.steps(state, prompt, open_reply=True)
        if self._window.holds(wanted):
            return wanted
        if (ahead := self._held.find(_ahead(talk))) is not None:
            wanted = self._window.steps(ahead, prompt, open_reply=True)
            state = self._held.inherit(talk, _ahead(talk))
        if not self._window.holds(wanted):
            wanted = self._window.shorten(state, prompt)
        self._window.forget(state, prompt)
        return wanted

    def _prepare(self, talk: str, prompt: Prompt) -> Work[None]:
        """Fold the shortened talk beside the present one, which is whole until that is done."""
        state = self._known(talk, prompt)
        if not self._window.crowded(state, prompt):
            self._held.forget(_ahead(talk))
            return
        ahead = self._held.find(_ahead(talk))
        if ahead is None or self._window.crowded(ahead, prompt):
            self._held.forget(_ahead(talk))
            ahead = self._held.begin(_ahead(talk))
            ahead.written, ahead.dropped = state.written, state.dropped
            self._window.shorten(ahead, prompt)
        self._held.own(_ahead(talk))
        wanted = self._window.steps(ahead, prompt, open_reply=False)
        self._back_to(ahead, wanted)
        yield from self._held.fold(ahead, ahead.tape.plan(wanted))
        self._window.forget(self._held.inherit(talk, _ahead(talk)), prompt)

    def _known(self, talk: str, prompt: Prompt) -> TalkState:
        """What is known of a talk; one that was begun anew shows all its lines again."""
        state = self._held.begin(talk)
        if state.dropped >= len(prompt.lines):
            state.dropped = 0
        return state

    def _back_to(self, state: TalkState, wanted: list[FoldStep]) -> tuple[int, str | None]:
        """Roll back to where the tape leaves what is wanted; a stored capsule may be nearer than nothing."""
        plan = state.tape.plan(wanted)
        if plan.keep == 0 and wanted and (base := self._restored(state, wanted)):
            return base, "restore"
        if plan.keep == state.tape.position:
            return plan.keep, None
        if plan.keep == 0:
            self._held.rebuild(state)
            return 0, "rebuild"
        self._llm.rollback(plan.keep)
        state.tape.keep(plan.keep)
        return plan.keep, "rollback"

    def _restored(self, state: TalkState, wanted: list[FoldStep]) -> int:
        """Start from a persona's capsule. Returns its position, 0 if there is none."""
        system = wanted[0]
        plan, capsule = self._registry.reenter(self._realm, system.ids, fingerprint=self._llm.fingerprint)
        if capsule is None or plan.position != len(system.ids):
            return 0
        self._llm.restore(capsule)
        state.tape = TokenLog([system])
        return plan.position


def _ahead(talk: str) -> str:
    """Under which name the state that a talk will have is built."""
    return f"{talk} ahead"
