"""The local language model behind its contract: each call becomes work on the engines' thread, one replay per step."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeVar

from assistant.contracts import CapsuleKeeper, Prompt, ReplyOptions, ReplyPiece, Synced
from assistant.device.deployment import Deployment
from assistant.device.guess import Guesses, urgency_of
from assistant.device.lease import EngineLease
from assistant.device.schedule import EngineKind, Urgency
from assistant.device.thread import Job, Work
from assistant.llm.frozen import FrozenTalks
from assistant.llm.guessed import TalkBefore, state_before, undo_reply
from assistant.llm.keeper import LocalKeeper
from assistant.llm.language import Language
from assistant.llm.prefixes import LISTED, Prefixes
from assistant.llm.sight import Sight
from assistant.llm.talk_state import TalkState
from assistant.llm.way import TalkFolding, ahead_of
from assistant.llm.window import ContextWindow
from assistant.llm.work import TalkWork
from capsules.prefix import StateKey
from llm_engine import HybridLLM, Sampling

T = TypeVar("T")


class LocalLLM:
    """`sampling` applies to replies that request nothing else."""

    def __init__(
        self, deployment: Deployment, engine: HybridLLM, language: Language, name: str, sampling: Sampling
    ) -> None:
        self.name = name
        self.engine = engine
        """For benchmarks, while no talk is open."""
        thread, registry = deployment.thread, deployment.registry
        self._engine_thread, self._now, self._language = thread, deployment.now, language
        state_key = StateKey(name, precision=engine.fingerprint.digest)
        self._prefixes = Prefixes(engine, registry, state_key)
        self._lease = EngineLease(
            FrozenTalks(engine), registry, state_key, "llm", deployment.journals, bases=[self._prefixes.key(LISTED)]
        )
        self.keeper: CapsuleKeeper = LocalKeeper(thread, registry, self._prefixes.key)
        registry.charge(f"checkpoints of {name}", engine.checkpoint_bytes)
        self._sight = Sight(engine, language, deployment.now, partial(self._charge_pictures, deployment))
        window = ContextWindow(language, self._sight.encode, engine.max_positions)
        self._folding = TalkFolding(engine, self._lease, self._prefixes, self._sight, window, deployment.now)
        self._work = TalkWork(self._folding, language, sampling, thread.waking_ms)
        self._preparing: dict[str, Job[None]] = {}
        self._guesses: Guesses[TalkBefore, TalkState] = Guesses(thread, EngineKind.LLM, self._lease)

    @property
    def sees(self) -> bool:
        return self._sight.eyes is not None

    @property
    def state(self) -> LocalLLM:
        return self

    async def reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        asked = self._now()
        guess = self._guesses.find(talk)

        def work() -> Work[ReplyPiece]:
            if guess is not None and guess.before is None:  # outside the guard, because refusing a guess loses nothing
                guess.before = state_before(self._folding, talk, prompt)
            return self._folding.guarded(talk, self._work.reply(talk, prompt, options, asked))

        await self._sight.ready(talk, prompt)
        if guess is None:
            self._interrupt(talk)
        made: AbstractAsyncContextManager[Job[ReplyPiece]]
        made = self._engine_thread.job(EngineKind.LLM, work, talk=talk, urgency=urgency_of(guess))
        async with made as job:
            if guess is not None:
                guess.jobs.append(job)
            async for piece in job.results():
                yield piece

    async def warm(self, listed: Mapping[str, Prompt], *, idle_work: bool = False) -> Mapping[str, Synced]:
        found: dict[str, Synced] = {}
        urgency = Urgency.IDLE if idle_work else Urgency.AWAITED
        await self._engine_thread.call(EngineKind.LLM, lambda: self._prefixes.hold_only(listed), urgency=urgency)
        for name, prompt in listed.items():
            work = partial(self._work.list_beginning, name, prompt)
            job: Job[Synced]
            async with self._engine_thread.job(EngineKind.LLM, work, talk=name, urgency=urgency) as job:
                async for synced in job.results():
                    found[name] = synced
        return found

    # ------------------------------------------------------------------ a talk's state, stored here

    def guess(self, talk: str) -> None:
        self._guesses.begin(talk)

    def confirm(self, talk: str) -> None:
        self._guesses.confirm(talk)

    async def take_back(self, talk: str) -> float:
        folding = self._folding
        return await self._guesses.take_back(
            talk, lambda guess: folding.whole(talk, lambda: undo_reply(folding, talk, guess))
        )

    async def fold_heard(self, talk: str, prompt: Prompt) -> None:
        shows = bool(prompt.lines and prompt.lines[-1].pictures)  # takes too long to be left to the next words
        if self._engine_thread.awaited and not shows:  # the next words come soon, and more may be folded then
            return

        def work() -> Work[None]:
            return self._folding.guarded(talk, self._work.fold_open_line(talk, prompt))

        urgency = Urgency.IDLE if shows else Urgency.GUESS

        await self._sight.ready(talk, prompt)
        job: Job[None]
        async with self._engine_thread.job(EngineKind.LLM, work, talk=talk, urgency=urgency) as job:
            async for _ in job.results():
                pass

    async def prepare(self, talk: str, prompt: Prompt) -> None:
        work = partial(self._folding.fold_ahead, talk, prompt)
        await self._sight.ready(talk, prompt)
        self._interrupt(talk)
        job: Job[None]
        async with self._engine_thread.job(EngineKind.LLM, work, talk=ahead_of(talk), urgency=Urgency.IDLE) as job:
            self._preparing[talk] = job
            async for _ in job.results():
                pass

    async def sync(self, talk: str, prompt: Prompt) -> Synced:
        await self._sight.ready(talk, prompt)
        return await self._call(talk, lambda: self._folding.whole(talk, lambda: self._work.settle(talk, prompt)))

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        await self._guesses.over(talk)
        if self._engine_thread.awaited:
            return None

        await self._sight.ready(talk, prompt)

        def work() -> float | None:
            return self._folding.whole(talk, lambda: self._work.turn_end_probability_now(talk, prompt))

        return await self._engine_thread.call(EngineKind.LLM, work, talk=talk, urgency=Urgency.GUESS)

    async def publish_prefix(self, talk: str, prompt: Prompt) -> str | None:
        await self._sight.ready(talk, prompt)
        self._interrupt(talk)

        def work() -> Work[str]:
            return self._folding.guarded(talk, self._work.publish(talk, prompt))

        found: str | None = None
        job: Job[str]
        async with self._engine_thread.job(EngineKind.LLM, work, talk=talk) as job:
            async for key in job.results():
                found = key
        return found

    async def fork(self, talk: str, branch: str) -> None:
        await self._call(talk, lambda: self._lease.fork(talk, branch))

    async def park(self, talk: str) -> None:
        def park() -> None:
            self._lease.discard(ahead_of(talk))
            self._lease.park(talk)
            self._sight.show_nothing(talk)

        await self._call(talk, park)

    async def forget_talk(self, talk: str) -> None:
        def forget() -> None:
            self._work.gathered.pop(talk, None)
            self._lease.discard(ahead_of(talk))
            self._lease.discard(talk)
            self._sight.show_nothing(talk)

        await self._call(talk, forget)

    # ---------------------------------------------------------------------------------------- inside

    async def _call(self, talk: str, work: Callable[[], T]) -> T:
        self._interrupt(talk)
        return await self._engine_thread.call(EngineKind.LLM, work, talk=talk)

    def _interrupt(self, talk: str) -> None:
        """Stop work done ahead of time before its next step, because somebody waits; its results so far stay."""
        if (job := self._preparing.pop(talk, None)) is not None:
            self._engine_thread.cancel(job)

    def _charge_pictures(self, deployment: Deployment, nbytes: int) -> None:
        """Charge the pictures to the capsules' budget if they share that memory: on a processor."""
        if deployment.ctx.device.type == "cpu":
            deployment.registry.charge(f"pictures of {self.name}", nbytes)
