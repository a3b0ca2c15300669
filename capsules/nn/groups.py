"""Scales that published files state for groups of a matrix, so that packing it again keeps the files' own values."""

from dataclasses import dataclass

import torch
from torch import Tensor

GROUP = 32
"""Inputs that share a scale in four bits; published groups are this long or a multiple of it."""


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """A matrix [O, I] whose every weight is scale · (whole + shift), with whole numbers of a few bits.

    scale  [O, I / GROUP] float32, nowhere 0
    shift  the same, or None where it is 0 throughout. It is what files state as a minimum or a zero point, in units of
           the scale: so a zero point stays a whole number, and rounding to bfloat16 costs a minimum the least
    """

    scale: Tensor
    shift: Tensor | None = None

    @classmethod
    def of(cls, scale: Tensor, least: Tensor, middle: int) -> "KnownGroups":
        """From weights that are stored as scale · q + least; q - `middle` is the whole number."""
        flat = scale == 0  # then every weight is `least`
        known = torch.where(flat, torch.where(least == 0, 1.0, least), scale)
        return cls(known, torch.where(flat, (least != 0).float(), least / known + middle))

    @classmethod
    def symmetric(cls, scale: Tensor) -> "KnownGroups":
        """From weights that are stored as scale · whole."""
        return cls(torch.where(scale == 0, 1.0, scale))

    def wholes(self, matrix: Tensor) -> Tensor:
        """The whole numbers of a matrix [O, I] or its groups [O, groups, GROUP], as floats, rounded."""
        tiles = matrix.float().view(*self.scale.shape, -1) / self.scale[..., None]
        if self.shift is not None:
            tiles -= self.shift[..., None]
        return tiles.round_().view(matrix.shape)
