"""The sound that answers a name: two soft tones, a fifth apart, within a quarter of a second."""

from __future__ import annotations

import numpy as np

from assistant.events import REPLY_RATE, Pcm

NOTES_HZ = (660.0, 990.0)
NOTE_S = 0.11
LEVEL = 0.12


def _note(hertz: float) -> Pcm:
    t = np.arange(round(NOTE_S * REPLY_RATE)) / REPLY_RATE
    return (LEVEL * np.sin(2 * np.pi * hertz * t) * np.hanning(t.size)).astype(np.float32)


CHIME: Pcm = np.concatenate([_note(hertz) for hertz in NOTES_HZ])
