"""ASR: a transcriber that comes back serves the next talk, and knows nobody."""

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
