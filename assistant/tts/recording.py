"""Decides whether a recording is fit to be a voice: measured, and refused with an explanation. Pure except for reading.

The page measures the same while it records (`ui/recording.js`); this file decides what is refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from assistant.base.errors import PeerError
from assistant.base.sound import Pcm
from assistant.base.sound_file import SoundUnreadable, blocks, mixed

LONGEST_S, SHORTEST_S, SPOKEN_S = 30.0, 3.0, 2.0
"""People are asked for ten seconds. `SPOKEN_S` of a recording must be speech rather than pauses."""
LARGEST_BYTES = 32 << 20
"""Thirty seconds in stereo at 96 kHz and 32 bits take 23 MB."""
RATES = (8_000, 192_000)
CHANNELS = 2
SILENT_PEAK = 1e-3
QUIET_DB = -42.0
"""Root mean square relative to full scale: softer speech is mostly the noise of the room and the microphone."""
LOUD_FRAMES = 5
"""The loudest tenth of a second is ignored: a knock is not a voice."""
PAUSE_DB = 25.0
"""Sound this far below the loud parts is a pause."""
CLIPPED_AT, CLIPPED_SHARE = 0.999, 0.001
FRAME_S = 0.02


def open_recording(sound: Path | bytes) -> tuple[Pcm, int]:
    """A sound file's samples, mono, and their rate. Raises PeerError: what is wrong, and what would be right."""
    name = str(sound) if isinstance(sound, Path) else "the recording"
    try:
        size = sound.stat().st_size if isinstance(sound, Path) else len(sound)
        if size == 0:
            raise _refused(f"{name} is empty")
        if size > LARGEST_BYTES:
            raise _refused(f"{name} has {size / 1e6:.0f} MB; at most {LARGEST_BYTES / 1e6:.0f} are read")
        samples, rate = _gathered(sound, name)
    except OSError as error:
        raise _refused(f"{name} cannot be read ({error.strerror or error})") from error
    pcm = mixed(samples)
    check_level(samples, pcm, rate)
    return pcm, rate


def _gathered(sound: Path | bytes, name: str) -> tuple[Pcm, int]:
    """The samples, [n, channels], and their rate. A small file can unfold to gigabytes: no more than needed is read."""
    parts: list[Pcm] = []
    count, rate = 0, 1
    try:
        for block, rate in blocks(sound, name):
            if not parts:
                _check_form(block.shape[1], rate)
            parts.append(block)
            count += len(block)
            if count > LONGEST_S * rate:
                told = f"the recording is longer than {LONGEST_S:g} s"
                raise _refused(f"{told}; {SHORTEST_S:g} to {LONGEST_S:g} s are allowed, ten are best")
    except SoundUnreadable as error:
        raise _refused(str(error)) from error
    if count < SHORTEST_S * rate:
        told = f"the recording is too short: {count / rate:.1f} s"
        raise _refused(f"{told}; record at least {SHORTEST_S:g}, ten are best")
    return np.concatenate(parts), rate


def _check_form(channels: int, rate: int) -> None:
    if channels > CHANNELS:
        raise _refused(f"the recording has {channels} channels; one or two are allowed")
    if not RATES[0] <= rate <= RATES[1]:
        raise _refused(f"the recording has {rate} samples a second; {RATES[0]} to {RATES[1]} are allowed")


def check_level(samples: Pcm, pcm: Pcm, rate: int) -> None:
    """samples [n, channels] as recorded; pcm [n] mixed. Raises PeerError."""
    if not np.isfinite(samples).all():
        raise _refused("the recording contains invalid values; record it again")
    if float(np.abs(samples).max()) < SILENT_PEAK:
        raise _refused("the recording is silent; is the right microphone chosen, and not muted?")
    if float(np.mean(np.abs(samples) >= CLIPPED_AT)) > CLIPPED_SHARE:
        raise _refused("the recording is too loud: it is clipped; speak from further away, or turn the input down")
    size = max(1, int(FRAME_S * rate))
    frames = pcm[: pcm.size // size * size].reshape(-1, size).astype(np.float64)
    levels = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)
    loud = float(np.sort(levels)[-LOUD_FRAMES])
    if loud < QUIET_DB:
        raise _refused(f"the recording is too quiet ({loud:.0f} dB; {QUIET_DB:.0f} is the least): come closer")
    spoken = float(np.sum(levels > loud - PAUSE_DB)) * FRAME_S
    if spoken < SPOKEN_S:
        raise _refused(f"the recording contains {spoken:.1f} s of sound; speak for at least {SPOKEN_S:g}")


def _refused(message: str) -> PeerError:
    return PeerError("invalid_value", message, "audio_sample")
