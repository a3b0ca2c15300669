"""Both engines on one device: one thread issues all replays, stages await them from the event loop.

Work is a generator that makes one replay per step, so between any two steps it can be cancelled or give way. Work of
one talk on one lane is done in order. Work that names its talk may find, at its next step, that another talk had the
engine in between; work without a talk blocks the later work of its lane. `schedule` decides whose step is next.
Results of steps travel to the loop; a slow consumer of a job does not hold the thread up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from assistant.base.errors import AssistantError, EngineFailed
from assistant.device.schedule import EngineKind, LLMWork, TTSWork, Urgency, due, next_engine, next_llm, next_tts

if TYPE_CHECKING:
    from assistant.device.sleep import Sleep

T = TypeVar("T")
Work = Generator[T | None, None, None]
"""Yields each result, or None after a step without one."""


class _End:
    """Stands behind the last result."""



class Job(Generic[T]):
    """Work handed to the thread, and its results on the loop's side."""

    def __init__(
        self, engine: EngineKind, begin: Callable[[], Work[T]], talk: str | None, urgency: Urgency, wakes: bool = True
    ) -> None:
        self.engine = engine
        self.wakes = wakes
        self.talk = talk
        self.urgency = urgency
        self.cancelled = False
        self.played_from: float | None = None
        self.made_s = 0.0
        self.steps = 0
        self.worked_s = 0.0
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

    def fail(self, failure: BaseException) -> None:
        """Fail the job in place of a step."""
        self._end(failure)

    def tell_over(self) -> None:
        """Wake the waiting tasks: the work has let go of everything."""

        def over() -> None:
            self._results.put_nowait(_End())
            self._over.set()

        self._post(over)

    def _post(self, call: Callable[..., object], *args: object) -> None:
        """Call it on the loop, if the loop still runs."""
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            self.cancelled = True

    # -------------------------------------------------------------------------- on the loop

    async def results(self) -> AsyncGenerator[T, None]:
        """The results of the steps, in order, to the end. Raises what the work raised."""
        while not isinstance(made := await self._results.get(), _End):
            yield made
        if self._failure is not None:
            raise self._failure

    async def ended(self) -> None:
        await self._over.wait()


AnyJob: TypeAlias = Job[Any]
"""A job whose results nobody here looks at."""


class EngineThread:
    """The thread and its lanes. `start` before the first job, `stop` at the end; both from the loop's side."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._queues: dict[EngineKind, deque[AnyJob]] = {engine: deque() for engine in EngineKind}
        self._latest: dict[EngineKind, AnyJob] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="replays", daemon=True)
        self._sleep: Sleep | None = None
        self.steps = 0

    def start(self, sleep: Sleep | None = None) -> None:
        """`sleep` is woken before a step is made."""
        self._sleep = sleep
        self._thread.start()

    @property
    def asleep_bytes(self) -> int:
        """Memory of the models that is let go now; 0: they are awake."""
        return 0 if self._sleep is None else self._sleep.freed_bytes

    def waking_ms(self, asked: float) -> float:
        """How long a request at this moment waited for the models to wake."""
        return 0.0 if self._sleep is None else self._sleep.latest.ms_after(asked)

    async def fall_asleep(self) -> int:
        """Sleep when nothing waits; return the bytes that are let go, 0 if work came up. Raises EngineFailed."""
        sleep = self._sleep
        if sleep is None:
            raise EngineFailed("no model runs here, so none can sleep")
        job: Job[None] = Job(EngineKind.LLM, sleep.fall, "sleep", Urgency.IDLE, wakes=False)
        async with self._handed_over(job):
            async for _ in job.results():
                pass
        return sleep.freed_bytes

    async def wake(self) -> None:
        """Return once the models are awake; any request to them wakes them too."""
        await self.call(EngineKind.LLM, lambda: None, talk="wake")

    def stop(self) -> None:
        """End after the step that is running; waiting jobs are cancelled."""
        with self._changed:
            self._stopping = True
            for engine in self._queues.values():
                for job in engine:
                    job.cancelled = True
            self._changed.notify()

    def join(self, timeout_s: float | None = None) -> bool:
        """Whether it has ended within this time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Jobs that are not over."""
        return sum(len(engine) for engine in self._queues.values())

    @property
    def awaited(self) -> int:
        """The waiting jobs that somebody waits for."""
        with self._changed:
            return sum(job.urgency is Urgency.AWAITED for engine in self._queues.values() for job in engine)

    @asynccontextmanager
    async def job(
        self, engine: EngineKind, begin: Callable[[], Work[T]], *, talk: str | None = None,
        urgency: Urgency = Urgency.AWAITED,
    ) -> AsyncGenerator[Job[T], None]:
        """Hand work over; leaving the block cancels it before its next step and waits until it has let go.

        The wait cannot be interrupted: after the block, the caller may rely on the engine's state being at rest.
        """
        async with self._handed_over(Job(engine, begin, talk, urgency)) as job:
            yield job

    @asynccontextmanager
    async def _handed_over(self, job: Job[T]) -> AsyncGenerator[Job[T], None]:
        with self._changed:
            if self._stopping:
                raise EngineFailed("the engines are being shut down")
            self._hasten(job.engine, job.talk, job.urgency)
            self._queues[job.engine].append(job)
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

    def hasten(self, engine: EngineKind, talk: str) -> None:
        """This talk's work was a guess and is awaited now."""
        with self._changed:
            self._hasten(engine, talk, Urgency.AWAITED)
            self._changed.notify()

    def _hasten(self, engine: EngineKind, talk: str | None, urgency: Urgency) -> None:
        """Make earlier work of a talk as urgent as the work behind it, because one talk's work is done in order."""
        for job in self._queues[engine]:
            if job.talk == talk:
                job.urgency = min(job.urgency, urgency)

    def post(self, engine: EngineKind, work: Callable[[], None], talk: str) -> None:
        """Do one step that nobody waits for, behind everything requested for this talk."""

        def begin() -> Work[None]:
            work()
            yield None

        job: Job[None] = Job(engine, begin, talk, Urgency.AWAITED)
        with self._changed:
            if not self._stopping:
                self._queues[engine].append(job)
                self._changed.notify()

    async def call(
        self, engine: EngineKind, work: Callable[[], T], *, talk: str | None = None,
        urgency: Urgency = Urgency.AWAITED,
    ) -> T:
        """Do one step that gives one result."""

        def begin() -> Work[tuple[T]]:
            yield (work(),)

        async with self.job(engine, begin, talk=talk, urgency=urgency) as job:
            async for (result,) in job.results():
                return result
        raise EngineFailed("the engines were shut down before this was done")

    # --------------------------------------------------------------------------- the thread

    def _serve(self) -> None:
        while (job := self._next_step()) is not None:
            self.steps += 1
            job.steps += 1
            awake = self._awake_for(job)
            begin = self._now()
            goes_on = awake and job.step()
            job.worked_s += self._now() - begin
            if not goes_on:
                with self._changed:
                    self._queues[job.engine].remove(job)
                job.tell_over()

    def _awake_for(self, job: AnyJob) -> bool:
        """Wake the models. If that fails, the work that asked for them fails too; the next work may try again."""
        if self._sleep is not None and job.wakes:
            try:
                self._sleep.wake()
            except OSError as error:
                job.fail(EngineFailed(f"the models cannot be woken ({error}); try again, or restart the assistant"))
                return False
        return True

    def _next_step(self) -> AnyJob | None:
        with self._changed:
            while True:
                cancelled = next((job for engine in self._queues.values() for job in engine if job.cancelled), None)
                if cancelled is not None:
                    return cancelled
                if (job := self._chosen()) is not None:
                    self._latest[job.engine] = job
                    return job
                if self._stopping:
                    return None
                self._changed.wait()

    def _chosen(self) -> AnyJob | None:
        heads = [*self._heads(EngineKind.LLM), *self._heads(EngineKind.TTS)]
        ready = [heads[index] for index in due([self._work(job) for job in heads])]
        llm = [job for job in ready if job.engine is EngineKind.LLM]
        tts = [job for job in ready if job.engine is EngineKind.TTS]
        thinks = llm[next_llm([_llm_work(job) for job in llm], self._place(llm))] if llm else None
        speaks = tts[next_tts([self._tts_work(job) for job in tts], self._place(tts))] if tts else None
        if thinks is None or speaks is None:
            return thinks or speaks
        return thinks if next_engine(_llm_work(thinks), self._tts_work(speaks)) is EngineKind.LLM else speaks

    def _heads(self, engine: EngineKind) -> list[AnyJob]:
        """The jobs that may go next: the first of each talk. A job without a talk blocks all jobs behind it."""
        first: dict[str | None, AnyJob] = {}
        for job in self._queues[engine]:
            first.setdefault(job.talk, job)
            if job.talk is None:
                break
        return list(first.values())

    def _place(self, jobs: list[AnyJob]) -> int | None:
        """The index of the job of one engine that went last."""
        latest = self._latest.get(jobs[0].engine)
        return jobs.index(latest) if latest in jobs else None

    def _work(self, job: AnyJob) -> LLMWork | TTSWork:
        return _llm_work(job) if job.engine is EngineKind.LLM else self._tts_work(job)

    def _tts_work(self, job: AnyJob) -> TTSWork:
        played = 0.0 if job.played_from is None else self._now() - job.played_from
        return TTSWork(max(0.0, job.made_s - played) * 1000, job.urgency, job.steps)


def _llm_work(job: AnyJob) -> LLMWork:
    return LLMWork(job.urgency, job.steps)


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
