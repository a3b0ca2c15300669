"""An event loop whose time is the processor's, so that other load on the machine changes no figure.

It advances by the computation of this process, on all its threads, and jumps when everybody waits.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from concurrent.futures import Executor
from typing import Any

from assistant.device.thread import EngineThread


class ProcessorLoop(asyncio.SelectorEventLoop):
    """Its time is processor time plus the skipped waits. It jumps to the next timer only when no thread is working."""

    def __init__(self) -> None:
        self.jumped = 0.0
        self.engines: EngineThread | None = None
        self._running: set[asyncio.Future[Any]] = set()
        super().__init__(_Waiting(self))

    def time(self) -> float:
        return time.process_time() + self.jumped

    def run_in_executor(  # type: ignore[override]  # any function
        self, executor: Executor | None, func: Any, *args: Any
    ) -> Any:
        work = super().run_in_executor(executor, func, *args)
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        return work

    @property
    def working(self) -> bool:
        return bool(self._running) or (self.engines is not None and self.engines.waiting > 0)


class _Waiting(selectors.DefaultSelector):
    def __init__(self, loop: ProcessorLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        until = None if timeout is None else self._loop.time() + timeout
        while until is None or until > self._loop.time():
            working = self._loop.working
            if events := super().select(0.0005):  # real time: a thread's last result may be on its way
                return events
            if until is not None and not working and not self._loop.working:
                self._loop.jumped += max(0.0, until - self._loop.time())
        return super().select(0)
