"""Work as steps on the one thread: in order, stopped before its next step, refused after the end."""

import asyncio

import pytest

from assistant.base.errors import EngineFailed
from assistant.device.schedule import GUESS_STEPS, EngineKind, Urgency
from assistant.device.thread import EngineThread


def counted(n, log, name):
    for i in range(n):
        log.append((name, i))
        yield i


def with_cohost(play):
    async def inside():
        engine_thread = EngineThread()
        engine_thread.start()
        try:
            return await asyncio.wait_for(play(engine_thread), 30)
        finally:
            engine_thread.stop()
            await asyncio.to_thread(engine_thread.join)

    return asyncio.run(inside())


async def each(engine_thread, engine, begin, **options):
    async with engine_thread.job(engine, begin, **options) as job:
        async for result in job.results():
            yield result


def test_results_come_in_order_and_errors_come_through():
    async def play(engine_thread):
        log = []
        assert [i async for i in each(engine_thread, EngineKind.LLM, lambda: counted(5, log, "a"))] == [0, 1, 2, 3, 4]

        def broken():
            yield 1
            raise ZeroDivisionError("so it is")

        got = []
        with pytest.raises(EngineFailed, match="ZeroDivisionError: so it is"):
            async for i in each(engine_thread, EngineKind.LLM, broken):
                got.append(i)
        assert got == [1] and await engine_thread.call(EngineKind.TTS, lambda: 7) == 7

    with_cohost(play)


def test_leaving_stops_before_the_next_step_and_lets_go():
    async def play(engine_thread):
        log, closed = [], []

        def endless():
            try:
                while True:
                    log.append(len(log))
                    yield len(log)
            finally:
                closed.append(True)

        async with engine_thread.job(EngineKind.LLM, endless) as job:
            async for i in job.results():
                if i >= 3:
                    break
        count = len(log)
        assert closed and engine_thread.waiting == 0
        await engine_thread.call(EngineKind.LLM, lambda: None)
        assert len(log) == count

    with_cohost(play)


def test_one_lane_works_in_order_and_a_cancelled_job_never_begins():
    async def play(engine_thread):
        log = []

        async def collect(name, n):
            return [i async for i in each(engine_thread, EngineKind.LLM, lambda: counted(n, log, name))]

        first, second = asyncio.ensure_future(collect("a", 50)), asyncio.ensure_future(collect("b", 5))
        third = asyncio.ensure_future(collect("c", 5))
        await asyncio.sleep(0)
        third.cancel()
        await asyncio.gather(first, second)
        names = [name for name, _ in log]
        assert names.index("b") == 50 and "c" not in names[:50]
        with pytest.raises(asyncio.CancelledError):
            await third
        assert engine_thread.waiting == 0

    with_cohost(play)


def test_work_after_the_end_is_refused():
    async def play(engine_thread):
        engine_thread.stop()
        with pytest.raises(EngineFailed, match="shut down"):
            await engine_thread.call(EngineKind.LLM, lambda: 1)

    with_cohost(play)


async def until(true):
    while not true():
        await asyncio.sleep(0.001)


def test_a_guess_makes_enough_and_waits_until_it_is_awaited():
    async def play(engine_thread):
        log = []
        guess = each(engine_thread, EngineKind.LLM, lambda: counted(500, log, "guess"), talk="a", urgency=Urgency.GUESS)
        made = asyncio.ensure_future(anext(guess))
        await until(lambda: len(log) == GUESS_STEPS)
        assert await engine_thread.call(EngineKind.LLM, lambda: 7, talk="b") == 7  # others go on beside it
        assert engine_thread.awaited == 0 < engine_thread.waiting and len(log) == GUESS_STEPS
        engine_thread.hasten(EngineKind.LLM, "a")
        await until(lambda: len(log) == 500)
        assert await made == 0
        await guess.aclose()

    with_cohost(play)


def test_what_stands_before_awaited_work_of_its_talk_is_as_urgent():
    async def play(engine_thread):
        log = []
        guess = each(engine_thread, EngineKind.TTS, lambda: counted(500, log, "guess"), talk="a", urgency=Urgency.GUESS)
        made = asyncio.ensure_future(anext(guess))
        await until(lambda: len(log) == GUESS_STEPS)
        await engine_thread.call(EngineKind.TTS, lambda: log.append("behind it"), talk="a")
        assert len(log) == 501 and log[-1] == "behind it" and await made == 0
        await guess.aclose()

    with_cohost(play)
