"""Matrices of 4-bit integers with a scale per group, as published files have them.

The format is compressed-tensors' `pack-quantized`: its values lie along the input like a plain row, lowest bits
first, and it is what llm-compressor writes for the dense sizes that a desktop GPU holds. (The official GPTQ files cover
the 27B and the mixtures only, and pack the other way round.)
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Int4Weight:
    """Signed 4-bit values times the scale of their group along the input."""

    packed: Tensor  # [O, I / 8] int32
    scale: Tensor  # [O, I / group] float32

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self.packed.shape[0], self.packed.shape[1] * 8))

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """[O, I]; the product is taken in float32 and rounded once."""
        return unpack_int4(self.packed, self.scale).to(dtype)


def unpack_int4(packed: Tensor, scale: Tensor) -> Tensor:
    """[O, I / 8] int32 and [O, I / group] scales to [O, I] float32: value = (4 bits - 8) · scale."""
    shifts = torch.arange(0, 32, 4, device=packed.device, dtype=torch.int32)
    values = ((packed[..., None] >> shifts) & 15).flatten(-2) - 8  # [O, I]
    groups = scale.shape[-1]
    return (values.float().unflatten(-1, (groups, -1)) * scale.float()[..., None]).flatten(-2)
