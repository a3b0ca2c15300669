"""Ledger: accepts declarations like a context but allocates nothing: the declaration itself is the memory plan."""

from collections.abc import Sequence

import torch

from capsules.exec import Buffer, Prefix, Role, Whole


class Ledger:
    """Stands in for an ExecContext where engines declare their buffers."""

    device = torch.device("meta")

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []

    def buffer(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, *, role: Role, live: Whole | Prefix | None = None
    ) -> Buffer:
        """A buffer of this shape, without memory."""
        made = Buffer(name, torch.empty(tuple(shape), dtype=dtype, device=self.device), role, live or Whole())
        self._buffers.append(made)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of everything declared."""
        return sum(buffer.nbytes for buffer in self._buffers)

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of one checkpoint: state that is live as a whole."""
        return sum(b.nbytes for b in self._buffers if b.role is Role.STATE and isinstance(b.live, Whole))
