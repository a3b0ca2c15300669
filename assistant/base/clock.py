"""The two times of a talk: the loop's seconds, and samples counted on a stream of sound."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, and a way to wait for a moment of them."""

    def now(self) -> float: ...

    async def sleep_until(self, moment: float) -> None: ...


class LoopClock:
    """The running event loop's own time, so a test loop whose time jumps moves every stage with it."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep_until(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - self.now()))


class SampleClock:
    """Maps samples of a live stream to moments of a Clock.

    The newest sample arrived at `moment`; an earlier one was spoken `age / rate` seconds before. Sound that
    arrives faster than real time (a file) has no honest moment per sample, so the arrival bounds it.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._samples = 0
        self._moment = 0.0

    @property
    def samples(self) -> int:
        return self._samples

    @property
    def ms(self) -> float:
        return self._samples * 1000 / self.rate

    def advance(self, samples: int, moment: float) -> None:
        """`samples` more have arrived, the last of them now."""
        self._samples += samples
        self._moment = moment

    def moment_of(self, sample: int) -> float:
        """When this sample was spoken, in the Clock's seconds; never later than the newest arrival."""
        return self._moment - max(0, self._samples - sample) / self.rate
