"""An engine's work: what it cost, and what it did to the state of a talk."""

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
    """How an engine's state was brought in line with a talk. `what` None: nothing was to be done."""

    what: Literal["rollback", "restore", "rebuild"] | None
    position: int
    ms: float


class Stateful(Protocol):
    """An engine that keeps the state of talks here.

    Between `guess` and `confirm` or `take_back` all that is asked for the talk is one guess. It gives way to whatever
    is awaited, of any talk and on either engine, and stops where enough is made until it is known to be right.
    """

    async def fork(self, talk: str, branch: str) -> None:
        """`branch`, a talk of its own, begins with the state that `talk` is in, bit for bit. Either goes on without the
        other. Not while a reply of the talk is being made."""
        ...

    def guess(self, talk: str) -> None:
        """The work asked for the talk from here on may turn out to be for nothing."""
        ...

    def confirm(self, talk: str) -> None:
        """The guess was right: from here on it is work like any other."""
        ...

    async def take_back(self, talk: str) -> float:
        """The guess was wrong, and its generators are closed: state and next reply are, bit for bit, as if it had never
        begun. Returns the milliseconds that the engine had spent on it."""
        ...

    async def park(self, talk: str) -> None:
        """The talk pauses: keep its state where it outlives the process, if there is room."""
        ...

    async def forget_talk(self, talk: str) -> None:
        """The talk is over: drop all that is held of it."""
        ...
