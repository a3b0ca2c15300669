"""Freezes a talk's state in the language model into a capsule and puts it back, as the engine's lease requires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.llm.talk_state import TalkState
from capsules import Capsule, Checkpoint
from capsules.errors import CapsuleError
from capsules.journal import Rows
from llm_engine import HybridLLM, StateError
from llm_engine.grid import Fold, FoldLog

MODEL = "model"
"""The row with the fingerprint of the model whose tokens stand in the others."""


class FrozenTalks:
    """`replaceable`: the log records which calls folded which tokens, so a lost state is folded again, bit for bit.
    Until that is done the engine lags behind the log."""

    replaceable = True

    def __init__(self, llm: HybridLLM) -> None:
        self._llm = llm

    def freeze(self, state: TalkState, name: str) -> Capsule | None:
        if not self._llm.position:
            return None
        points = [self._llm.checkpoint_before(position) for position in state.log.reentries()]
        return with_points(self._llm.snapshot(name=name), points)

    def thaw(self, state: TalkState, capsule: Capsule) -> bool:
        common = state.log.common(capsule.tokens, folds_of(capsule))
        if common < min(capsule.position, state.log.position):
            return False
        try:
            self._llm.restore(capsule)
            for point in points_in(capsule):
                self._llm.hold(point)
            self._llm.rollback(common)  # no further than the part that counts
        except (CapsuleError, StateError):  # StateError: a picture would have to be seen first
            return False
        return True

    def clear(self, state: TalkState) -> None:
        self._llm.reset()

    def to_rows(self, state: TalkState) -> Rows:
        return {MODEL: self._llm.fingerprint.digest, **state.to_rows()}

    def from_rows(self, rows: Rows) -> TalkState:
        """Tokens of another model mean something else: the talk's words are folded anew."""
        return TalkState.from_rows(rows) if rows.get(MODEL) == self._llm.fingerprint.digest else TalkState()


def folds_of(capsule: Capsule) -> Sequence[Fold]:
    """How a capsule's tokens were folded."""
    return FoldLog.from_json(capsule.host["folds"]).between(0, capsule.position)


def with_points(capsule: Capsule, points: Sequence[Checkpoint | None]) -> Capsule:
    """A capsule that also holds checkpoints of its own past, so that a cut or an undo soon after a restore folds as
    little again as one before it."""
    found = {point.position: point for point in points if point is not None}
    tensors = {f"{at}:{name}": t for at, point in found.items() for name, t in point.tensors.items()}
    return replace(capsule, tensors={**capsule.tensors, **tensors}, host={**capsule.host, "points": sorted(found)})


def points_in(capsule: Capsule) -> list[Checkpoint]:
    """The checkpoints that `with_points` added, copied because they may outlive the capsule."""
    return [
        Checkpoint(capsule.scope, at, {
            name.removeprefix(f"{at}:"): tensor.clone()
            for name, tensor in capsule.tensors.items() if name.startswith(f"{at}:")
        })
        for at in capsule.host.get("points", ())
    ]  # fmt: skip
