"""Human speech that a package brings along, and the shared network."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from assistant.asr.moonshine import load_moonshine, shipped_weights
from assistant.asr.network import Network
from assistant.events import Pcm
from assistant.pcm import resample


@pytest.fixture(scope="session")
def network() -> Network:
    return load_moonshine()


def recording(path: Path) -> Pcm:
    sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return resample(sound.mean(axis=1).astype(np.float32), rate, 16_000)


@pytest.fixture(scope="session")
def two_cities() -> Pcm:
    """44 s of a man reading Dickens: `It was the best of times. It was the worst of times. …`"""
    return recording(shipped_weights().parent / "two_cities.wav")
