"""Human speech that a package brings along, shared networks, and synthetic speech from espeak-ng."""

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import samplerate
import soundfile

from assistant.asr.moonshine import load_moonshine, shipped_weights
from assistant.asr.network import Network
from assistant.asr.transducer import Transducer, load_transducer
from assistant.base.pcm import resample
from assistant.events import Pcm


@pytest.fixture(scope="session")
def network() -> Network:
    return load_moonshine()


@pytest.fixture(scope="session")
def write_transducer(tmp_path_factory) -> Callable[..., Path]:
    """Writes a small one into a new folder. See `tests/fakes/transducer.py`."""
    for package in ("sherpa_onnx", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed; pip install -e '.[dev]' brings it")
    from tests.fakes.transducer import write_transducer

    return lambda **how: write_transducer(tmp_path_factory.mktemp("transducer"), **how)


@pytest.fixture(scope="session")
def transducers(write_transducer) -> Callable[..., Transducer]:
    """`transducers(large=…, terms=…)`: one of each, loaded once."""
    return cache(lambda **how: load_transducer(write_transducer(**how)))


def recording(path: Path) -> Pcm:
    sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return resample(sound.mean(axis=1).astype(np.float32), rate, 16_000)


@pytest.fixture(scope="session")
def two_cities() -> Pcm:
    """44 s of a man reading Dickens: `It was the best of times. It was the worst of times. …`"""
    return recording(shipped_weights().parent / "two_cities.wav")


@pytest.fixture(scope="session")
def spoken(tmp_path_factory):
    """`spoken(text)` -> float32 at 16 kHz, with silence on both sides."""
    if shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed; it speaks the test sentences")
    folder = tmp_path_factory.mktemp("spoken")

    def say(text: str) -> np.ndarray:
        path = folder / f"{abs(hash(text))}.wav"
        subprocess.run(["espeak-ng", "-v", "en-us", "-s", "150", "-w", str(path), text], check=True)
        wave, rate = soundfile.read(path, dtype="float32")
        wave = samplerate.resample(wave, 16_000 / rate, "sinc_fastest")
        silence = np.zeros(4_800, np.float32)
        return np.concatenate([silence, wave / np.abs(wave).max() * 0.5, silence]).astype(np.float32)

    return say
