"""Pictures in a sequence: the ids that stand for their rows, their places, and the resulting rotary positions.

A picture is a grid of rows that replace embeddings. Each row has the same virtual id, negative and derived from the
digest of the content; so equal ids mean equal content, and code that compares tokens compares pictures too.

Positions are three numbers per row (time, height, width; Qwen2-VL, Wang et al. 2024, section 2.1). Text at index i has
i + delta three times. A picture that begins at position p has time p throughout, height p + r and width p + c in row r
and column c of its grid; the following text is at p + max(rows, columns). Attention, cache and chunks use indices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from capsules.errors import CapsuleMismatch
from llm_engine.errors import StateError


def virtual_id(digest: bytes) -> int:
    """The id of a picture among token ids: -1 - (the first 63 bits of its digest)."""
    return -1 - (int.from_bytes(digest[:8], "big") >> 1)


@dataclass(frozen=True)
class PictureGrid:
    """The number of rows a picture takes in the sequence, as rows × columns of its cells."""

    rows: int
    columns: int

    @property
    def count(self) -> int:
        return self.rows * self.columns

    @property
    def delta(self) -> int:
        """The difference between position and index of the text after it; at most 0."""
        return max(self.rows, self.columns) - self.count


@dataclass(frozen=True)
class SeenPicture:
    """An encoded picture: embeddings [rows · columns, h] of the language model, on the processor."""

    grid: PictureGrid
    rows: Tensor


@dataclass(frozen=True)
class PlacedGrid:
    """A picture of the sequence, from index `first` on."""

    first: int
    grid: PictureGrid
    id: int

    @property
    def end(self) -> int:
        return self.first + self.grid.count


@dataclass(frozen=True)
class PlacedPictures:
    """All pictures of one sequence, in order; the last may have only begun."""

    grids: tuple[PlacedGrid, ...] = ()

    def with_more(self, position: int, ids: Sequence[int], seen: Mapping[int, SeenPicture]) -> "PlacedPictures":
        """The pictures of a sequence of `position` ids after `ids` were appended.

        Raises StateError for a picture that is not at hand, or one that is interrupted.
        """
        found, at = list(self.grids), 0
        while at < len(ids):
            last = found[-1] if found else None
            if last is not None and position + at < last.end:
                upto = min(len(ids), last.end - position)
                if any(one != last.id for one in ids[at:upto]):
                    raise StateError(
                        f"the picture at {last.first} takes {last.grid.count} rows, up to {last.end}; nothing else may "
                        "stand there. Append the rest of it, or roll back to before it."
                    )
                at = upto
            elif ids[at] < 0:
                found.append(PlacedGrid(position + at, at_hand(seen, ids[at]).grid, ids[at]))
            else:
                at += 1
        return PlacedPictures(tuple(found))

    def upto(self, position: int) -> "PlacedPictures":
        """The pictures of the first `position` ids."""
        return PlacedPictures(tuple(one for one in self.grids if one.first < position))

    def inside(self, position: int) -> bool:
        """Whether a sequence of `position` ids ends within a picture, where nothing can be decoded."""
        return any(one.first < position < one.end for one in self.grids)

    def delta(self, position: int) -> int:
        """The difference between rotary position and index after the first `position` ids."""
        return sum(one.grid.delta for one in self.grids if one.end <= position)

    def axes(self, start: int, rows: int) -> Tensor:
        """[3, rows] int64: the rotary positions (time, height, width) of the indices from `start` on."""
        made = torch.arange(start, start + rows).repeat(3, 1)
        for one in self.grids:
            if one.end <= start:
                made += one.grid.delta
            elif one.first < start + rows:
                origin = one.first + self.delta(one.first)
                begin, end = max(one.first, start), min(one.end, start + rows)
                cell = torch.arange(begin - one.first, end - one.first)
                places = torch.stack((torch.zeros_like(cell), cell // one.grid.columns, cell % one.grid.columns))
                made[:, begin - start : end - start] = origin + places
                made[:, end - start :] += one.grid.delta
        return made

    def among(self, start: int, end: int) -> list[tuple[PlacedGrid, int, int]]:
        """The pictures with rows among the indices [start, end), each with its first and last index there."""
        return [
            (one, max(one.first, start), min(one.end, end)) for one in self.grids if one.first < end and one.end > start
        ]

    def to_json(self) -> list[list[int]]:
        """[[first index, rows, columns, id], …]"""
        return [[one.first, one.grid.rows, one.grid.columns, one.id] for one in self.grids]

    @classmethod
    def from_json(cls, raw: Sequence[Sequence[int]], tokens: Sequence[int]) -> "PlacedPictures":
        """The pictures of a capsule with these tokens. Raises CapsuleMismatch if one is a picture that is not
        listed."""
        grids = tuple(PlacedGrid(first, PictureGrid(rows, columns), name) for first, rows, columns, name in raw)
        for index, token in enumerate(tokens):
            if token < 0 and not any(one.first <= index < one.end and one.id == token for one in grids):
                raise CapsuleMismatch(
                    f"the capsule lists no picture for {token} at index {index}, so its positions are not known. "
                    f"Rebuild it from its {len(tokens)} tokens."
                )
        return cls(grids).upto(len(tokens))


def at_hand(seen: Mapping[int, SeenPicture], name: int) -> SeenPicture:
    """Raises StateError if it was never encoded here, or was dropped since."""
    if name not in seen:
        raise StateError(f"picture {name} is not at hand; encode it and put it into the engine's pictures first")
    return seen[name]
