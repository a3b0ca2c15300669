"""What is done behind a start, while nobody needs the models."""

import asyncio
from typing import cast

import pytest

from assistant.app.start import QUIET_S, _fall_asleep, _tidy
from assistant.base.errors import EngineFailed
from assistant.device import execution
from assistant.device.thread import EngineThread
from tests.fakes.loop import run


class Quiet:
    """A thread whose steps are told by time: it works until `busy_until`, then it is left alone."""

    def __init__(self, busy_until: float, trouble: str = "") -> None:
        self._busy_until, self._trouble = busy_until, trouble
        self.asleep_bytes = 0
        self.slept_at: list[float] = []

    @property
    def steps(self) -> int:
        return int(min(asyncio.get_running_loop().time(), self._busy_until))

    async def fall_asleep(self) -> int:
        if self._trouble:
            raise EngineFailed(self._trouble)
        self.slept_at.append(asyncio.get_running_loop().time())
        self.asleep_bytes = 3_000_000
        return self.asleep_bytes


def slept(thread: Quiet, after_s: float, until: float) -> list[str]:
    told: list[str] = []

    async def story() -> None:
        falling = asyncio.ensure_future(_fall_asleep(cast(EngineThread, thread), after_s, told.append))
        await asyncio.sleep(until)
        falling.cancel()

    run(story())
    return told


def test_they_sleep_once_nobody_has_needed_them_for_so_long() -> None:
    thread = Quiet(busy_until=100.0)
    told = slept(thread, 60.0, 1000.0)
    assert thread.slept_at == [180.0]  # at 120 there had been steps since 60
    assert told == ["the models sleep; 3 MB of memory are free until they are needed"]


def test_never_means_never_and_trouble_is_told_once() -> None:
    awake = Quiet(busy_until=0.0)
    assert slept(awake, 0.0, 1000.0) == [] and awake.slept_at == []
    assert slept(Quiet(0.0, "the models stay awake: why"), 60.0, 1000.0) == ["the models stay awake: why"]


def test_what_was_freed_goes_back_whenever_it_is_quiet_and_not_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float]] = []

    class Twice(Quiet):
        """At work until 20, and again from 100 until 120."""

        @property
        def steps(self) -> int:
            now = asyncio.get_running_loop().time()
            return int(min(now, 20.0) + min(20.0, max(0.0, now - 100.0)))

    async def story() -> None:
        def note(what: str) -> None:
            told.append((what, asyncio.get_running_loop().time()))

        async def at_once(function: object) -> None:
            assert callable(function)
            function()

        monkeypatch.setattr(execution, "give_back_memory", lambda: note("all"))
        monkeypatch.setattr(execution, "give_back_freed", lambda: note("freed"))
        monkeypatch.setattr(asyncio, "to_thread", at_once)
        tidying = asyncio.ensure_future(_tidy(cast(EngineThread, Twice(0.0))))
        await asyncio.sleep(1000.0)
        tidying.cancel()

    run(story())
    assert [what for what, _ in told] == ["all", "freed"]
    assert 20.0 <= told[0][1] <= 20.0 + 2 * QUIET_S and 120.0 <= told[1][1] <= 120.0 + 2 * QUIET_S
