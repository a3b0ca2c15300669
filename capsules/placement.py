"""Places checkpoints so that rolling back to any earlier position replays few tokens.

A prefix of `length` tokens keeps checkpoints at positions C, a subset of 1..length; position 0 (empty) is free. Going
back to position t replays t - max({0} u {c in C: c <= t}) tokens. A law is the probability of each t, [length + 1].
Source: Shirokikh & Nikolenko 2026, arXiv 2605.05219.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import accumulate, pairwise
from math import inf, isqrt

import numpy as np
from numpy.typing import NDArray

from capsules.errors import ContractMisuse
from capsules.hull import Floats, Ints, lower_hull

GRID = 64  # prefill chunk: boundaries between chunks are multiples of it
NEGLIGIBLE = 1e-18  # mass too small to change any expected recompute below a length of 100,000 by more than 1e-8 tokens


class Strategy(StrEnum):
    """How checkpoints are placed."""

    NONE = "none"
    BALANCED = "balanced"
    BLOCK = "block"
    SQUARE_ROOT = "square-root"
    LOGARITHMIC = "logarithmic"
    OPTIMAL = "optimal"


def place(strategy: Strategy, budget: int, law: Floats, grid: int = 1) -> tuple[int, ...]:
    """At most `budget` positions for a prefix of len(law) - 1 tokens, rising, all multiples of `grid`."""
    length = len(law) - 1
    if strategy is Strategy.OPTIMAL:
        return optimal(law, budget, None if grid == 1 else range(grid, length + 1, grid))
    wanted: Iterable[int] = {
        Strategy.NONE: lambda: (),
        Strategy.BALANCED: lambda: balanced(length, budget),
        Strategy.BLOCK: lambda: every(_reaching(GRID, length, budget), length),
        Strategy.SQUARE_ROOT: lambda: every(_reaching(max(1, isqrt(length)), length, budget), length),
        Strategy.LOGARITHMIC: lambda: logarithmic(length, budget),
    }[strategy]()
    return tuple(sorted({p - p % grid for p in wanted} - {0}))


def balanced(length: int, budget: int) -> tuple[int, ...]:
    """Gaps that differ by at most one. Optimal for uniform depths, and for the worst case under any law."""
    pieces = budget + 1
    return tuple(sorted({i * (length + 1) // pieces for i in range(1, pieces)} - {0}))


def every(spacing: int, length: int) -> tuple[int, ...]:
    """All multiples of `spacing`. The paper's block caching is every 64 or 128, its square root every √length; it does
    not choose their number."""
    return tuple(range(spacing, length + 1, spacing))


def _reaching(unit: int, length: int, budget: int) -> int:
    """The least multiple of `unit` whose multiples cover the whole prefix with no more than `budget` of them."""
    return unit * (length // (unit * (budget + 1)) + 1)


def logarithmic(length: int, budget: int) -> tuple[int, ...]:
    """Gaps that grow by a constant factor from the start."""
    return tuple(sorted({int((length + 1) ** (i / (budget + 1))) for i in range(1, budget + 1)}))


def optimal(law: Floats, budget: int, candidates: Iterable[int] | None = None) -> tuple[int, ...]:
    """The exact minimum of expected recompute: dynamic program, one convex-hull sweep per checkpoint.

    candidates   positions that may hold one, rising, from 1 up; default: every position with mass, which suffices
    Let interval k be the depths from candidate k up to the next, P and T the prefix sums of mass and mass * depth over
    intervals 0..k (interval 0 lies before the first candidate), and cost[k] the best for intervals 0..k so far. With i
    the deepest checkpoint, cost'[k] = min_i cost[i-1] + (T[k] - T[i-1]) - c_i (P[k] - P[i-1]): for each i a line in
    P[k] with slope -c_i. Candidates i > k may take part: their line is never below cost[k], because the formula then
    adds the non-negative distance up to c_i. So each layer is one hull and one sorted look-up, O(len(law)).
    """
    spots: Ints = np.flatnonzero(law > NEGLIGIBLE) if candidates is None else np.fromiter(candidates, np.int64)
    spots = spots[spots > 0]
    if budget <= 0 or len(spots) == 0:
        return ()
    if len(spots) <= budget:
        return tuple(spots.tolist())
    c = spots.astype(np.float64)
    ends = np.append(spots, len(law))
    mass = np.cumsum(law)[ends - 1]  # P, [K + 1]
    moment = np.cumsum(law * np.arange(len(law)))[ends - 1]  # T, [K + 1]
    cost = moment.copy()
    choices = np.empty((budget, len(ends)), np.int32)
    for layer in range(budget):
        intercept = cost[:-1] - moment[:-1] + c * mass[:-1]
        hull = lower_hull(c, intercept)
        breaks = np.diff(intercept[hull]) / np.diff(c[hull])  # the x at which the next line becomes the lower one
        best = hull[np.searchsorted(breaks, mass, side="right")]
        value = intercept[best] - c[best] * mass + moment
        better = (value < cost) & (best < np.arange(len(ends)))
        cost = np.where(better, value, cost)
        choices[layer] = np.where(better, best, -1)
    return _trace(choices, spots)


def _trace(choices: NDArray[np.int32], spots: Ints) -> tuple[int, ...]:
    k = len(spots)
    found: list[int] = []
    for layer in reversed(choices):
        if layer[k] >= 0:
            k = int(layer[k])
            found.append(int(spots[k]))
    return tuple(reversed(found))


def recompute(length: int, checkpoints: Sequence[int]) -> Ints:
    """Tokens to replay for every depth 0..length."""
    kept = np.array([0, *sorted(checkpoints)])
    depths = np.arange(length + 1)
    return depths - kept[np.searchsorted(kept, depths, side="right") - 1]


def expected_recompute(law: Floats, checkpoints: Sequence[int]) -> float:
    """E[r], in tokens."""
    return float(law @ recompute(len(law) - 1, checkpoints))


class RollbackHistogram:
    """How far back rollbacks go, with recent ones counting more: weight gamma ** age, age in observations.

    Stored as distance from the end, because barge-ins and undo look back from now however long the talk has become.
    """

    def __init__(self, gamma: float = 0.99) -> None:
        self._gamma = gamma
        self._weights: dict[int, float] = {}
        self._sums: tuple[list[int], list[float]] = [], [0.0]  # rising distances; weight of the first n of them

    def add_rollback(self, back: int) -> None:
        """Record a rollback by `back` tokens."""
        if back < 0:
            raise ContractMisuse(f"a rollback goes back by {back} tokens; 0 or more are possible")
        self._weights = {b: w * self._gamma for b, w in self._weights.items() if w > 1e-9}
        self._weights[back] = self._weights.get(back, 0.0) + 1.0
        backs = sorted(self._weights)
        self._sums = backs, [0.0, *accumulate(self._weights[b] for b in backs)]

    def mass(self, length: int) -> Callable[[int], float]:
        """The same law, summed: the weight of all depths below a position. Not normalised; each call costs one look-up,
        whatever the length."""
        if not self._weights:
            return float  # uniform
        backs, sums = self._sums
        total = sums[-1]

        def below(position: int) -> float:
            """Depth max(0, length - back) < position: all rollbacks further back than length - position."""
            return total - sums[bisect_right(backs, length - position)] if position > 0 else 0.0

        return below

    def law(self, length: int) -> Floats:
        """[length + 1] float64, sums to one; uniform over 1..length before the first observation."""
        p = np.zeros(length + 1)
        if not self._weights:
            p[1:] = 1.0
            p[0] = 1.0 if length == 0 else 0.0
        for back, weight in self._weights.items():
            p[max(0, length - back)] += weight
        return p / p.sum()


class Placer:
    """Decides which of the available boundaries keep their checkpoint, learning from actual rollbacks.

    While tokens are decoded, one boundary comes and one must go. The best choice is then the one whose loss costs
    least, found in a few look-ups; the program runs only if several must go at once, which never happens in decoding.
    """

    def __init__(
        self, budget: int, strategy: Strategy = Strategy.OPTIMAL, gamma: float = 0.99, solve_every: int = 10
    ) -> None:
        if budget < 1:
            raise ContractMisuse(f"a budget of {budget} checkpoints; at least 1 is needed to roll back at all")
        self._budget = budget
        self._strategy = strategy
        self._seen = RollbackHistogram(gamma)
        self._pending: list[int] = []
        self._solve_every = solve_every

    def observe(self, back: int) -> None:
        """Record a rollback by `back` tokens. Decisions change with every `solve_every`-th."""
        self._pending.append(back)
        if len(self._pending) == self._solve_every:
            for pending in self._pending:
                self._seen.add_rollback(pending)
            self._pending.clear()

    def surviving(self, boundaries: Sequence[int], length: int) -> frozenset[int]:
        """The boundaries (rising, 1..length) that keep their checkpoint: at most `budget`, including the newest.

        A dropped checkpoint is gone, so only the available ones are candidates. The newest stays whatever the law says
        of it today: no other can stand between later positions and earlier ones.
        """
        if len(boundaries) <= self._budget:
            return frozenset(boundaries)
        older, newest = boundaries[:-1], boundaries[-1]
        if self._strategy is Strategy.OPTIMAL and len(boundaries) == self._budget + 1:
            return frozenset(boundaries) - {self._least_needed(boundaries, length)}
        law = self._seen.law(length)
        if self._strategy is Strategy.OPTIMAL:
            chosen = optimal(law[:newest], self._budget - 1, older)
        else:
            wanted = place(self._strategy, self._budget - 1, law[: newest + 1])
            at = np.searchsorted(np.array(older), np.array(wanted, np.int64), side="right") - 1
            chosen = tuple(older[i] for i in sorted(set(at.tolist())) if i >= 0)
        return frozenset((*chosen, newest))

    def _least_needed(self, boundaries: Sequence[int], length: int) -> int:
        """The boundary to give up, other than the newest: depths from it up to the next then replay from the one
        before."""
        below = self._seen.mass(length)
        best, least = boundaries[0], inf
        before, from_here = 0, below(boundaries[0])
        for here, after in pairwise(boundaries):
            from_next = below(after)
            loss = (here - before) * (from_next - from_here)
            if loss < least:
                best, least = here, loss
            before, from_here = here, from_next
        return best
