"""Detects speech: 16 kHz sound in, the probability of speech for every 32 ms block out.

Silero's network behind the `SpeechDetector` contract. Our own voice is removed before it (`own_voice`); after it,
people in the background are told apart (`foreground`). Blocks are always whole: samples left over after a push wait for
the next one.
"""

from __future__ import annotations

import numpy as np

from assistant.asr.foreground import Foreground
from assistant.asr.own_voice import OwnVoice
from assistant.asr.raised import RaisedVoice
from assistant.asr.silero import BLOCK_SAMPLES, Silero
from assistant.base.sound import Pcm
from assistant.contracts import PlayedSound, SpeechBlock


class SileroDetector:
    """Silero's recurrent network, one 512-sample block at a time; if people may shout, it runs 2.25 times."""

    def __init__(self) -> None:
        self._model = Silero()
        self._foreground = Foreground()
        self._own_voice = OwnVoice()
        self._raised = RaisedVoice()
        self._waiting: Pcm = np.zeros(0, np.float32)
        self._played: Pcm = np.zeros(0, np.float32)
        self._position = 0

    def push(self, pcm: Pcm, played: PlayedSound | None = None, raised: bool = False) -> list[SpeechBlock]:
        self._waiting = np.concatenate([self._waiting, np.asarray(pcm, dtype=np.float32)])
        self._played = np.concatenate(
            [self._played, np.zeros(pcm.size, np.float32) if played is None else played.sound]
        )
        if played is not None and played.anew:
            self._own_voice.begin()
        blocks = []
        whole = len(self._waiting) // BLOCK_SAMPLES * BLOCK_SAMPLES
        for start in range(0, whole, BLOCK_SAMPLES):
            end = start + BLOCK_SAMPLES
            heard = np.clip(np.nan_to_num(self._waiting[start:end]), -1.0, 1.0)
            sound, another = self._own_voice.part(self._played[start:end], heard)
            somebody = self._model.speech_chance(sound)
            if raised:
                somebody = max(somebody, self._raised.probability(sound))
            user = self._foreground.probability(float(np.mean(np.square(sound))), somebody) if another else 0.0
            blocks.append(SpeechBlock(self._position, BLOCK_SAMPLES, user, sound))
            self._position += BLOCK_SAMPLES
        self._waiting, self._played = self._waiting[whole:], self._played[whole:]
        return blocks

    def reset(self) -> None:
        self._model.begin_stream()
        self._foreground = Foreground()
        self._own_voice = OwnVoice()  # the next user sits in another room
        self._raised = RaisedVoice()
        self._waiting = self._played = np.zeros(0, np.float32)
        self._position = 0
