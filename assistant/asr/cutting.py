"""Chooses the place to cut a long utterance, so that no pass reads more than `longest_s` of it. Pure.

The cut is at the first pause between words after `early_s`; if there is none, at the quietest place before
`longest_s`. The cost of a pass grows faster than its sound, and a network trained on clips of a few seconds gets lost
in long ones.
"""

from __future__ import annotations

import numpy as np

from assistant.base.sound import HEARING_RATE, Pcm

EARLY_S = 5.0
LONGEST_S = 9.0
PAUSE_S = 0.2
FRAME = HEARING_RATE // 100
QUIET = 0.08
"""Share of the loud frames' level: 22 dB below them nobody is speaking."""
NEAR_FLOOR = 1.6
"""Multiple of the quietest frames' level: up to 4 dB above them nobody is speaking, however loud the room."""
LEAST_WINDOW_S = 0.3
SMOOTHED = 10
"""Frames that a quiet place is long."""


def cut_point(sound: Pcm, settled_s: float, early_s: float = EARLY_S, longest_s: float = LONGEST_S) -> int | None:
    """The sample to cut at, None if no cut is needed yet. Words before `settled_s` stay before the cut."""
    if sound.size < early_s * HEARING_RATE:
        return None
    begin = int(max(early_s, settled_s) * 100)
    end = int(max(longest_s, settled_s + LEAST_WINDOW_S) * 100)
    levels = _levels(sound[: end * FRAME])
    floor, loud = np.percentile(levels, (10, 90))
    quiet = levels < max(QUIET * loud, NEAR_FLOOR * floor)
    width = int(PAUSE_S * 100)
    run = 0
    for at in range(begin, levels.size):
        run = run + 1 if quiet[at] else 0
        if run == width:
            return (at - width // 2) * FRAME
    if levels.size < end:
        return None
    return _quietest(levels, begin)


def quietest_place(sound: Pcm, begin_s: float) -> int:
    """The sample in the middle of the quietest tenth of a second behind `begin_s`."""
    return _quietest(_levels(sound), int(begin_s * 100))


def _levels(sound: Pcm) -> Pcm:
    """[frames] root mean square of each whole frame."""
    frames = sound[: sound.size // FRAME * FRAME].reshape(-1, FRAME)
    return np.asarray(np.sqrt(np.mean(np.square(frames), axis=1)), np.float32)


def _quietest(levels: Pcm, begin: int) -> int:
    smooth = np.convolve(levels[begin:], np.full(SMOOTHED, 1 / SMOOTHED), "valid")
    return (begin + int(np.argmin(smooth)) + SMOOTHED // 2) * FRAME
