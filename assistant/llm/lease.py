"""Whose state the engine holds, and where that of the other talks is: in a capsule, on disk, or to be built again.

The engine holds one sequence. Everything here runs on the engines' thread; a capsule may be gone whenever it is asked
for, then its talk is folded anew from its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from assistant.device.thread import Work
from assistant.llm.talk_state import TalkState
from assistant.llm.token_log import FoldPlan, TokenLog
from capsules import Capsule, Checkpoint
from capsules.errors import CapsuleError, CapsuleTooLarge
from capsules.prefix import Realm
from capsules.registry import Registry
from llm_engine import HybridLLM
from llm_engine.schedule import chunks

RESTING = 64
"""Talks without a front whose tokens stay in memory."""


class LLMLease:
    """`folder` keeps what is known of parked talks over a restart; None keeps it in memory only."""

    def __init__(self, llm: HybridLLM, registry: Registry, realm: Realm, folder: Path | None) -> None:
        self.owner: str | None = None
        """Whose state is in the engine."""
        self._llm, self._registry, self._realm, self._folder = llm, registry, realm, folder
        self._talks: dict[str, TalkState] = {}
        self._resting: dict[str, None] = {}

    def find(self, talk: str) -> TalkState | None:
        """What is known of a talk, if anything is; its state need not be in the engine."""
        self._resting.pop(talk, None)
        if talk not in self._talks and self._folder is not None:
            parked = TalkState.take(self._folder, talk)
            if parked is not None:
                self._talks[talk] = parked
        return self._talks.get(talk)

    def begin(self, talk: str) -> TalkState:
        """What is known of a talk; a new one begins with nothing."""
        state = self.find(talk)
        if state is None:
            state = self._talks[talk] = TalkState()
        return state

    def own(self, talk: str) -> TalkState:
        """Make the engine's state this talk's, as its tape says; an empty tape if there is none any more."""
        state = self.begin(talk)
        if self.owner == talk:
            return state
        self.release()
        self.owner = talk
        capsule = self._kept(state)
        if capsule is not None and capsule.tokens == state.tape.ids:
            self._llm.restore(capsule)
            for point in _points_in(capsule):
                self._llm.hold(point)
        else:
            self.rebuild(state)
        return state

    def rebuild(self, state: TalkState) -> None:
        """The owner's state begins with nothing."""
        self._llm.reset()
        state.tape = TokenLog()

    def back(self, talk: str) -> None:
        """Another talk may have had the engine since the last step: go on where this one was."""
        if self.owner != talk:
            wanted = self.begin(talk).tape.steps
            state = self.own(talk)
            for _ in self.fold(state, state.tape.plan(wanted)):
                pass

    def fold(self, state: TalkState, plan: FoldPlan) -> Work[None]:
        """Append the owner's next steps, one chunk of the prefill grid at a time."""
        goes_on = plan.goes_on
        for step in plan.steps:
            done = 0
            for chunk in chunks(self._llm.position, len(step.ids)):
                ids = step.ids[done : done + chunk.count]
                self._llm.append(ids)
                state.tape.appended(ids, goes_on=goes_on)
                done += chunk.count
                goes_on = True
                yield None
            goes_on = False

    def release(self) -> None:
        """The present owner's state moves into a capsule; without memory for one it is built again later."""
        owner = self._talks.get(self.owner) if self.owner is not None else None
        if owner is not None and owner.tape.position:
            points = [self._llm.checkpoint_before(position) for position in owner.tape.reentries()]
            with suppress(CapsuleTooLarge):
                capsule = _with_points(self._llm.snapshot(name=self.owner or ""), points)
                owner.key = self._registry.put(capsule, self._realm, name=f"talk/{self.owner}")
        self.owner = None

    def inherit(self, talk: str, source: str) -> TalkState:
        """A talk goes on with the state of another, which is no more."""
        state, owner = self._talks.pop(source), self.owner
        self.forget(talk)
        self._talks[talk] = state
        if owner == source:
            self.owner = talk
        return state

    def lose(self, talk: str) -> None:
        """The engine's state lies between two boundaries: the talk begins from its tokens again."""
        if (state := self._talks.get(talk)) is not None:
            state.tape = TokenLog()
        self.owner = None

    def forget(self, talk: str) -> None:
        self._resting.pop(talk, None)
        state = self._talks.pop(talk, None)
        if state is not None and state.key is not None:
            self._registry.remove(state.key)
        if self.owner == talk:
            self.owner = None

    def park(self, talk: str) -> None:
        """Snapshot, save, and let go; what is written down beside it finds the tokens again."""
        state = self._talks.get(talk)
        if state is None:
            return
        if self.owner == talk:
            self.release()
        self._resting[talk] = None
        while len(self._resting) > RESTING:
            self.forget(next(iter(self._resting)))
        if self._folder is None or state.key is None or not self._registry.save(state.key):
            return
        if state.write(self._folder, talk):
            del self._talks[talk], self._resting[talk]

    def _kept(self, state: TalkState) -> Capsule | None:
        """Its capsule, which is no longer needed in the registry."""
        if state.key is None:
            return None
        capsule = None
        with suppress(CapsuleError):
            capsule = self._registry.get(state.key, self._llm.fingerprint)
        self._registry.remove(state.key)
        state.key = None
        return capsule


def _with_points(capsule: Capsule, points: Sequence[Checkpoint | None]) -> Capsule:
    """A capsule that also holds checkpoints of its own past, so that a cut or an undo soon after it was restored
    folds as little again as one before."""
    found = {point.position: point for point in points if point is not None}
    tensors = {f"{at}:{name}": t for at, point in found.items() for name, t in point.tensors.items()}
    return replace(capsule, tensors={**capsule.tensors, **tensors}, host={**capsule.host, "points": sorted(found)})


def _points_in(capsule: Capsule) -> list[Checkpoint]:
    """The checkpoints that `_with_points` put in, copied: they may outlive the capsule."""
    return [
        Checkpoint(capsule.scope, at, {
            name.removeprefix(f"{at}:"): tensor.clone()
            for name, tensor in capsule.tensors.items() if name.startswith(f"{at}:")
        })
        for at in capsule.host.get("points", ())
    ]  # fmt: skip
