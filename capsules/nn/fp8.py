"""Matrices in FP8 (E4M3) with a float32 scale per block: as in published files, or made from wider ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

LARGEST = 448.0  # of E4M3


@dataclass(frozen=True, eq=False)
class Fp8Weight:
    """E4M3 values times the scale of their block. Indexed by a slice of rows that begins at a block's edge."""

    values: Tensor  # [O, I] float8_e4m3fn
    scale: Tensor  # [ceil(O / rows), ceil(I / columns)] float32; files call it weight_scale_inv, yet it multiplies
    block: tuple[int, int]

    @property
    def shape(self) -> torch.Size:
        return self.values.shape

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """[O, I]; the product is taken in float32 and rounded once."""
        return unpack_fp8(self.values, self.scale, self.block).to(dtype)

    def __getitem__(self, rows: slice) -> "Fp8Weight":
        first, last, _ = rows.indices(self.shape[0])
        assert first % self.block[0] == 0, "a block has one scale"
        return Fp8Weight(self.values[rows], self.scale[first // self.block[0] : -(-last // self.block[0])], self.block)

    def rows(self, ids: Tensor) -> Tensor:
        """Rows of the matrix, typed like activations beside packed weights: [T] int64 to [T, I] bfloat16.

        Uses plain indexing: on a GPU `index_select`, and `embedding` built on it, do not support eight-bit floats.
        """
        wide = self.scale[ids // self.block[0]].repeat_interleave(self.block[1], 1)[:, : self.shape[1]]
        return (self.values[ids].float() * wide).bfloat16()

    def fill(self, matrix: Tensor) -> Tensor:
        """Take over the scales of `matrix` [O, I] and return its values, which a loader copies into `values`."""
        values, scale = quantise_fp8(matrix.to(self.scale.device), self.block)
        self.scale.copy_(scale)
        return values


def empty_fp8(rows: int, columns: int, block: tuple[int, int], device: torch.device) -> Fp8Weight:
    """Uninitialised."""
    values = torch.empty(rows, columns, dtype=torch.float8_e4m3fn, device=device)
    scale = torch.empty(-(-rows // block[0]), -(-columns // block[1]), device=device)
    return Fp8Weight(values, scale, block)


def quantise_fp8(matrix: Tensor, block: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """[O, I] of any float type to values and scales: the largest magnitude of a block becomes 448; zeros stay."""
    rows, columns = matrix.shape
    short = (0, -columns % block[1], 0, -rows % block[0])
    tiles = torch.nn.functional.pad(matrix.float(), short).unflatten(1, (-1, block[1])).unflatten(0, (-1, block[0]))
    peak = tiles.abs().amax((1, 3))
    scale = torch.where(peak > 0, peak / LARGEST, 1.0)
    values = (tiles / scale[:, None, :, None]).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
    return values.flatten(2).flatten(0, 1)[:rows, :columns], scale


def unpack_fp8(values: Tensor, scale: Tensor, block: tuple[int, int]) -> Tensor:
    """[O, I] float8 and its block scales to [O, I] float32. The last block of either axis may be short."""
    rows, columns = values.shape
    wide = scale.float().repeat_interleave(block[0], 0)[:rows].repeat_interleave(block[1], 1)[:, :columns]
    return values.float() * wide
