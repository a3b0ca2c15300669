"""The way from the state an engine has to the state a prompt wants, folding as little as possible.

A talk always states what it wants as a whole prompt; `go_back` finds how little there is to do, so an undo, a cut and a
next turn are one code path. Everything here runs on the engines' thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar

from assistant.contracts import Prompt
from assistant.device.lease import EngineLease
from assistant.device.thread import Work
from assistant.llm.prefixes import LISTED, Gathered, Prefixes
from assistant.llm.sight import Sight
from assistant.llm.talk_state import TalkState
from assistant.llm.token_log import FoldPlan, FoldStep, TokenLog
from assistant.llm.window import ContextWindow, come_back
from capsules.reentry import Live, Way
from llm_engine import HybridLLM
from llm_engine.grid import chunks

T = TypeVar("T")

KEPT_EVERY = 256
"""A talk's capsule is written to disk again after it has grown or shrunk by this many tokens."""
FOLLOWED = 16
"""Written tokens that are folded again in one step."""


class TalkFolding:
    """The state of one engine. `now`: seconds. A method with a `TalkState` argument expects the engine to hold that
    talk's state; `own` ensures this."""

    def __init__(
        self, llm: HybridLLM, lease: EngineLease[TalkState], prefixes: Prefixes, sight: Sight, window: ContextWindow,
        now: Callable[[], float],
    ) -> None:  # fmt: skip
        self.llm, self.lease, self.prefixes = llm, lease, prefixes
        self.sight, self.window, self.now = sight, window, now

    def whole(self, talk: str, work: Callable[[], T]) -> T:
        """Do one step. After it the state is at a boundary, or is folded again when it is next needed."""
        try:
            return work()
        except Exception:
            self.lease.lose(talk)
            raise

    def guarded(self, talk: str, work: Work[T]) -> Work[T]:
        """The same for work of many steps; the engine holds this talk's state at each."""
        with closing(work):
            try:
                for made in work:
                    yield made
                    self._own_again(talk)
            except Exception:
                self.lease.lose(talk)
                raise

    def own(self, talk: str) -> TalkState:
        """Make the engine's state this talk's. The engine lags behind the log by the lost part: see `refold_lost`."""
        state = self.lease.begin(talk, TalkState)
        self.lease.own(talk)
        self.sight.hold(talk, state.let_go)
        return state

    def _own_again(self, talk: str) -> None:
        """Go on where this talk was, though another talk may have had the engine since the last step."""
        if self.lease.owner != talk:
            state = self.own(talk)
            for _ in self.refold_lost(state, state.log.position):
                pass

    def behind(self, state: TalkState) -> bool:
        """Whether some of the owner's state was lost and is not folded again yet."""
        return self.llm.position < state.log.position

    def refold_lost(self, state: TalkState, keep: int) -> Generator[None, None, int]:
        """If the engine lags behind the owner's log, fold the first `keep` tokens again, by the same calls from the
        nearest capsule of such a state; let the rest go. Returns how many were folded."""
        if not self.behind(state):
            return 0
        self.cut(state, keep)
        log, begin = state.log, self.llm.position
        reentry, capsule = self.prefixes.find(LISTED, log.steps, Live(begin, begin))
        if capsule is not None:
            self.prefixes.restore(capsule, reentry.position)
        ids = log.ids
        while self.behind(state):
            at = self.llm.position
            fold = log.folds(at)[0]
            if fold.kind == "chunk":
                yield from self.sight.look(ids[at : at + fold.count])
                self.llm.append(ids[at : at + fold.count])
            else:
                self.llm.follow(ids[at : at + min(fold.count, FOLLOWED)])
            yield None
        return reentry.replay

    def cut(self, state: TalkState, position: int) -> None:
        """Go back to a position of the owner's log, if the engine is beyond it. Pictures that are folded again on the
        way are seen first, because they may not be at hand after a restart."""
        state.log.truncate(position)
        position = min(position, self.llm.position)
        for _ in self.sight.look(self.llm.needed(position)):
            pass
        self.llm.rollback(position)

    def go_back(
        self, state: TalkState, wanted: Sequence[FoldStep], realm: str, gathered: Gathered | None = None
    ) -> tuple[int, Way | None]:
        """Go to the furthest state from which only appending is needed: the live one, an earlier one of the same talk,
        a stored one of the realm, or nothing. Returns its position, and the way if anything was done."""
        keep, position = state.log.plan(wanted).keep, state.log.position
        reentry, capsule = self.prefixes.find(realm, wanted, Live(position, keep))
        match reentry.way:
            case Way.APPEND:
                return keep, None
            case Way.ROLLBACK:
                self.cut(state, keep)
            case Way.RESTORE:
                assert capsule is not None
                points = self.prefixes.restore(capsule, reentry.position)
                state.log = TokenLog(wanted)
                state.log.truncate(reentry.position)
                if gathered is not None:
                    gathered.points.update(points)
                    all_of_it = len(wanted[0].ids) < reentry.position == capsule.position
                    gathered.source = reentry.key if all_of_it else ""
            case Way.REBUILD:
                if not position:
                    return 0, None
                self.llm.reset()
                state.log = TokenLog()
        return reentry.position, reentry.way

    def fold(self, state: TalkState, plan: FoldPlan, gathered: Gathered | None = None) -> Generator[None, None, float]:
        """Append the owner's next steps, one chunk of the prefill grid at a time. Returns the seconds spent on those
        with pictures."""
        goes_on, pictured_s = plan.goes_on, 0.0
        for step in plan.steps:
            done, begin = 0, self.now()
            yield from self.sight.look(step.ids)
            for chunk in chunks(self.llm.position, len(step.ids)):
                ids = step.ids[done : done + chunk.count]
                self.llm.append(ids)
                state.log.appended(ids, goes_on=goes_on)
                if gathered is not None:
                    self.prefixes.take_point(gathered)
                done += chunk.count
                goes_on = True
                yield None
            goes_on = False
            if any(i < 0 for i in step.ids):
                pictured_s += self.now() - begin
        return pictured_s

    def fold_now(self, state: TalkState, plan: FoldPlan) -> None:
        """Fold everything in this step, so that nobody else gets the engine meanwhile."""
        for _ in self.fold(state, plan):
            pass

    def fold_instructions(self, state: TalkState, wanted: Sequence[FoldStep], realm: str) -> Work[None]:
        """Fold instructions that were not found. From their second use on they become a capsule."""
        if wanted and state.log.position < len(wanted[0].ids) and self.prefixes.asked(realm, wanted[0]) > 1:
            gathered = self.prefixes.gather(wanted[:1])
            yield from self.fold(state, state.log.plan(wanted[:1]), gathered)
            self.prefixes.store(realm, wanted[:1], gathered)

    # ------------------------------------------------------------------ as much as the context holds

    def known(self, talk: str, prompt: Prompt) -> TalkState:
        """The talk's state, whether or not the engine holds it. Lines that must be shown again are marked as shown."""
        state = self.lease.begin(talk, TalkState)
        come_back(state, prompt)
        return state

    def fitting(self, talk: str, prompt: Prompt) -> list[FoldStep]:
        """The steps of as much of the prompt as fits. If not all does, the talk goes on with the state folded ahead of
        time, even if that has only begun; otherwise its oldest pictures and turns go now."""
        state = self.known(talk, prompt)
        wanted = self.window.steps(state, prompt, open_reply=True)
        if self.window.holds(wanted):
            return wanted
        if (ahead := self.lease.find(ahead_of(talk))) is not None:
            wanted = self.window.steps(ahead, prompt, open_reply=True)
            state = self.lease.inherit(talk, ahead_of(talk))
        if not self.window.holds(wanted):
            wanted = self.window.shorten(state, prompt)
        self.window.forget_hidden(state, prompt)
        return wanted

    def fold_ahead(self, talk: str, prompt: Prompt) -> Work[None]:
        """Fold in advance what the next reply would have to fold before its own turn: in place, or beside the talk if
        that will have to be shortened."""
        state = self.known(talk, prompt)
        if self.window.crowded(state, prompt):
            return self.guarded(ahead_of(talk), self._shorten_ahead(talk, state, prompt))
        self.lease.discard(ahead_of(talk))
        return self.guarded(talk, self._recover(talk, state, prompt))

    def _recover(self, talk: str, state: TalkState, prompt: Prompt) -> Work[None]:
        """Fold the lost parts of a talk again, and the lasting parts never folded; so the next kill will cost less."""
        wanted = self.window.steps(state, prompt, open_reply=False)
        if state.log.position or wanted:
            self.own(talk)
            yield from self.refold_lost(state, state.log.plan(wanted).keep)
            if state.log.plan(wanted).steps:
                self.go_back(state, wanted, prompt.realm)
                yield from self.fold_instructions(state, wanted, prompt.realm)
                yield from self.fold(state, state.log.plan(wanted))
            if abs(state.log.position - state.kept) >= KEPT_EVERY:
                state.kept = state.log.position
                self.lease.save_owned(talk)

    def _shorten_ahead(self, talk: str, state: TalkState, prompt: Prompt) -> Work[None]:
        """Fold the shortened talk beside the present one, which stays whole until that is done."""
        ahead = self.lease.find(ahead_of(talk))
        if ahead is None or self.window.crowded(ahead, prompt):
            self.lease.discard(ahead_of(talk))
            ahead = self.lease.begin(ahead_of(talk), TalkState)
            ahead.written, ahead.let_go = state.written, state.let_go
            self.window.shorten(ahead, prompt)
        self.own(ahead_of(talk))
        wanted = self.window.steps(ahead, prompt, open_reply=False)
        yield from self.refold_lost(ahead, ahead.log.plan(wanted).keep)
        self.go_back(ahead, wanted, prompt.realm)
        yield from self.fold(ahead, ahead.log.plan(wanted))
        self.window.forget_hidden(self.lease.inherit(talk, ahead_of(talk)), prompt)
        self.lease.note(talk)


def ahead_of(talk: str) -> str:
    """The name under which the talk's future state is built."""
    return f"{talk} ahead"
