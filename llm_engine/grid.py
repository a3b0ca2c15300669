"""Divides tokens into calls: prefill chunks on an absolute grid, KV buckets, and the log that rollbacks repeat.

Pure decisions. Equal (position, tokens left) always give equal calls, so restoring at a grid boundary and appending
repeats exactly a cold run: sums in matrix products depend on the number of rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

GRID = 64
ROWS = (8, 24, 40, 64)  # captured sizes of a chunk; each costs 0.2 s of start per KV bucket on a small CPU


@dataclass(frozen=True)
class GridChunk:
    """`count` tokens from `start`, padded to `rows`."""

    start: int
    count: int
    rows: int


def chunks(position: int, tokens: int) -> list[GridChunk]:
    """The calls that fold `tokens` at `position`.

    Input longer than one chunk first runs up to the grid and then in whole cells. Input that fits into one chunk is one
    call wherever it starts, because a second pass over the weights would double the time of a short append.
    """
    found = []
    while tokens:
        count = tokens if tokens <= GRID else GRID - position % GRID
        found.append(GridChunk(position, count, next(rows for rows in ROWS if rows >= count)))
        position += count
        tokens -= count
    return found


def capacity(max_positions: int) -> int:
    """Rows of the KV buffer: every position, and room for the padding of the last chunk."""
    return -(-max_positions // GRID) * GRID + GRID


def step_buckets(rows: int) -> tuple[int, ...]:
    """How many of the `rows` of a KV buffer a decode step may read: doubling sizes, ending with all rows."""
    return _growing(256, 2, rows)


def chunk_buckets(rows: int) -> tuple[int, ...]:
    """The same for a chunk; coarser, because its products outweigh its attention and each size means several
    captures."""
    return _growing(1024, 4, rows)


def _growing(size: int, factor: int, rows: int) -> tuple[int, ...]:
    found = []
    while size * factor <= rows:  # the last size but one must not nearly equal the last
        found.append(size)
        size *= factor
    return (*found, rows)


def bucket_for(end: int, sizes: Sequence[int]) -> int:
    """The smallest bucket that holds the rows [0, end)."""
    return next(size for size in sizes if size >= end)


@dataclass(frozen=True)
class Fold:
    """`count` tokens folded as one chunk, or one by one."""

    kind: Literal["chunk", "steps"]
    count: int


class FoldLog:
    """Records how the tokens so far were folded, in order; runs of single steps are one entry."""

    def __init__(self, folds: Iterable[Fold] = ()) -> None:
        self._folds = list(folds)

    def chunk(self, count: int) -> None:
        self._folds.append(Fold("chunk", count))

    def step(self) -> None:
        last = self._folds[-1] if self._folds else None
        if last is not None and last.kind == "steps":
            self._folds[-1] = Fold("steps", last.count + 1)
        else:
            self._folds.append(Fold("steps", 1))

    @property
    def position(self) -> int:
        return sum(fold.count for fold in self._folds)

    def truncate(self, position: int) -> None:
        """Forget everything after a position; a chunk that is cut counts as a shorter chunk."""
        kept, left = [], position
        for fold in self._folds:
            if left <= 0:
                break
            kept.append(Fold(fold.kind, min(fold.count, left)))
            left -= fold.count
        self._folds = kept

    def between(self, start: int, end: int) -> list[Fold]:
        """The folds from one position to a later one. `start` must not lie inside a chunk."""
        found, at = [], 0
        for fold in self._folds:
            first, last = max(at, start), min(at + fold.count, end)
            if first < last:
                assert first == at or fold.kind == "steps", f"position {start} lies inside a chunk"
                found.append(Fold(fold.kind, last - first))
            at += fold.count
        return found

    def to_json(self) -> list[list[int]]:
        """[[1 if chunk else 0, count], ...]"""
        return [[int(fold.kind == "chunk"), fold.count] for fold in self._folds]

    @classmethod
    def from_json(cls, raw: Sequence[Sequence[int]]) -> "FoldLog":
        return cls(Fold("chunk" if kind else "steps", int(count)) for kind, count in raw)
