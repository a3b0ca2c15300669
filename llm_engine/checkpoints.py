"""The checkpoints of one sequence: chosen boundaries, so that a rollback folds little again."""

from contextlib import suppress

from capsules import Checkpoint, ExecContext, rollback
from capsules.capsule import Recurrent
from capsules.errors import CapsuleTooLarge
from capsules.placement import Placer


class SequenceCheckpoints:
    """At most `budget`, each a copy of the fixed part of a scope's state, whose buffers are all declared by now.

    every  decoded tokens from one considered boundary to the next
    """

    def __init__(self, ctx: ExecContext, scope: str, budget: int, every: int) -> None:
        self._ctx, self._budget, self._every = ctx, budget, every
        self._recurrent = Recurrent(ctx, scope)
        self._placer = Placer(budget)
        self._points: dict[int, Checkpoint] = {}
        self._considered = 0  # the last position considered

    @property
    def most_bytes(self) -> int:
        """The size of all checkpoints that may be held."""
        return self._budget * self._recurrent.nbytes

    def last_before(self, position: int) -> Checkpoint | None:
        """The last checkpoint at or before a position."""
        return self._points.get(max((at for at in self._points if at <= position), default=0))

    def add_point(self, point: Checkpoint) -> None:
        self._points[point.position] = point

    def due(self, position: int) -> bool:
        """Whether enough was decoded since the last considered boundary."""
        return position - self._considered >= self._every

    def consider(self, position: int) -> None:
        """Checkpoint this boundary, where the state is now, if it is worth more than another one. Without memory for a
        checkpoint, a later rollback refolds more."""
        if position in self._points:
            return
        self._considered = position
        kept = self._placer.surviving(sorted((*self._points, position)), position)
        self._points = {at: point for at, point in self._points.items() if at in kept}
        if position in kept:
            with suppress(CapsuleTooLarge):
                self._points[position] = self._recurrent.checkpoint_at(position)

    def copy_now(self, position: int) -> Checkpoint:
        """A checkpoint that is not stored here. Raises CapsuleTooLarge."""
        return self._recurrent.checkpoint_at(position)

    def put_back(self, point: Checkpoint) -> None:
        """Restore the fixed part of the state."""
        rollback(self._ctx, point)

    def rolled_back(self, depth: int) -> None:
        """Note a rollback by this many tokens: the worth of checkpoints follows from these."""
        self._placer.observe(depth)

    def restart(self, position: int = 0, upto: int = -1) -> None:
        """Go on from `position`; the checkpoints up to `upto` are still valid."""
        self._points = {at: point for at, point in self._points.items() if at <= upto}
        self._considered = position
