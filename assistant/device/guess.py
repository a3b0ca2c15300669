"""Work that may have to be taken back: its jobs, and the state before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from assistant.device.schedule import Urgency
from assistant.device.thread import AnyJob

B = TypeVar("B")


@dataclass(slots=True)
class Guess(Generic[B]):
    """Of one talk on one engine. `before` is found on the engines' thread, ahead of the first step; None: there was
    none yet, so there is nothing to take back."""

    before: B | None = None
    jobs: list[AnyJob] = field(default_factory=list)

    @property
    def worked_ms(self) -> float:
        """Time that the engine spent on it."""
        return sum(job.worked_s for job in self.jobs) * 1000


def urgency_of(guess: Guess[B] | None) -> Urgency:
    return Urgency.AWAITED if guess is None else Urgency.GUESS
