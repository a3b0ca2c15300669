"""Work that may have to be taken back: its jobs, the state before it, and the guesses of an engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from assistant.device.lease import EngineLease
from assistant.device.schedule import EngineKind, Urgency
from assistant.device.thread import AnyJob, EngineThread

B = TypeVar("B")
S = TypeVar("S")


@dataclass(slots=True)
class Guess(Generic[B]):
    """A guess of one talk on one engine. `before` is determined on the engines' thread, ahead of the first step; None:
    there was no state yet, so there is nothing to take back."""

    before: B | None = None
    jobs: list[AnyJob] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def worked_ms(self) -> float:
        """Milliseconds that the engine spent on it."""
        return sum(job.worked_s for job in self.jobs) * 1000


class Guesses(Generic[B, S]):
    """At most one guess for each talk of an engine. Meanwhile nothing of the talk is written down: see the lease."""

    def __init__(self, engine_thread: EngineThread, kind: EngineKind, lease: EngineLease[S]) -> None:
        self._engine_thread, self._kind, self._lease = engine_thread, kind, lease
        self._guesses: dict[str, Guess[B]] = {}

    def find(self, talk: str) -> Guess[B] | None:
        return self._guesses.get(talk)

    async def over(self, talk: str) -> None:
        """Wait until the talk's state does not belong to a guess."""
        while (guess := self.find(talk)) is not None:  # another may have begun before a waiting task is woken
            await guess.over.wait()

    def begin(self, talk: str) -> None:
        self._guesses[talk] = Guess()
        self._lease.hide(talk)

    def confirm(self, talk: str) -> None:
        """Accept the guess: its results stay, and its work is awaited from here on."""
        self._guesses.pop(talk).over.set()
        self._lease.show(talk)
        self._engine_thread.hasten(self._kind, talk)
        self._engine_thread.post(self._kind, partial(self._lease.note, talk), talk)

    async def take_back(self, talk: str, undo: Callable[[Guess[B]], None]) -> float:
        """Undo the guess by calling `undo` on the engines' thread. Returns the milliseconds that were spent on it."""
        guess = self._guesses.pop(talk)
        guess.over.set()
        work = partial(undo, guess)
        await self._engine_thread.call(self._kind, work, talk=talk, urgency=Urgency.GUESS)
        return guess.worked_ms


def urgency_of(guess: Guess[B] | None) -> Urgency:
    return Urgency.AWAITED if guess is None else Urgency.GUESS
