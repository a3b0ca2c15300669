"""Synthetic speech for the tests of hearing, from espeak-ng."""

import shutil
import subprocess

import numpy as np
import pytest
import samplerate
import soundfile


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
