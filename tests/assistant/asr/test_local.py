"""ASR: what comes back serves the next talk, and knows nobody."""

import numpy as np

from assistant.asr.detector import SileroDetector
from assistant.asr.local import LocalASR
from tests.fakes.models import FAKE_EARS


class Noted:
    """A transcriber that counts how often it was told to forget."""

    def __init__(self) -> None:
        self.forgot = 0

    def forget(self) -> None:
        self.forgot += 1


def test_a_transcriber_that_comes_back_has_forgotten_its_speaker():
    asr = LocalASR(FAKE_EARS, Noted)
    first, second = asr.transcriber(), asr.transcriber()
    assert first is not second
    asr.release(first)
    assert first.forgot == 1
    assert asr.transcriber() is first


def test_a_detector_that_comes_back_has_forgotten_what_it_heard():
    asr = LocalASR(FAKE_EARS, Noted)
    sound = np.random.default_rng(1).normal(0, 0.1, 16_000).astype(np.float32)
    first, second = asr.detector(), asr.detector()
    assert first is not second
    first.push(sound[:700])
    asr.release_detector(first)
    again = asr.detector()
    assert again is first and again.push(sound) == SileroDetector().push(sound)
