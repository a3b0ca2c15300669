"""An engine's work: its cost, and its effect on the state of a talk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Cost:
    """Time spent on one named kind of work (`restore`, `rollback`, `prefill`, `tts_rows`, …)."""

    name: str
    ms: float


@dataclass(frozen=True, slots=True)
class Synced:
    """How an engine's state was brought in line with a talk. `what` None: nothing had to be done."""

    what: Literal["rollback", "restore", "rebuild"] | None
    position: int
    ms: float


class Stateful(Protocol):
    """An engine that stores the state of talks here.

    Between `guess` and `confirm` or `take_back`, all work requested for the talk is one guess. It gives way to any
    awaited work, of any talk and on either engine, and stops once enough is made, until it is known to be right.
    """

    async def fork(self, talk: str, branch: str) -> None:
        """Let `branch`, a talk of its own, begin with the state that `talk` is in, bit for bit. Each goes on without
        the other. Not while a reply of the talk is being made."""
        ...

    def guess(self, talk: str) -> None:
        """Treat work requested for the talk from here on as a guess, which may turn out to be for nothing."""
        ...

    def confirm(self, talk: str) -> None:
        """Accept the guess: from here on it is work like any other."""
        ...

    async def take_back(self, talk: str) -> float:
        """Undo the guess, whose generators are closed: state and next reply are, bit for bit, as if it had never begun.
        Returns the milliseconds that the engine spent on it."""
        ...

    async def park(self, talk: str) -> None:
        """Pause the talk: store its state where it outlives the process, if there is room."""
        ...

    async def forget_talk(self, talk: str) -> None:
        """End the talk: drop everything stored of it."""
        ...
