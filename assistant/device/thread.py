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
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeAlias, TypeVar

from assistant.base.errors import AssistantError, EngineFailed
from assistant.device.schedule import EngineKind, LLMWork, TTSWork, next_engine, next_llm, next_tts

T = TypeVar("T")
Work = Generator[T | None, None, None]
"""Yields what it made, or None after a step that made nothing to show."""


class _End:
    """Stands behind the last result."""



class Job(Generic[T]):
    """Work handed to the thread, and its results on the loop's side."""

    def __init__(self, engine: EngineKind, begin: Callable[[], Work[T]], talk: str | None, idle_work: bool) -> None:
        self.engine = engine
        self.talk = talk
        self.idle_work = idle_work
        self.cancelled = False
        self.played_from: float | None = None
        self.made_s = 0.0
        self.steps = 0
        self._begin = begin
        self._work: Work[T] | None = None
        self._loop = asyncio.get_running_loop()
        self._results: asyncio.Queue[T | _End] = asyncio.Queue()
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
            self._results.put_nowait(_End())
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
        while not isinstance(made := await self._results.get(), _End):
            yield made
        if self._failure is not None:
            raise self._failure

    async def ended(self) -> None:
        await self._over.wait()


AnyJob: TypeAlias = Job[Any]
"""One whose results nobody here looks at."""


class EngineThread:
    """The thread and its lanes. `start` before the first job, `stop` at the end; both from the loop's side."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._queues: dict[EngineKind, deque[AnyJob]] = {engine: deque() for engine in EngineKind}
        self._latest: dict[EngineKind, AnyJob] = {}
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
            for engine in self._queues.values():
                for job in engine:
                    job.cancelled = True
            self._changed.notify()

    def join(self, timeout_s: float | None = None) -> None:
        self._thread.join(timeout_s)

    @property
    def waiting(self) -> int:
        """Jobs that are not over."""
        return sum(len(engine) for engine in self._queues.values())

    @asynccontextmanager
    async def job(
        self, engine: EngineKind, begin: Callable[[], Work[T]], *, talk: str | None = None, idle_work: bool = False
    ) -> AsyncGenerator[Job[T], None]:
        """Hand work over; leaving the block cancels it before its next step and waits until it has let go.

        Waiting cannot be interrupted: whoever leaves may rely on the engine's state being at rest.
        """
        job: Job[T] = Job(engine, begin, talk, idle_work)
        with self._changed:
            if self._stopping:
                raise EngineFailed("the engines are being shut down")
            self._queues[engine].append(job)
            self._changed.notify()
        try:
            yield job
        finally:
            self.cancel(job)
            await _surely(job.ended())

    def cancel(self, job: AnyJob) -> None:
        with self._changed:
            job.cancelled = True
            self._changed.notify()

    async def call(
        self, engine: EngineKind, work: Callable[[], T], *, talk: str | None = None, idle_work: bool = False
    ) -> T:
        """One step that gives one result."""

        def begin() -> Work[tuple[T]]:
            yield (work(),)

        async with self.job(engine, begin, talk=talk, idle_work=idle_work) as job:
            async for (result,) in job.results():
                return result
        raise EngineFailed("the engines were shut down before this was done")

    async def each(
        self, engine: EngineKind, begin: Callable[[], Work[T]], *, talk: str | None = None, idle_work: bool = False
    ) -> AsyncGenerator[T, None]:
        """The results of work as they are made. Closing the generator cancels the work."""
        async with self.job(engine, begin, talk=talk, idle_work=idle_work) as job:
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
                    self._queues[job.engine].remove(job)
                job.tell_over()

    def _next(self) -> AnyJob | None:
        with self._changed:
            while True:
                cancelled = next((job for engine in self._queues.values() for job in engine if job.cancelled), None)
                if cancelled is not None:
                    return cancelled
                llm, tts = self._next_llm(), self._next_tts()
                engine = next_engine(
                    None if llm is None else _llm_work(llm), None if tts is None else self._lead(tts)
                )
                if engine is not None:
                    job = llm if engine is EngineKind.LLM else tts
                    assert job is not None
                    self._latest[engine] = job
                    return job
                if self._stopping:
                    return None
                self._changed.wait()

    def _next_llm(self) -> AnyJob | None:
        jobs, current = self._firsts(EngineKind.LLM)
        return jobs[next_llm([_llm_work(job) for job in jobs], current)] if jobs else None

    def _next_tts(self) -> AnyJob | None:
        jobs, current = self._firsts(EngineKind.TTS)
        return jobs[next_tts([self._lead(job) for job in jobs], current)] if jobs else None

    def _firsts(self, engine: EngineKind) -> tuple[list[AnyJob], int | None]:
        """The jobs that may go next, and which of them went last: the first of each talk; behind one that names no
        talk everybody waits."""
        first: dict[str | None, AnyJob] = {}
        for job in self._queues[engine]:
            first.setdefault(job.talk, job)
            if job.talk is None:
                break
        jobs = list(first.values())
        latest = self._latest.get(engine)
        return jobs, jobs.index(latest) if latest in jobs else None

    def _lead(self, job: AnyJob) -> TTSWork:
        played = 0.0 if job.played_from is None else self._now() - job.played_from
        return TTSWork(max(0.0, job.made_s - played) * 1000)


def _llm_work(job: AnyJob) -> LLMWork:
    return LLMWork(job.idle_work, job.steps)


async def _surely(waiting: Awaitable[None]) -> None:
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
