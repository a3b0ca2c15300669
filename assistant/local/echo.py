"""The loudspeaker's sound taken out of the microphone's: WebRTC's canceller, as LiveKit's package carries it.

The package is the extra `talk`. There is a second canceller on purpose, our own in `asr/own_voice.py`: it needs NumPy
alone and stands behind every front. This one sits beside the devices and works sooner after the first word, but it is
only there where the package is. Sound that it cleaned has little echo left for the other one to find.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from assistant.events import REPLY_RATE, Pcm

if TYPE_CHECKING:
    from livekit import rtc

STEP = REPLY_RATE // 100
"""10 ms: what the canceller takes at once. Blocks of the devices are whole multiples."""


class EchoCanceller:
    """Give it all that is played and all that is heard, each from one thread. It finds the delay by itself."""

    def __init__(self, livekit: ModuleType) -> None:
        self._frame = livekit.AudioFrame
        self._canceller = livekit.AudioProcessingModule(echo_cancellation=True)

    def played(self, pcm: Pcm) -> None:
        """This goes to the loudspeaker now; float32 at REPLY_RATE."""
        for start in range(0, pcm.size, STEP):
            self._canceller.process_reverse_stream(self._framed(pcm[start : start + STEP]))

    def cleaned(self, pcm: Pcm) -> Pcm:
        """The microphone's sound without what was played."""
        parts = []
        for start in range(0, pcm.size, STEP):
            frame = self._framed(pcm[start : start + STEP])
            self._canceller.process_stream(frame)
            parts.append(np.frombuffer(bytes(frame.data.cast("B")), "<i2"))
        return np.concatenate(parts).astype(np.float32) / np.float32(32767) if parts else pcm

    def _framed(self, pcm: Pcm) -> rtc.AudioFrame:
        data = (np.clip(pcm, -1.0, 1.0) * 32767).astype("<i2").tobytes()
        return self._frame(data, REPLY_RATE, 1, pcm.size)


def echo_canceller() -> EchoCanceller | None:
    """None where the package is not installed."""
    try:
        from livekit import rtc
    except ImportError:
        return None
    return EchoCanceller(rtc)
