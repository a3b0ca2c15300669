"""What an engine tells of its work: what it cost, and what it did to the state of a talk."""

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
    """What it took to bring an engine's state in line with a talk. `what` None: nothing was to be done."""

    what: Literal["rollback", "restore", "rebuild"] | None
    position: int
    ms: float


class Forks(Protocol):
    """An engine that keeps the state of talks. Asked for only where `capsules`."""

    async def fork(self, talk: str, branch: str) -> None:
        """`branch`, a talk of its own, begins with the state that `talk` is in, bit for bit. Either goes on without the
        other. Not while a reply of the talk is being made."""
        ...


class TakesBack(Protocol):
    """An engine whose work for a talk may turn out to be for nothing. Asked for only where `capsules`.

    Between `guess` and `confirm` or `drop` all that is asked for the talk is one guess. It gives way to whatever is
    awaited, of any talk and on either engine, and stops where enough is made until it is known to be right.
    """

    def guess(self, talk: str) -> None: ...

    def confirm(self, talk: str) -> None:
        """It was right: from here on it is work like any other."""
        ...

    async def drop(self, talk: str) -> float:
        """It was wrong, and its generators are closed: state and next reply are, bit for bit, as if it had never begun.
        Returns the milliseconds that the engine had spent on it."""
        ...
