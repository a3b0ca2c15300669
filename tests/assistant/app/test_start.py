"""What is done behind a start, while nobody needs the models."""

import asyncio
from typing import cast

from assistant.app.start import _fall_asleep
from assistant.base.errors import EngineFailed
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
