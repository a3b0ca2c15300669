"""An event loop whose time jumps: when every task waits, the next timer is due at once. No test sleeps."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(AssertionError):
    """Every task waits for something that nobody will do."""


class _Jump(selectors.SelectSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise Stuck(f"at {self.loop.time():.3f} s every task waits for ever")
        self.loop.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time begins at 0 and moves only when nothing can run."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _Jump()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self.now


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time. Raises Stuck instead of hanging."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
