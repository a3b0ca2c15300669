"""The loudspeaker's sound taken out of the microphone's: WebRTC's canceller, as LiveKit's package carries it.

The package is the extra `talk`. There is a second canceller on purpose, our own in `asr/own_voice.py`: it needs NumPy
alone and stands behind every front. This one sits beside the devices and works sooner after the first word, but it is
only there where the package is. Sound that it cleaned has little echo left for the other one to find.

With headphones there is no echo, and a canceller that seeks one then takes out the user's voice instead: of "stop"
over a reply a thirtieth was left. So it is only used where the microphone hears what is played.
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
LOOKED, LATE = 260, 60
"""Steps that are looked back on, and those by which an echo may be late: devices under load hold sound for long."""
SOUNDED = 50
"""Steps of sound that must have been played before those, until an echo can be missed."""
SHARE = 0.5
"""An echo is there as often as sound is played; a word of the user's is shorter."""
PLAYED, ABOVE, QUIETEST = 1e-4, 4.0, 1e-6
"""Powers: of sound that would be heard, of a sound to the room's noise, and of the stillest room."""


class EchoLook:
    """Whether the microphone hears the loudspeaker, by how often each has sound. Two threads may report to it."""

    def __init__(self) -> None:
        self.echoes = True
        self._sounded, self._loud = np.zeros(LOOKED, bool), np.zeros(LOOKED, bool)
        self._played_steps = self._heard_steps = 0
        self._silent_steps = 0
        self._noise = QUIETEST

    def played(self, power: float) -> None:
        """The next step of what is played."""
        self._sounded[self._played_steps % LOOKED] = power > PLAYED
        self._played_steps += 1
        if power > PLAYED:
            self._silent_steps = 0

    def heard(self, power: float) -> None:
        """The next step of the microphone."""
        self._silent_steps += 1
        if self._silent_steps > SOUNDED:  # the room's own noise: it falls at once and rises slowly
            self._noise = max(QUIETEST, min(power, self._noise * 1.01))
        self._loud[self._heard_steps % LOOKED] = power > ABOVE * self._noise
        self._heard_steps += 1
        late = np.arange(self._played_steps - LATE, self._played_steps) % LOOKED
        sounded = int(self._sounded.sum()) - int(self._sounded[late].sum())
        if sounded >= SOUNDED:
            self.echoes = int(self._loud.sum()) >= SHARE * sounded


class EchoCanceller:
    """Give it all that is played and all that is heard, each from one thread. It finds the delay by itself."""

    def __init__(self, livekit: ModuleType) -> None:
        self._frame = livekit.AudioFrame
        self._canceller = livekit.AudioProcessingModule(echo_cancellation=True)
        self._look = EchoLook()

    def played(self, pcm: Pcm) -> None:
        """This goes to the loudspeaker now; float32 at REPLY_RATE."""
        for start in range(0, pcm.size, STEP):
            step = pcm[start : start + STEP]
            self._look.played(float(np.mean(np.square(step))))
            self._canceller.process_reverse_stream(self._framed(step))

    def cleaned(self, pcm: Pcm) -> Pcm:
        """The microphone's sound without what was played."""
        parts = [self._cleaned(pcm[start : start + STEP]) for start in range(0, pcm.size, STEP)]
        return np.concatenate(parts) if parts else pcm

    def _cleaned(self, step: Pcm) -> Pcm:
        frame = self._framed(step)
        self._canceller.process_stream(frame)  # also where it is not used: it goes on learning
        self._look.heard(float(np.mean(np.square(step))))
        if not self._look.echoes:
            return step
        return np.frombuffer(bytes(frame.data.cast("B")), "<i2").astype(np.float32) / np.float32(32767)

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
