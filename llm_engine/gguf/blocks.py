"""How GGUF files store numbers: the types that are read, and their values in float32.

A row is cut into blocks, each with scales of its own. Every function takes blocks [n, bytes] uint8 and returns
[n, values] float32, by the same operations in the same order as ggml, so the results are equal to the bit.
Source: github.com/ggml-org/ggml, ggml-quants.c; the tests compare with the package `gguf`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from capsules.nn.groups import GROUP, KnownGroups
from llm_engine.names import Stored

Steps = tuple[Tensor, Tensor | None]
"""Scale and minimum of each group of 32, [n, groups]: values are scale · q + minimum, or scale · (q - middle)."""


@dataclass(frozen=True)
class BlockType:
    """One way of storing numbers: so many values in so many bytes, of so many bits."""

    name: str
    values: int
    nbytes: int
    decode: Callable[[Tensor], Tensor]
    bits: int = 16
    steps: Callable[[Tensor], Steps] | None = None  # None: other groups than 32 values have a scale
    shifted: bool = False  # whether there is a minimum

    @property
    def stored(self) -> Stored:
        return Stored(self.bits, self.steps is not None, self.shifted)

    def groups(self, stored: Tensor) -> KnownGroups:
        """Scales and shifts of [rows, bytes] uint8."""
        assert self.steps is not None
        scale, least = self.steps(stored.reshape(-1, self.nbytes))
        rows = (stored.shape[0], -1)
        if least is None:
            return KnownGroups.symmetric(scale.reshape(rows))
        return KnownGroups.of(scale.reshape(rows), least.reshape(rows), 1 << (self.bits - 1))


def widen(stored: Tensor, kind: BlockType) -> Tensor:
    """[rows, bytes] uint8 to [rows, columns] float32."""
    blocks = stored.reshape(-1, kind.nbytes)
    return kind.decode(blocks).view(*stored.shape[:-1], -1)


def _halves(blocks: Tensor, at: int) -> Tensor:
    """The float16 at byte `at` of each block, [n, 1]."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: Tensor, run: int) -> Tensor:
    """Runs of so many bytes hold the values of their lower halves, then those of the upper: [n, 2 · bytes]."""
    cut = packed.unflatten(-1, (-1, 1, run))
    return torch.cat((cut & 15, cut >> 4), -2).flatten(1)


def _bits(packed: Tensor, width: int, run: int) -> Tensor:
    """The same for fields of 1, 2 or 4 bits."""
    cut = packed.unflatten(-1, (-1, 1, run))
    shifts = torch.arange(0, 8, width, dtype=torch.uint8)[:, None]
    return ((cut >> shifts) & (2**width - 1)).flatten(1)


def _fifth(packed: Tensor) -> Tensor:
    """Four bytes to the fifth bits of 32 values."""
    return _bits(packed[..., None].flatten(1), 1, 1)


def _aligned(blocks: Tensor) -> Tensor:
    """The bytes where wider types may begin: a file may declare any alignment."""
    blocks = blocks.contiguous()
    return blocks if blocks.storage_offset() % 4 == 0 else blocks.clone()


def _float32(blocks: Tensor) -> Tensor:
    return _aligned(blocks).view(torch.float32)


def _float16(blocks: Tensor) -> Tensor:
    return _aligned(blocks).view(torch.float16).float()


def _bfloat16(blocks: Tensor) -> Tensor:
    return _aligned(blocks).view(torch.bfloat16).float()


def _q8_0(b: Tensor) -> Tensor:
    return b[:, 2:].contiguous().view(torch.int8).float() * _halves(b, 0)


def _q4_0(b: Tensor) -> Tensor:
    return _halves(b, 0) * (_nibbles(b[:, 2:], 16).float() - 8)


def _q4_1(b: Tensor) -> Tensor:
    return _halves(b, 0) * _nibbles(b[:, 4:], 16).float() + _halves(b, 2)


def _q5_0(b: Tensor) -> Tensor:
    whole = _nibbles(b[:, 6:], 16) | (_fifth(b[:, 2:6]) << 4)
    return _halves(b, 0) * (whole.float() - 16)


def _q5_1(b: Tensor) -> Tensor:
    whole = _nibbles(b[:, 8:], 16) | (_fifth(b[:, 4:8]) << 4)
    return _halves(b, 0) * whole.float() + _halves(b, 2)


def _k_scales(b: Tensor) -> tuple[Tensor, Tensor]:
    """Scales and minima of a block of eight groups, [n, 8, 1]: two float16 times twelve bytes of six-bit numbers."""
    low, high, both = b[:, 4:8], b[:, 8:12], b[:, 12:16]
    scale = torch.cat((low & 63, (both & 15) | ((low >> 2) & 48)), -1)
    least = torch.cat((high & 63, (both >> 4) | ((high >> 2) & 48)), -1)
    return (_halves(b, 0) * scale.float())[..., None], (_halves(b, 2) * least.float())[..., None]


def _q4_k(b: Tensor) -> Tensor:
    scale, least = _k_scales(b)
    return (scale * _nibbles(b[:, 16:], 32).view(-1, 8, 32).float() - least).flatten(1)


def _q5_k(b: Tensor) -> Tensor:
    scale, least = _k_scales(b)
    whole = _nibbles(b[:, 48:], 32) | (_bits(b[:, 16:48], 1, 32) << 4)
    return (scale * whole.view(-1, 8, 32).float() - least).flatten(1)


def _q6_k(b: Tensor) -> Tensor:
    scale = _halves(b, 208) * b[:, 192:208].contiguous().view(torch.int8).float()
    whole = _nibbles(b[:, :128], 64) | (_bits(b[:, 128:192], 2, 32) << 4)
    return (scale[..., None] * (whole.view(-1, 16, 16).float() - 32)).flatten(1)


def _symmetric(b: Tensor) -> Steps:
    return _halves(b, 0), None


def _with_minimum(b: Tensor) -> Steps:
    return _halves(b, 0), _halves(b, 2)


def _eight(b: Tensor) -> Steps:
    scale, least = _k_scales(b)
    return scale[..., 0], -least[..., 0]


TYPES = {
    0: BlockType("F32", 1, 4, _float32),
    1: BlockType("F16", 1, 2, _float16),
    2: BlockType("Q4_0", GROUP, 18, _q4_0, 4, _symmetric),
    3: BlockType("Q4_1", GROUP, 20, _q4_1, 4, _with_minimum, shifted=True),
    6: BlockType("Q5_0", GROUP, 22, _q5_0, 5, _symmetric),
    7: BlockType("Q5_1", GROUP, 24, _q5_1, 5, _with_minimum, shifted=True),
    8: BlockType("Q8_0", GROUP, 34, _q8_0, 8, _symmetric),
    12: BlockType("Q4_K", 256, 144, _q4_k, 4, _eight, shifted=True),
    13: BlockType("Q5_K", 256, 176, _q5_k, 5, _eight, shifted=True),
    14: BlockType("Q6_K", 256, 210, _q6_k, 6),
    30: BlockType("BF16", 1, 2, _bfloat16),
}
"""By their numbers in a file."""

NAMES = {
    10: "Q2_K", 11: "Q3_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S",
    22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip
"""Types that exist and are not read, so that an error can name them."""
