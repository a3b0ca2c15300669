"""The interface that every implementation offers to the benchmark."""

from collections.abc import Sequence
from typing import Protocol


class Peer(Protocol):
    """One sequence at a time. All calls return when the work is done."""

    @property
    def name(self) -> str: ...

    def reset(self) -> None:
        """Forget the sequence."""
        ...

    def append(self, ids: Sequence[int]) -> int:
        """Fold ids and return the most likely next one."""
        ...

    def step(self, token: int) -> int:
        """Fold one id and return the most likely next one."""
        ...
