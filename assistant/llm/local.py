"""The local language model behind its contract: prompts to steps, and steps to state.

All engine calls run on the engines' thread, one replay per step; between two steps another talk may have the engine.
What a talk wants is always said as a whole prompt; `_back_to` finds how little there is to do, so an undo, a cut and a
next turn are one code path.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

from assistant.base.errors import EngineFailed
from assistant.contracts import Cost, Prompt, PromptReady, ReplyEnd, ReplyOptions, ReplyPiece, Synced, TextPiece
from assistant.device.deployment import Deployment
from assistant.device.guess import Guess, Guesses, urgency_of
from assistant.device.lease import EngineLease
from assistant.device.schedule import EngineKind, Urgency
from assistant.device.thread import Job, Work
from assistant.llm.decoding import Writing
from assistant.llm.frozen import FrozenTalks
from assistant.llm.keeper import LocalKeeper
from assistant.llm.language import Language
from assistant.llm.prefixes import LISTED, Gathered, Prefixes, cold_ends
from assistant.llm.sight import Sight, image_tokens
from assistant.llm.talk_state import LetGo, TalkState
from assistant.llm.token_log import FoldPlan, FoldStep, TokenLog, Written
from assistant.llm.window import ContextWindow, come_back
from capsules.prefix import StateKey
from capsules.reentry import Live, Way
from llm_engine import HybridLLM, Sampling
from llm_engine.grid import chunks
from llm_engine.sampling import CANDIDATES

T = TypeVar("T")

KEPT_EVERY = 256
"""Tokens by which a talk grows or shrinks until its capsule is written to disk again."""
CLAUSE_ENDS = frozenset(".,;:!?…–—\n")
"""What is written up to one of these can be said soon: it is noted, so that after a kill the talk goes on from the
tokens that were heard, and not from their text folded anew."""
LEAST_TOP_P = 1e-6
"""Of 0, which may be asked for, nothing would be left to draw from: it means the likeliest token alone."""
FOLLOWED = 16
"""Written tokens that are folded again in one step."""


@dataclass(frozen=True, slots=True)
class TalkBefore:
    """A talk's state before a guess, as far as it is in line with the talk: what the guess goes back to. `known`: there
    was one."""

    known: bool
    position: int
    written: Mapping[str, Written]
    let_go: LetGo
    sampling: Sampling


class LocalLLM:
    """`sampling` is what a reply is made with where it asks for nothing else."""

    capsules = True

    def __init__(
        self, deployment: Deployment, engine: HybridLLM, language: Language, name: str, sampling: Sampling
    ) -> None:
        self.name = name
        self.engine = engine
        """For a benchmark, while no talk is open."""
        self._engine_thread, self._registry, self._now = deployment.thread, deployment.registry, deployment.now
        self._llm, self._language, self._sampling = engine, language, sampling
        self._state_key = StateKey(name, precision=engine.fingerprint.digest)
        self._prefixes = Prefixes(engine, self._registry, self._state_key)
        self._lease = EngineLease(
            FrozenTalks(engine), self._registry, self._state_key, "llm", deployment.journals,
            bases=[self._prefixes.key(LISTED)],
        )  # fmt: skip
        self._gathered: dict[str, Gathered] = {}
        self.keeper = LocalKeeper(deployment.thread, deployment.registry, self._prefixes.key)
        self._registry.charge(f"checkpoints of {name}", engine.checkpoint_bytes)
        self._sight = Sight(engine, language, deployment.now, partial(self._charge_pictures, deployment))
        self._window = ContextWindow(language, self._sight.encode, engine.max_positions)
        self._preparing: dict[str, Job[None]] = {}
        self._guesses: Guesses[TalkBefore, TalkState] = Guesses(deployment.thread, EngineKind.LLM, self._lease)

    # --------------------------------------------------------------------------------- the contract

    @property
    def sees(self) -> bool:
        return self._sight.eyes is not None

    async def reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        asked = self._now()
        guess = self._guesses.find(talk)

        def work() -> Work[ReplyPiece]:
            if guess is not None and guess.before is None:  # outside the guard: to refuse a guess loses nothing
                guess.before = self._before(talk, prompt)
            return self._guarded(talk, self._reply(talk, prompt, options, asked))

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

    def guess(self, talk: str) -> None:
        self._guesses.begin(talk)

    def confirm(self, talk: str) -> None:
        self._guesses.confirm(talk)

    async def drop(self, talk: str) -> float:
        return await self._guesses.drop(talk, lambda guess: self._whole(talk, lambda: self._drop(talk, guess)))

    async def hear(self, talk: str, prompt: Prompt) -> None:
        shows = bool(prompt.lines and prompt.lines[-1].pictures)  # takes too long to be left to the next words
        if self._engine_thread.awaited and not shows:  # those come soon, and more may be folded then
            return

        def work() -> Work[None]:
            return self._guarded(talk, self._hear(talk, prompt))

        urgency = Urgency.IDLE if shows else Urgency.GUESS

        await self._sight.ready(talk, prompt)
        job: Job[None]
        async with self._engine_thread.job(EngineKind.LLM, work, talk=talk, urgency=urgency) as job:
            async for _ in job.results():
                pass

    async def prepare(self, talk: str, prompt: Prompt) -> None:
        def work() -> Work[None]:
            state = self._known(talk, prompt)
            if self._window.crowded(state, prompt):
                return self._guarded(_ahead(talk), self._prepare(talk, state, prompt))
            self._lease.forget(_ahead(talk))
            return self._guarded(talk, self._recover(talk, state, prompt))

        await self._sight.ready(talk, prompt)
        self._interrupt(talk)
        job: Job[None]
        async with self._engine_thread.job(EngineKind.LLM, work, talk=_ahead(talk), urgency=Urgency.IDLE) as job:
            self._preparing[talk] = job
            async for _ in job.results():
                pass

    async def sync(self, talk: str, prompt: Prompt) -> Synced:
        await self._sight.ready(talk, prompt)
        return await self._call(talk, lambda: self._whole(talk, lambda: self._sync(talk, prompt)))

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        await self._guesses.over(talk)
        if self._engine_thread.awaited:
            return None

        await self._sight.ready(talk, prompt)

        def work() -> float | None:
            return self._whole(talk, lambda: self._turn_end(talk, prompt))

        return await self._engine_thread.call(EngineKind.LLM, work, talk=talk, urgency=Urgency.GUESS)

    async def warm(self, listed: Mapping[str, Prompt], *, idle_work: bool = False) -> Mapping[str, Synced]:
        found: dict[str, Synced] = {}
        urgency = Urgency.IDLE if idle_work else Urgency.AWAITED
        await self._engine_thread.call(EngineKind.LLM, lambda: self._prefixes.hold_only(listed), urgency=urgency)
        for name, prompt in listed.items():
            work = partial(self._warm, name, prompt)
            job: Job[Synced]
            async with self._engine_thread.job(EngineKind.LLM, work, talk=name, urgency=urgency) as job:
                async for synced in job.results():
                    found[name] = synced
        return found

    async def park(self, talk: str) -> None:
        def park() -> None:
            self._lease.forget(_ahead(talk))
            self._lease.park(talk)
            self._sight.forget(talk)

        await self._call(talk, park)

    async def keep(self, talk: str, prompt: Prompt) -> str | None:
        await self._sight.ready(talk, prompt)
        self._interrupt(talk)

        def work() -> Work[str]:
            return self._guarded(talk, self._keep(talk, prompt))

        found: str | None = None
        job: Job[str]
        async with self._engine_thread.job(EngineKind.LLM, work, talk=talk) as job:
            async for key in job.results():
                found = key
        return found

    async def fork(self, talk: str, branch: str) -> None:
        await self._call(talk, lambda: self._lease.fork(talk, branch))

    async def forget(self, talk: str) -> None:
        def forget() -> None:
            self._gathered.pop(talk, None)
            self._lease.forget(_ahead(talk))
            self._lease.forget(talk)
            self._sight.forget(talk)

        await self._call(talk, forget)

    async def _call(self, talk: str, work: Callable[[], T]) -> T:
        self._interrupt(talk)
        return await self._engine_thread.call(EngineKind.LLM, work, talk=talk)

    def _charge_pictures(self, deployment: Deployment, nbytes: int) -> None:
        """Against the capsules' budget where they share that memory: on a processor."""
        if deployment.ctx.device.type == "cpu":
            self._registry.charge(f"pictures of {self.name}", nbytes)

    def _interrupt(self, talk: str) -> None:
        """Somebody waits: what is done ahead of time stops before its next step, and what it did stays."""
        if (job := self._preparing.pop(talk, None)) is not None:
            self._engine_thread.cancel(job)

    # ------------------------------------------------------------------------ on the engines' thread

    def _whole(self, talk: str, work: Callable[[], T]) -> T:
        """One step, after which the state is at a boundary, or folded again when it is next needed."""
        try:
            return work()
        except Exception:
            self._lease.lose(talk)
            raise

    def _guarded(self, talk: str, work: Work[T]) -> Work[T]:
        """The same of many steps; the engine is this talk's at each."""
        with closing(work):
            try:
                for made in work:
                    yield made
                    self._take_back(talk)
            except Exception:
                self._lease.lose(talk)
                raise

    def _own(self, talk: str) -> TalkState:
        """Make the engine's state this talk's. What of it was lost the engine is behind the log: see `_catch_up`."""
        state = self._lease.begin(talk, TalkState)
        self._lease.own(talk)
        self._sight.hold(talk, state.let_go)
        return state

    def _take_back(self, talk: str) -> None:
        """Another talk may have had the engine since the last step: go on where this one was."""
        if self._lease.owner != talk:
            state = self._own(talk)
            for _ in self._catch_up(state, state.log.position):
                pass

    def _behind(self, state: TalkState) -> bool:
        """Whether some of the owner's state was lost and is not folded again yet."""
        return self._llm.position < state.log.position

    def _catch_up(self, state: TalkState, keep: int) -> Generator[None, None, int]:
        """Where the engine is behind the owner's log, fold the first `keep` tokens of it again, by the same calls from
        the nearest capsule of such a state; the rest is let go. Returns how many were folded."""
        if not self._behind(state):
            return 0
        log = state.log
        log.keep(keep)
        self._sight.rollback(min(keep, self._llm.position))
        begin = self._llm.position
        reentry, capsule = self._prefixes.find(LISTED, log.steps, Live(begin, begin))
        if capsule is not None:
            self._prefixes.restore(capsule, reentry.position)
        ids = log.ids
        while self._behind(state):
            at = self._llm.position
            fold = log.folds(at)[0]
            if fold.kind == "chunk":
                yield from self._sight.look(ids[at : at + fold.count])
                self._llm.append(ids[at : at + fold.count])
            else:
                self._llm.follow(ids[at : at + min(fold.count, FOLLOWED)])
            yield None
        return reentry.replay

    def _fold(self, state: TalkState, plan: FoldPlan, gathered: Gathered | None = None) -> Generator[None, None, float]:
        """Append the owner's next steps, one chunk of the prefill grid at a time. Returns the seconds that those with
        pictures took."""
        goes_on, pictured_s = plan.goes_on, 0.0
        for step in plan.steps:
            done, begin = 0, self._now()
            yield from self._sight.look(step.ids)
            for chunk in chunks(self._llm.position, len(step.ids)):
                ids = step.ids[done : done + chunk.count]
                self._llm.append(ids)
                state.log.appended(ids, goes_on=goes_on)
                if gathered is not None:
                    self._prefixes.take(gathered)
                done += chunk.count
                goes_on = True
                yield None
            goes_on = False
            if any(i < 0 for i in step.ids):
                pictured_s += self._now() - begin
        return pictured_s

    def _fold_now(self, state: TalkState, plan: FoldPlan) -> None:
        """All of it in this step: nobody else gets the engine meanwhile."""
        for _ in self._fold(state, plan):
            pass

    def _reply(self, talk: str, prompt: Prompt, options: ReplyOptions, asked: float) -> Work[ReplyPiece]:
        begin = self._now()
        wanted = self._fitting(talk, prompt)
        state = self._own(talk)
        owned = self._now()
        again = yield from self._catch_up(state, state.log.plan(wanted).keep)
        if options.reusable and talk not in self._gathered:
            self._gathered[talk] = self._prefixes.gather(wanted)
        gathered = self._gathered.get(talk)
        kept, way = self._back_to(state, wanted, prompt.realm, gathered)
        rolled = self._now()
        if gathered is None:
            yield from self._fold_instructions(state, wanted, prompt.realm)
        pictured_s = yield from self._fold(state, state.log.plan(wanted), gathered)
        ids, known = state.log.ids, max(0, kept - again)
        costs: tuple[Cost, ...] = (
            Cost("wake", self._engine_thread.waking_ms(asked)),
            Cost("restore", (owned - begin) * 1000),
            Cost("rollback" if way is Way.ROLLBACK else "plan", (rolled - owned) * 1000),
            Cost("prefill", (self._now() - rolled - pictured_s) * 1000),
        )
        if pictured_s:
            costs = (*costs, Cost("picture", pictured_s * 1000))
        seen = image_tokens(ids), image_tokens(ids[:known])
        yield PromptReady(len(ids), known, costs, *seen, *self._sight.last_seen(talk, prompt))
        begin = self._now()
        self._llm.set_sampling(self._sampling_for(options))
        writing = Writing(self._llm, self._language, state, prompt, options)
        try:
            for piece in writing.steps():
                if isinstance(piece, TextPiece) and not CLAUSE_ENDS.isdisjoint(piece.text):
                    self._lease.note(talk, midway=True)  # before it can be said
                yield piece
        finally:
            self._lease.note(talk)
        cost = Cost("decode", (self._now() - begin) * 1000)
        yield ReplyEnd(writing.reason, writing.tokens, (cost,))

    def _fold_instructions(self, state: TalkState, wanted: Sequence[FoldStep], realm: str) -> Work[None]:
        """Where a talk's instructions were not found: from their second use on they are a capsule."""
        if wanted and state.log.position < len(wanted[0].ids) and self._prefixes.asked(realm, wanted[0]) > 1:
            gathered = self._prefixes.gather(wanted[:1])
            yield from self._fold(state, state.log.plan(wanted[:1]), gathered)
            self._prefixes.keep(realm, wanted[:1], gathered)

    def _keep(self, talk: str, prompt: Prompt) -> Work[str]:
        """Fold the reply as a run from nothing would, instead of token by token, and keep the state behind it."""
        state, gathered = self._lease.find(talk), self._gathered.pop(talk, None)
        if state is not None and gathered is not None and not self._behind(self._own(talk)):
            for point in gathered.points.values():
                self._llm.hold(point)
            said = cold_ends(state.log.steps)[-1:]
            if said and said[0] < state.log.position:
                self._sight.rollback(said[0])
                state.log.keep(said[0])
            wanted = self._window.steps(state, prompt, open_reply=prompt.lines[-1].role != "assistant")
            plan = state.log.plan(wanted)
            if plan.keep == state.log.position > 0 and self._window.holds(wanted):
                gathered.at |= set(cold_ends(wanted))
                yield from self._fold(state, plan, gathered)
                yield self._prefixes.keep(prompt.realm, wanted, gathered)
        self._lease.forget(talk)

    def _sampling_for(self, options: ReplyOptions) -> Sampling:
        asked = {
            name: value
            for name in ("temperature", "top_k", "top_p", "seed")
            if (value := getattr(options, name)) is not None
        }
        if "top_p" in asked:
            asked["top_p"] = max(asked["top_p"], LEAST_TOP_P)
        if "top_k" in asked:
            asked["top_k"] = min(asked["top_k"], CANDIDATES)
        return replace(self._sampling, **asked)

    def _before(self, talk: str, prompt: Prompt) -> TalkBefore:
        """Raises EngineFailed where a guess could not be taken back: to make room the talk would be shortened."""
        state = self._lease.find(talk)
        if state is None:
            return TalkBefore(False, 0, {}, LetGo(), self._llm.sampling)
        wanted = self._window.steps(state, prompt, open_reply=True)
        if not self._window.holds(wanted):
            raise EngineFailed("there is no room for a guess in the context; the reply itself will make room")
        keep = state.log.plan(wanted).keep
        return TalkBefore(True, keep, dict(state.written), state.let_go, self._llm.sampling)

    def _drop(self, talk: str, guess: Guess[TalkBefore]) -> None:
        """The guess never was. What it found out of line with the talk stays rolled back."""
        self._lease.show(talk)
        before, state = guess.before, self._lease.find(talk)
        if before is None or state is None:
            return
        if not before.known:
            self._lease.forget(talk)
            return
        self._own(talk)
        state.log.keep(before.position)
        self._sight.rollback(min(before.position, self._llm.position))
        state.written, state.let_go = dict(before.written), before.let_go
        self._llm.set_sampling(before.sampling)
        self._lease.note(talk)

    def _hear(self, talk: str, prompt: Prompt) -> Work[None]:
        """Fold the calls that the whole turn will make however it goes on, so that its state is the same bit for bit:
        all but the last, which the words to come would make longer."""
        state = self._known(talk, prompt)
        wanted = self._window.heard_steps(state, prompt)
        if not self._window.holds(wanted):
            return
        self._own(talk)
        yield from self._catch_up(state, state.log.plan(wanted).keep)
        self._back_to(state, wanted, prompt.realm)
        yield from self._fold(state, state.log.plan(wanted))

    def _sync(self, talk: str, prompt: Prompt) -> Synced:
        """Roll back what is no longer so. Nothing is appended: one append per turn keeps the folding the same."""
        state = self._lease.find(talk)
        if state is None:
            return Synced(None, 0, 0.0)
        begin = self._now()
        come_back(state, prompt)
        wanted = self._window.steps(state, prompt, open_reply=False)
        plan = state.log.plan(wanted)
        if plan.keep >= state.log.position:
            return Synced(None, plan.keep, 0.0)
        self._own(talk)
        if self._behind(state):  # in words now; nobody waits for the rest, and `prepare` comes soon
            state.log.keep(plan.keep)
            self._sight.rollback(min(plan.keep, self._llm.position))
            self._lease.note(talk)
            return Synced("rebuild", plan.keep, (self._now() - begin) * 1000)
        kept, way = self._back_to(state, wanted, prompt.realm)
        self._lease.note(talk)
        ms = (self._now() - begin) * 1000
        return Synced(_TOLD.get(way, "rebuild"), kept, ms)

    def _turn_end(self, talk: str, prompt: Prompt) -> float | None:
        """Only from a state that is there already: this must cost less than it saves."""
        if self._lease.owner not in (None, talk):
            return None
        state = self._own(talk)
        wanted, ids = self._window.open_steps(state, prompt)
        plan = state.log.plan(wanted)
        if plan.keep < state.log.position or len(plan.steps) > 1 or any(step.written for step in plan.steps):
            return None
        if self._behind(state) or any(i < 0 and i not in self._llm.pictures for step in plan.steps for i in step.ids):
            return None
        self._back_to(state, wanted, prompt.realm)
        self._fold_now(state, state.log.plan(wanted))
        if not state.log.position:
            return None
        if self._llm.position + len(ids) >= self._llm.max_positions:
            return None
        return self._llm.turn_end_probability(ids)

    def _warm(self, name: str, prompt: Prompt) -> Work[Synced]:
        """A listed beginning's capsule: from the registry (disk included), else folded now."""
        begin = self._now()
        steps = self._window.steps(TalkState(), replace(prompt, lines=()), open_reply=False)
        position = sum(len(step.ids) for step in steps)
        if not steps:
            yield Synced(None, 0, 0.0)
        elif self._prefixes.hold(name, steps):
            yield Synced("restore", position, (self._now() - begin) * 1000)
        else:
            yield from self._guarded(name, self._fold_listed(name, steps))
            yield Synced("rebuild", position, (self._now() - begin) * 1000)

    def _fold_listed(self, name: str, steps: Sequence[FoldStep]) -> Work[Synced]:
        try:
            state, gathered = self._own(name), self._prefixes.gather(steps)
            self._back_to(state, steps, LISTED, gathered)
            yield from self._fold(state, state.log.plan(steps), gathered)
            self._prefixes.keep(LISTED, steps, gathered, name)
        finally:
            self._lease.forget(name)

    # ------------------------------------------------------------------------------ from log to state

    def _fitting(self, talk: str, prompt: Prompt) -> list[FoldStep]:
        """The steps of as much of the prompt as finds room. Where not all does, the talk goes on with what was folded
        ahead of time, even if that is only begun; else its oldest pictures and turns go now."""
        state = self._known(talk, prompt)
        wanted = self._window.steps(state, prompt, open_reply=True)
        if self._window.holds(wanted):
            return wanted
        if (ahead := self._lease.find(_ahead(talk))) is not None:
            wanted = self._window.steps(ahead, prompt, open_reply=True)
            state = self._lease.inherit(talk, _ahead(talk))
        if not self._window.holds(wanted):
            wanted = self._window.shorten(state, prompt)
        self._window.forget(state, prompt)
        return wanted

    def _recover(self, talk: str, state: TalkState, prompt: Prompt) -> Work[None]:
        """Fold again what was lost of a talk, and what surely stays of it and was never folded; after a kill there will
        be less of it."""
        wanted = self._window.steps(state, prompt, open_reply=False)
        if state.log.position or wanted:
            self._own(talk)
            yield from self._catch_up(state, state.log.plan(wanted).keep)
            if state.log.plan(wanted).steps:
                self._back_to(state, wanted, prompt.realm)
                yield from self._fold_instructions(state, wanted, prompt.realm)
                yield from self._fold(state, state.log.plan(wanted))
            if abs(state.log.position - state.kept) >= KEPT_EVERY:
                state.kept = state.log.position
                self._lease.keep(talk)

    def _prepare(self, talk: str, state: TalkState, prompt: Prompt) -> Work[None]:
        """Fold the shortened talk beside the present one, which is whole until that is done."""
        ahead = self._lease.find(_ahead(talk))
        if ahead is None or self._window.crowded(ahead, prompt):
            self._lease.forget(_ahead(talk))
            ahead = self._lease.begin(_ahead(talk), TalkState)
            ahead.written, ahead.let_go = state.written, state.let_go
            self._window.shorten(ahead, prompt)
        self._own(_ahead(talk))
        wanted = self._window.steps(ahead, prompt, open_reply=False)
        yield from self._catch_up(ahead, ahead.log.plan(wanted).keep)
        self._back_to(ahead, wanted, prompt.realm)
        yield from self._fold(ahead, ahead.log.plan(wanted))
        self._window.forget(self._lease.inherit(talk, _ahead(talk)), prompt)
        self._lease.note(talk)

    def _known(self, talk: str, prompt: Prompt) -> TalkState:
        state = self._lease.begin(talk, TalkState)
        come_back(state, prompt)
        return state

    def _back_to(
        self, state: TalkState, wanted: Sequence[FoldStep], realm: str, gathered: Gathered | None = None
    ) -> tuple[int, Way | None]:
        """Go to the furthest state from which what is wanted only needs appending: the live one, an earlier one of the
        same talk, a stored one of the realm, or nothing. Returns its position, and the way if anything was done."""
        keep, position = state.log.plan(wanted).keep, state.log.position
        reentry, capsule = self._prefixes.find(realm, wanted, Live(position, keep))
        match reentry.way:
            case Way.APPEND:
                return keep, None
            case Way.ROLLBACK:
                self._sight.rollback(keep)
                state.log.keep(keep)
            case Way.RESTORE:
                assert capsule is not None
                points = self._prefixes.restore(capsule, reentry.position)
                state.log = TokenLog(wanted)
                state.log.keep(reentry.position)
                if gathered is not None:
                    gathered.points.update(points)
                    all_of_it = len(wanted[0].ids) < reentry.position == capsule.position
                    gathered.source = reentry.key if all_of_it else ""
            case Way.REBUILD:
                if not position:
                    return 0, None
                self._llm.reset()
                state.log = TokenLog()
        return reentry.position, reentry.way


_TOLD: Mapping[Way | None, Literal["rollback", "restore"]] = {Way.ROLLBACK: "rollback", Way.RESTORE: "restore"}


def _ahead(talk: str) -> str:
    """Under which name the state that a talk will have is built."""
    return f"{talk} ahead"
