"""Matrices that a folder stores in FP8 or as compressed-tensors int4: what belongs to each, and its plain values.

fp8    `weight` [O, I] E4M3, a scale for each block (`weight_scale_inv`), or for each row or tensor (`weight_scale`)
int4   `weight_packed` [O, I / 8] int32, `weight_scale` [O, groups] and, if it is asymmetric, `weight_zero_point`
       [O / 8, groups] int32
"""

from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from capsules.nn.fp8 import unpack_fp8
from capsules.nn.groups import GROUP, KnownGroups
from capsules.nn.int4 import unpack_int4
from capsules.safefile import TensorEntry
from capsules.weights import DTYPES, Target
from llm_engine.errors import CheckpointError
from llm_engine.names import Stored
from llm_engine.quantisation import Quantisation

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_FP8 = "F8_E4M3"
PLAIN, FP8, INT4 = "plain", "fp8", "int4"


class QuantisedMatrices:
    """The quantised matrices of one checkpoint. `name` is the full name of a plain matrix, whatever is stored."""

    def __init__(self, path: Path, names: Mapping[str, TensorEntry], quantisation: Quantisation | None) -> None:
        self._path, self._names, self._quantisation = path, names, quantisation
        self._scales: dict[str, Tensor] = {}  # read first, because unpacking needs them
        self._zeros: dict[str, Tensor] = {}

    def stored_as(self, name: str) -> str:
        """PLAIN, FP8 or INT4, judged by the files. Raises CheckpointError for half a quantised tensor."""
        if _beside(name, "weight_packed") in self._names:
            stored = INT4
        elif name in self._names and self._names[name].dtype == _FP8:
            stored = FP8
        else:
            return PLAIN
        described = self._quantisation
        usual = "weight_scale_inv" if stored == FP8 else "weight_scale"
        scale = _beside(name, described.scales if described else usual)
        if scale not in self._names:
            raise CheckpointError(f"{self._path}: {name} is quantised ({stored}) but {scale} is missing")
        if described is None or described.method != stored:
            raise CheckpointError(
                f"{self._path}: {name} is stored as {stored}, but config.json describes "
                f"{described.method if described else 'no'} quantisation"
            )
        return stored

    def held(self, name: str) -> Stored:
        """The precision of a quantised matrix."""
        if self.stored_as(name) == FP8 or self._described.block[1] % GROUP:
            return Stored()
        return Stored(4, grouped=True, shifted=self._zero_name(name) in self._names)

    def block(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """How many rows and columns of a quantised matrix of this shape share a scale."""
        rows, columns = self._described.block
        return rows, columns or shape[1]

    def plan_scales(self, name: str, shape: tuple[int, ...], device: torch.device) -> dict[str, Target]:
        """The plan that reads the scales of a matrix, and its zero points."""
        if self.stored_as(name) == PLAIN:
            return {}
        rows, columns = blocks(shape, self.block(shape))
        key = self._scale_name(name)
        entry = self._names[key]
        scale = torch.zeros((1, 1) if prod(entry.shape) == 1 else (rows, columns), device=device)
        self._scales[name] = scale.expand(rows, columns)  # one for the whole matrix is one for each row
        plan = {key: Target(scale, shape=entry.shape, accept=_FLOATS)}
        zero = self._zero_name(name)
        if self._described.method == INT4 and zero in self._names:
            self._zeros[name] = torch.zeros(-(-rows // 8), columns, dtype=torch.int32, device=device)
            plan[zero] = Target(self._zeros[name])
        return plan

    def scale(self, name: str) -> Tensor:
        """[rows of blocks, columns of blocks] float32."""
        return self._scales[name]

    def scale_type(self, name: str) -> torch.dtype:
        """The floats in which the file holds a matrix's scales."""
        return DTYPES[self._names[self._scale_name(name)].dtype]

    def shift(self, name: str) -> Tensor | None:
        """[O, groups] float32: what is added to the four bits less 8; None for a symmetric matrix."""
        if name not in self._zeros:
            return None
        shifts = torch.arange(0, 32, 4, device=self._zeros[name].device, dtype=torch.int32)[:, None]
        zero = ((self._zeros[name][:, None] >> shifts) & 15).flatten(0, 1)  # [O, groups]; eight rows in a word
        return (8 - zero[: self._scales[name].shape[0]]).float()

    def known(self, name: str) -> KnownGroups:
        """Scales and shifts of a matrix of four bits, for groups of 32."""
        times = self._described.block[1] // GROUP
        shift = self.shift(name)
        wide = None if shift is None else shift.repeat_interleave(times, 1)
        return KnownGroups(KnownGroups.symmetric(self._scales[name]).scale.repeat_interleave(times, 1), wide)

    def unpacking(self, name: str) -> Callable[[Tensor], Tensor]:
        """The conversion from the file's contents to the plain matrix."""
        scale = self._scales[name].cpu()
        if self.stored_as(name) == FP8:
            return lambda v: unpack_fp8(v, scale, self.block(tuple(v.shape)))
        shift = self.shift(name)
        shift = None if shift is None else shift.cpu()
        return lambda v: unpack_int4(v, scale, shift)

    def values(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...], torch.dtype]:
        """Name, shape and type of the values of a matrix [O, I] in the files."""
        if self.stored_as(name) == FP8:
            return name, shape, torch.float8_e4m3fn
        return _beside(name, "weight_packed"), (shape[0], shape[1] // 8), torch.int32

    def left_out(self) -> list[str]:
        """Names and patterns of what stands beside the values. Activations are not quantised here: their scales are
        of no use."""
        found = [self._scale_name(name) for name in self._scales] + [self._zero_name(name) for name in self._zeros]
        return [*found, "*.weight_shape", "*.input_scale"]

    @property
    def _described(self) -> Quantisation:
        assert self._quantisation is not None
        return self._quantisation

    def _scale_name(self, name: str) -> str:
        return _beside(name, self._described.scales)

    def _zero_name(self, name: str) -> str:
        return _beside(name, "weight_zero_point")


def blocks(shape: tuple[int, ...], block: tuple[int, int]) -> tuple[int, int]:
    """How many blocks it takes to cover a matrix."""
    return -(-shape[0] // block[0]), -(-shape[1] // block[1])


def _beside(name: str, other: str) -> str:
    """The tensor that stands beside a matrix called `weight`."""
    return name.removesuffix("weight") + other
