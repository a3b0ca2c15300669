"""The rate and the channels that a device is opened with, and our sound brought into that form and out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assistant.base.pcm import Resampler, silence
from assistant.events import REPLY_RATE, Pcm

BLOCK = REPLY_RATE // 50
"""20 ms."""
Direction = Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class DeviceForm:
    """rate in Hz."""

    rate: int
    channels: int

    @property
    def block(self) -> int:
        """Frames of 20 ms."""
        return self.rate // 50

    @property
    def lag_s(self) -> float:
        """Seconds of sound on the way between the two rates: at most a block."""
        return 0.0 if self.rate == REPLY_RATE else 0.02


def forms(facts: Mapping[str, float | str], direction: Direction) -> list[DeviceForm]:
    """The forms to try, the best first: our own, then the device's own rate and channels, as PortAudio reports them."""
    own_rate, most = int(facts["default_samplerate"]), int(facts[f"max_{direction}_channels"])
    channels = dict.fromkeys((1, *(n for n in (2, most) if 1 < n <= most)))
    return [DeviceForm(rate, n) for n in channels for rate in dict.fromkeys((REPLY_RATE, own_rate))]


class IntoDevice:
    """`fill` writes our next 20 ms into a block; the device takes as much as it asks for, on all channels."""

    def __init__(self, form: DeviceForm, fill: Callable[[Pcm], None]) -> None:
        self._fill, self._filter = fill, Resampler(REPLY_RATE, form.rate)
        self._ready = silence(0)

    def __call__(self, data: NDArray[np.float32]) -> None:
        """data [frames, channels]"""
        while self._ready.size < len(data):
            block = silence(BLOCK)
            self._fill(block)
            self._ready = np.concatenate([self._ready, self._filter.feed(block)])
        data[:] = self._ready[: len(data), None]
        self._ready = self._ready[len(data) :]


class OutOfDevice:
    """`heard` takes blocks of 20 ms, mono; the device delivers as much as it has."""

    def __init__(self, form: DeviceForm, heard: Callable[[Pcm], None]) -> None:
        self._heard, self._filter = heard, Resampler(form.rate, REPLY_RATE)
        self._ready = silence(0)

    def __call__(self, data: NDArray[np.float32]) -> None:
        """data [frames, channels]"""
        self._ready = np.concatenate([self._ready, self._filter.feed(data.mean(axis=1))])
        while self._ready.size >= BLOCK:
            self._heard(self._ready[:BLOCK])
            self._ready = self._ready[BLOCK:]
