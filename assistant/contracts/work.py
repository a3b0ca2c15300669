"""What an engine tells of its work: what it cost, and what it did to the state of a talk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Cost:
    """Time spent on one named kind of work (`restore`, `rollback`, `prefill`, `tts_rows`, …)."""

    name: str
    ms: float


@dataclass(frozen=True, slots=True)
class Synced:
    """What it took to bring an engine's state in line with a talk. `what` None: nothing was to be done."""

    what: Literal["rollback", "restore", "snapshot", "rebuild"] | None
    position: int
    ms: float
