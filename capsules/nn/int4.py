"""Matrices of 4-bit integers with a scale per group: as in published files, or made from wider ones.

The format is compressed-tensors' `pack-quantized`: its values lie along the input like a plain row, lowest bits
first, and it is what llm-compressor writes for the dense sizes that a desktop GPU holds. (GPTQ and AWQ pack the other
way round.)
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from capsules.nn.groups import GROUP, KnownGroups


@dataclass(frozen=True, eq=False)
class Int4Weight:
    """Signed 4-bit values, plus the shift of their group along the input if groups have one, times its scale."""

    packed: Tensor  # [O, I / 8] int32
    scale: Tensor  # [O, I / group] bfloat16, or the published type
    shift: Tensor | None = None  # [O, I / group] bfloat16

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self.packed.shape[0], self.packed.shape[1] * 8))

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns with one scale."""
        return 1, self.shape[1] // self.scale.shape[1]

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """[O, I]; the product is taken in float32 and rounded once."""
        return unpack_int4(self.packed, self.scale, self.shift).to(dtype)

    def __getitem__(self, rows: slice) -> "Int4Weight":
        return Int4Weight(self.packed[rows], self.scale[rows], None if self.shift is None else self.shift[rows])

    @property
    def values(self) -> Tensor:
        """The tensor that a loader fills."""
        return self.packed

    def fill(self, matrix: Tensor, known: KnownGroups | None = None) -> Tensor:
        """Take over the scales of `matrix` [O, I] and return its values, which a loader copies into `values`.

        known  scales and shifts that it was published with; its values are found again
        """
        if known is None:
            packed, scale = quantise_int4(matrix.to(self.scale.device))
            self.scale.copy_(scale)
        else:
            packed = _joined(known.wholes(matrix).clamp_(-8, 7).add_(8).to(torch.int32))
            self.scale.copy_(known.scale)
        if self.shift is not None:
            given = None if known is None else known.shift
            self.shift.zero_() if given is None else self.shift.copy_(given)
        return packed


def quantise_int4(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """[O, I] of any float type, I a multiple of GROUP, to packed values and bfloat16 scales, as in the panels.

    The largest magnitude of a group becomes -8; the scale takes the sign needed for that. Zeros stay.
    """
    tiles = matrix.float().unflatten(1, (-1, GROUP))
    low, high = tiles.aminmax(dim=-1)
    scale = (torch.where(high > -low, high, low) / -8).bfloat16()
    scale = torch.where(scale == 0, 1.0, scale)
    values = (tiles / scale[..., None].float()).round_().clamp_(-8, 7).add_(8).to(torch.int32)
    return _joined(values.flatten(1)), scale


def _joined(values: Tensor) -> Tensor:
    """[O, I] of 0 … 15 to [O, I / 8] int32."""
    shifts = torch.arange(0, 32, 4, device=values.device, dtype=torch.int32)
    return (values.unflatten(1, (-1, 8)) << shifts).sum(-1, dtype=torch.int32)


def empty_int4(rows: int, columns: int, device: torch.device) -> Int4Weight:
    """Uninitialised; columns a multiple of GROUP."""
    packed = torch.empty(rows, columns // 8, dtype=torch.int32, device=device)
    return Int4Weight(packed, torch.empty(rows, columns // GROUP, dtype=torch.bfloat16, device=device))


def unpack_int4(packed: Tensor, scale: Tensor, shift: Tensor | None = None) -> Tensor:
    """[O, I / 8] int32 and [O, I / group] scales to [O, I] float32: value = (4 bits - 8 + shift) · scale."""
    shifts = torch.arange(0, 32, 4, device=packed.device, dtype=torch.int32)
    values = ((packed[..., None] >> shifts) & 15).flatten(-2) - 8  # [O, I]
    tiles = values.float().unflatten(-1, (scale.shape[-1], -1))
    if shift is not None:
        tiles = tiles + shift.float()[..., None]
    return (tiles * scale.float()[..., None]).flatten(-2)
