"""`/v1/sleep` waits for what is being made, and no longer than it says."""

import asyncio
from typing import cast

import pytest

from assistant.device.thread import EngineThread
from assistant.server.sleep_routes import LOOK_S, PATIENCE_S, STILL_S, at_rest
from tests.fakes.loop import run


class AtWork:
    """Work waits until a moment, then a tail makes a step every so often until another."""

    def __init__(self, until: float, tail: float) -> None:
        self._until, self._tail = until, tail

    @property
    def waiting(self) -> int:
        return int(asyncio.get_running_loop().time() < self._until)

    @property
    def steps(self) -> int:
        return int(min(asyncio.get_running_loop().time(), self._tail) / 0.3)


@pytest.mark.parametrize(
    ("until", "tail", "rests", "at"),
    [(0, 0, True, STILL_S), (2, 0, True, 2 + STILL_S), (1, 4, True, 4 + STILL_S), (60, 0, False, PATIENCE_S)],
)
def test_the_end_of_work_and_its_tail_is_waited_for(until: float, tail: float, rests: bool, at: float) -> None:
    async def story() -> None:
        assert await at_rest(cast(EngineThread, AtWork(until, tail))) is rests
        assert asyncio.get_running_loop().time() == pytest.approx(at, abs=2 * LOOK_S + 0.3)

    run(story())
