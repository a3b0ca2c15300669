"""Named memory at a fixed address, with its role and its live extent declared at birth."""

from dataclasses import dataclass, field
from enum import StrEnum

import torch
from torch import Tensor

from capsules.exec.errors import BufferMisuse


class Role(StrEnum):
    """The purpose of a buffer. Only STATE belongs to a capsule."""

    WEIGHT = "weight"  # constant after loading
    STATE = "state"  # survives a step: the closure
    IO = "io"  # written by the host before a replay, or read by it afterwards
    SCRATCH = "scratch"  # meaningless outside a replay


@dataclass(frozen=True)
class Whole:
    """All bytes are live at every position."""

    def __str__(self) -> str:
        return "whole"


@dataclass(frozen=True)
class Prefix:
    """Only the first `position` entries along `axis` are live."""

    axis: int = 0

    def __str__(self) -> str:
        return f"prefix of axis {self.axis}"


@dataclass(frozen=True, eq=False)
class Buffer:
    """One named tensor whose address never changes. Write it in place; never rebind, resize or move it."""

    name: str
    tensor: Tensor
    role: Role
    live: Whole | Prefix
    address: int = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.role, Role) or not isinstance(self.live, Whole | Prefix):
            raise BufferMisuse(f"{self.name}: role is {self.role!r}, live {self.live!r}; a Role, and Whole or Prefix")
        if isinstance(self.live, Prefix) and not 0 <= self.live.axis < self.tensor.dim():
            raise BufferMisuse(
                f"{self.name}: live extent is a {self.live}, but the buffer has axes 0..{self.tensor.dim() - 1}"
            )
        object.__setattr__(self, "address", self.tensor.data_ptr())

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.element_size()

    @property
    def scope(self) -> str:
        return self.name.partition(".")[0]

    @property
    def layout(self) -> str:
        """One line that must be equal in two closures before their capsules are exchangeable."""
        dtype = str(self.tensor.dtype).removeprefix("torch.")
        return f"{self.name} {dtype} {list(self.tensor.shape)} {self.live}"

    def live_view(self, position: int) -> Tensor:
        """The part that a capsule at `position` holds."""
        if isinstance(self.live, Whole):
            return self.tensor
        capacity = self.tensor.shape[self.live.axis]
        if not 0 <= position <= capacity:
            raise BufferMisuse(f"{self.name}: position {position} is outside 0..{capacity}")
        return self.tensor.narrow(self.live.axis, 0, position)

    def check_address(self) -> None:
        if self.tensor.data_ptr() != self.address:
            raise BufferMisuse(
                f"{self.name}: moved from {self.address:#x} to {self.tensor.data_ptr():#x}; captured graphs still "
                "read the old address. Write buffers in place (copy_, index_copy_), never set_ or resize_."
            )


def contains(buffer: Buffer, tensor: Tensor) -> bool:
    """Whether every element of `tensor` lies inside `buffer` (both over the same storage)."""
    if tensor.numel() == 0:
        return True
    first = tensor.data_ptr()
    span = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    last = first + (span + 1) * tensor.element_size()
    return buffer.address <= first and last <= buffer.address + buffer.nbytes


def storage_key(tensor: Tensor) -> int:
    """Identifies the allocation behind a tensor and all its views."""
    return torch.UntypedStorage.data_ptr(tensor.untyped_storage())
