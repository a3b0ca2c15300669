"""Both engines on one device: one thread issues all replays, stages await them from the event loop.

Work is a generator that makes one replay per step, so between any two steps it can be cancelled or give way. Work of
one talk on one lane is done in order. Work that names its talk may find, at its next step, that another talk had the
engine in between; behind work that names none the later of its lane wait. Whose step is next is decided by `schedule`.
What a step yields travels to the loop; a job's consumer may be slow without holding the thread up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from assistant.base.errors import AssistantError, EngineFailed
from assistant.device.schedule import Lane, Speaking, Thinking, next_lane, next_mind, next_voice

T = TypeVar("T")
Work = Generator[T | None, None, None]
"""Yields what it made, or None after a step that made nothing to show."""
_END: Any = object()


class Job(Generic[T]):
    """Work handed to the thread, and its results on the loop's side."""

    def __init__(self, lane: Lane, begin: Callable[[], Work[T]], talk: str | None, idle_work: bool) -> None:
        self.lane = lane
        self.talk = talk
        self.idle_work = idle_work
        self.cancelled = False
        self.played_from: float | None = None
        self.made_s = 0.0
        self.steps = 0
        self._begin = begin
        self._work: Work[T] | None = None
        self._loop = asyncio.get_running_loop()
        self._results: asyncio.Queue[Any] = asyncio.Queue()
        self._over = asyncio.Event()
        self._failure: BaseException | None = None

    # ------------------------------------------------------------------------ on the thread

    def step(self) -> bool:
        """Make the next step; False when the work is over."""
        try:
            if self._work is None:
                if self.cancelled:
                    return self._end(None)
                self._work = self._begin()
            if self.cancelled:
                self._work.close()
                return self._end(None)
            made = next(self._work)
        except StopIteration:
            return self._end(None)
        except AssistantError as error:
            return self._end(error)
        except Exception as error:
            failure = EngineFailed(f"{type(error).__name__}: {error}")
            failure.__cause__ = error
            return self._end(failure)
        if made is not None:
            self._post(self._results.put_nowait, made)
        return True

    def _end(self, failure: BaseException | None) -> bool:
        self._failure = failure
        return False

    def tell_over(self) -> None:
        """The work has let go of everything: tell whoever waits."""

        def over() -> None:
            self._results.put_nowait(_END)
            self._over.set()

        self._post(over)

    def _post(self, call: Callable[..., object], *args: object) -> None:
        """To the loop; a loop that is gone wants nothing."""
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            self.cancelled = True

    # -------------------------------------------------------------------------- on the loop

    async def results(self) -> AsyncGenerator[T, None]:
        """What the steps yield, in order, to the end. Raises what the work raised."""
        while (made := await self._results.get()) is not _END:
            yield made
        if self._failure is not None:
            raise self._failure

    async def ended(self) -> None:
        await self._over.wait()


class Cohost:
    """The thread and its lanes. `start` before the first job, `stop` at the end; both from the loop's side."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lanes: dict[Lane, deque[Job[Any]]] = {lane: deque() for lane in Lane}
        self._latest: dict[Lane, Job[Any]] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="replays", daemon=True)
        self.steps = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the step that is running; waiting jobs are cancelled."""
        with self._changed:
            self._stopping = True
            for lane in self._lanes.values():
                for job in lane:
                    job.cancelled = True
            self._changed.notify()

    def join(self, timeout_s: float | None = None) -> None:
        self._thread.join(timeout_s)

    @property
    def waiting(self) -> int:
        """Jobs that are not over."""
        return sum(len(lane) for lane in self._lanes.values())

    @asynccontextmanager
    async def job(
        self, lane: Lane, begin: Callable[[], Work[T]], *, talk: str | None = None, idle_work: bool = False
    ) -> AsyncGenerator[Job[T], None]:
        """Hand work over; leaving the block cancels it before its next step and waits until it has let go.

        Waiting cannot be interrupted: whoever leaves may rely on the engine's state being at rest.
        """
        job: Job[T] = Job(lane, begin, talk, idle_work)
        with self._changed:
            if self._stopping:
                raise EngineFailed("the engines are being shut down")
            self._lanes[lane].append(job)
            self._changed.notify()
        try:
            yield job
        finally:
            self.cancel(job)
            await _surely(job.ended())

    def cancel(self, job: Job[Any]) -> None:
        with self._changed:
            job.cancelled = True
            self._changed.notify()

    async def call(self, lane: Lane, work: Callable[[], T], *, talk: str | None = None, idle_work: bool = False) -> T:
        """One step that gives one result."""

        def begin() -> Work[tuple[T]]:
            yield (work(),)

        async with self.job(lane, begin, talk=talk, idle_work=idle_work) as job:
            async for (result,) in job.results():
                return result
        raise EngineFailed("the engines were shut down before this was done")

    async def each(
        self, lane: Lane, begin: Callable[[], Work[T]], *, talk: str | None = None, idle_work: bool = False
    ) -> AsyncGenerator[T, None]:
        """The results of work as they are made. Closing the generator cancels the work."""
        async with self.job(lane, begin, talk=talk, idle_work=idle_work) as job:
            results = job.results()
            try:
                async for result in results:
                    yield result
            finally:
                await results.aclose()

    # --------------------------------------------------------------------------- the thread

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            self.steps += 1
            job.steps += 1
            if not job.step():
                with self._changed:
                    self._lanes[job.lane].remove(job)
                job.tell_over()

    def _next(self) -> Job[Any] | None:
        with self._changed:
            while True:
                cancelled = next((job for lane in self._lanes.values() for job in lane if job.cancelled), None)
                if cancelled is not None:
                    return cancelled
                thinker, speaker = self._next_thinker(), self._next_speaker()
                lane = next_lane(
                    None if thinker is None else _thinking(thinker), None if speaker is None else self._lead(speaker)
                )
                if lane is not None:
                    job = thinker if lane is Lane.THINK else speaker
                    assert job is not None
                    self._latest[lane] = job
                    return job
                if self._stopping:
                    return None
                self._changed.wait()

    def _next_thinker(self) -> Job[Any] | None:
        jobs, current = self._firsts(Lane.THINK)
        return jobs[next_mind([_thinking(job) for job in jobs], current)] if jobs else None

    def _next_speaker(self) -> Job[Any] | None:
        jobs, current = self._firsts(Lane.SPEAK)
        return jobs[next_voice([self._lead(job) for job in jobs], current)] if jobs else None

    def _firsts(self, lane: Lane) -> tuple[list[Job[Any]], int | None]:
        """The jobs that may go next, and which of them went last: the first of each talk; behind one that names no
        talk everybody waits."""
        first: dict[str | None, Job[Any]] = {}
        for job in self._lanes[lane]:
            first.setdefault(job.talk, job)
            if job.talk is None:
                break
        jobs = list(first.values())
        latest = self._latest.get(lane)
        return jobs, jobs.index(latest) if latest in jobs else None

    def _lead(self, job: Job[Any]) -> Speaking:
        played = 0.0 if job.played_from is None else self._now() - job.played_from
        return Speaking(max(0.0, job.made_s - played) * 1000)


def _thinking(job: Job[Any]) -> Thinking:
    return Thinking(job.idle_work, job.steps)


async def _surely(waiting: Any) -> None:
    """Wait to the end even if cancelled meanwhile; the cancellation is passed on afterwards."""
    task = asyncio.ensure_future(waiting)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
