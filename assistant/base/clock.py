"""The two times of a talk: the loop's seconds, and samples counted on a stream of sound."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Clock(Protocol):
    """Seconds that only increase, and a way to wait until a given moment."""

    def now(self) -> float: ...

    async def sleep_until(self, moment: float) -> None: ...


class LoopClock:
    """The running event loop's own time. In tests a loop whose time jumps carries every stage along."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep_until(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - self.now()))


class SampleClock:
    """Maps samples of a live stream to moments of a Clock.

    The newest sample arrived at `moment`; an earlier one was spoken `age / rate` seconds before. If sound arrives
    faster than real time (from a file), no exact moment per sample exists, so the arrival time is the upper bound.
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
        """Record that `samples` more have arrived, the last of them now."""
        self._samples += samples
        self._moment = moment

    def moment_of(self, sample: int) -> float:
        """Return when this sample was spoken, in the Clock's seconds; never later than the newest arrival."""
        return self._moment - max(0, self._samples - sample) / self.rate
