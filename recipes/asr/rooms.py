"""The acoustics between a loudspeaker and a microphone: impulse responses of a box-shaped room by image sources.

After Allen & Berkley 1979, all walls alike, later reflections moved by up to half a sample so they do not line up.
Sound: float32 at 16 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
SOUND_M_S = 343.0


@dataclass(frozen=True, slots=True)
class Room:
    """Sizes in metres, and the seconds in which a sound falls by 60 dB."""

    size: tuple[float, float, float]
    loudspeaker: tuple[float, float, float]
    microphone: tuple[float, float, float]
    rt60_s: float


def response(room: Room, rng: np.random.Generator) -> NDArray[np.float64]:
    """[rt60_s at RATE] impulse response of unit energy, the direct sound at its own delay."""
    x, y, z = room.size
    absorbed = min(0.9, 0.161 * x * y * z / (2 * (x * y + x * z + y * z) * room.rt60_s))
    reflected = np.sqrt(1 - absorbed)
    samples = int(room.rt60_s * RATE)
    found = np.zeros(samples + 1)
    reach = [int(np.ceil(SOUND_M_S * room.rt60_s / (2 * length))) for length in room.size]
    images = np.meshgrid(*[np.arange(-n, n + 1) for n in reach], indexing="ij")
    for mirrored in np.ndindex(2, 2, 2):
        squares, walls = np.zeros(images[0].shape), np.zeros(images[0].shape, np.int64)
        for axis, (image, odd) in enumerate(zip(images, mirrored, strict=True)):
            source = (1 - 2 * odd) * room.loudspeaker[axis] + 2 * image * room.size[axis]
            squares += (source - room.microphone[axis]) ** 2
            walls += np.abs(2 * image - odd)
        metres = np.sqrt(squares)
        at = metres / SOUND_M_S * RATE + rng.uniform(-0.5, 0.5, metres.shape) * (walls > 1)
        inside = at < samples
        np.add.at(found, at[inside].astype(int), reflected ** walls[inside] / np.maximum(metres[inside], 0.1))
    hertz = np.fft.rfftfreq(2 * found.size, 1 / RATE)
    steep = (hertz / 80) ** 2
    high = np.fft.irfft(np.fft.rfft(found, 2 * found.size) * steep / (1 + steep))[: found.size]  # no steady pressure
    return high / np.sqrt(np.sum(high**2))
