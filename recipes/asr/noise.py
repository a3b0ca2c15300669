"""Applies a room, a street, a far microphone or a telephone to a recording, the same way every time.

A condition takes a recording and its number and returns it distorted. Babble is other people of the test set at once.
Kitchen and street are synthesised here from their typical sounds, because no package has recordings of them: they are
plausible, not real. Nothing here depends on the clock.

Sound: float32 in ±1 at 16 kHz.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import samplerate
from numpy.typing import NDArray

Sound: TypeAlias = NDArray[np.float32]
Spoil: TypeAlias = Callable[[Sound, int], Sound]
"""A recording and its number, which seeds all randomness -> the recording under that condition."""
Wave: TypeAlias = NDArray[np.floating]
Noise: TypeAlias = Callable[[int, np.random.Generator], Wave]
"""Number of samples -> that much of the noise, at any level."""

RATE = 16_000
SNR_DB = 10.0
FRAME = 320
"""20 ms: about how long speech stays loud or quiet."""
ACTIVE_DB = 30.0
"""A frame this far below the loudest is a pause."""
TALKERS = 6


def speech_power(sound: Sound) -> float:
    """Mean power of the frames that hold speech; pauses and the silence around it do not count."""
    whole = len(sound) // FRAME * FRAME
    frames = sound[:whole].astype(np.float64).reshape(-1, FRAME) if whole else sound[None].astype(np.float64)
    powers = np.mean(frames**2, axis=1)
    return float(np.mean(powers[powers >= powers.max() * 10 ** (-ACTIVE_DB / 10)]))


def add(sound: Sound, noise: Wave, snr_db: float = SNR_DB) -> Sound:
    """Lay the noise `snr_db` below the speech; both are turned down together if they would clip."""
    wanted = speech_power(sound) * 10 ** (-snr_db / 10)
    mixed = sound + noise * np.sqrt(wanted / max(float(np.mean(noise**2)), 1e-20))
    return (mixed / max(1.0, float(np.abs(mixed).max()))).astype(np.float32)


# ------------------------------------------------------------------------------------------------ places


def kitchen(samples: int, rng: np.random.Generator) -> Wave:
    """An extractor hood that hums and hisses, a running tap, and now and then a dish or a spoon."""
    t = np.arange(samples) / RATE
    hum = sum(np.sin(2 * np.pi * 120 * k * t + rng.uniform(0, 6.28)) / k for k in range(1, 8))
    hood = _shaped(samples, rng, lambda f: 1 / np.sqrt(1 + (f / 400) ** 2))
    tap = _shaped(samples, rng, lambda f: np.exp(-(np.log((f + 1) / 3000) ** 2))) * (1 + 0.4 * _slow(samples, rng, 6.0))
    return 0.3 * hum + 1.0 * hood + 0.7 * tap + 3.0 * _dishes(samples, rng)


def street(samples: int, rng: np.random.Generator) -> Wave:
    """Rumble of a town, cars that come and go over seconds, and sometimes a horn far away."""
    rumble = _shaped(samples, rng, lambda f: 1 / (1 + (f / 90) ** 2))
    tyres = _shaped(samples, rng, lambda f: np.exp(-(np.log((f + 1) / 900) ** 2) / 1.5))
    passing = np.maximum(0.1, 1 + 1.2 * _slow(samples, rng, 0.25))
    horn = np.zeros(samples)
    if rng.random() < 0.3:
        length = min(samples, int(rng.uniform(0.3, 0.8) * RATE))
        start = int(rng.integers(0, samples - length + 1))
        t = np.arange(length) / RATE
        tones = sum(np.sin(2 * np.pi * f * t) for f in (420, 528, 840, 1056))
        horn[start : start + length] = tones * np.hanning(length)
    return 1.0 * rumble + 0.8 * tyres * passing + 0.3 * horn


def _shaped(samples: int, rng: np.random.Generator, gain: Callable[[Wave], Wave]) -> Wave:
    """Noise of unit power whose spectrum follows `gain`, a function of the frequency in hertz."""
    spectrum = np.fft.rfft(rng.standard_normal(samples)) * gain(np.fft.rfftfreq(samples, 1 / RATE))
    noise = np.fft.irfft(spectrum, samples)
    return noise / max(float(noise.std()), 1e-12)


def _slow(samples: int, rng: np.random.Generator, hertz: float) -> Wave:
    """A random swell of about unit power that changes `hertz` times a second."""
    knots = rng.standard_normal(int(samples / RATE * hertz) + 3)
    return np.interp(np.arange(samples) * hertz / RATE, np.arange(len(knots)), knots)


def _dishes(samples: int, rng: np.random.Generator) -> Wave:
    """One or two clinks a second: partials without harmony that ring for some hundredths of a second."""
    sound = np.zeros(samples)
    for _ in range(rng.poisson(1.5 * samples / RATE)):
        start = int(rng.integers(0, samples))
        t = np.arange(min(samples - start, int(0.4 * RATE))) / RATE
        partials = rng.uniform(1200, 7000, size=5)
        ring = sum(np.sin(2 * np.pi * f * t) * np.exp(-t / rng.uniform(0.015, 0.08)) for f in partials)
        sound[start : start + len(t)] += ring * rng.uniform(0.2, 1.0)
    return sound


def babble(voices: Sequence[Sound]) -> Noise:
    """Several people of the set at once, each as loud as the next, in a ring so that there is always enough."""

    def noise(samples: int, rng: np.random.Generator) -> Wave:
        mixed = np.zeros(samples)
        for i in rng.choice(len(voices), size=min(TALKERS, len(voices)), replace=False):
            voice = voices[int(i)].astype(np.float64) / np.sqrt(speech_power(voices[int(i)]))
            mixed += np.resize(np.roll(voice, int(rng.integers(len(voice)))), samples)
        return mixed

    return noise


# --------------------------------------------------------------------------------------------- channels


def quiet(sound: Sound, _number: int) -> Sound:
    """A twentieth of the level, with the 16 bits of a sound card."""
    return (np.round(sound / 20 * 32767) / 32767).astype(np.float32)


def telephone(sound: Sound, _number: int) -> Sound:
    """300 to 3,400 Hz at 8 kHz through G.711's mu-law, and back to 16 kHz."""
    narrow = samplerate.resample(sound, 0.5, "sinc_best")
    spectrum = np.fft.rfft(narrow)
    hertz = np.fft.rfftfreq(len(narrow), 2 / RATE)
    spectrum[(hertz < 300) | (hertz > 3400)] = 0
    narrow = np.fft.irfft(spectrum, len(narrow))
    coded = mu_law((np.clip(narrow, -1, 1) * 32767).astype(np.int64))
    return samplerate.resample(coded.astype(np.float32) / 32768, 2.0, "sinc_best").astype(np.float32)


def mu_law(pcm: NDArray[np.int64]) -> NDArray[np.int64]:
    """16-bit samples as they come out of a G.711 mu-law coder and decoder: 8 segments of 16 steps on either side."""
    biased = np.minimum(np.abs(pcm), 32635) + 132
    segment = np.clip(np.log2(biased).astype(np.int64), 7, 14)
    step = segment - 3
    decoded = ((biased >> step) << step) + (1 << (step - 1)) - 132
    return np.sign(pcm) * decoded


# ------------------------------------------------------------------------------------------- conditions


def noisy(noise: Noise, snr_db: float = SNR_DB) -> Spoil:
    """The condition of standing in this noise."""
    return lambda sound, number: add(sound, noise(len(sound), np.random.default_rng(number)), snr_db)


def conditions(voices: Sequence[Sound]) -> dict[str, Spoil]:
    """All conditions by name. `voices` make the babble."""
    return {
        "clean": lambda sound, _number: sound,
        "kitchen": noisy(kitchen),
        "street": noisy(street),
        "babble": noisy(babble(voices)),
        "quiet": quiet,
        "telephone": telephone,
    }
