"""Ears: a transcriber that comes back serves the next talk, and knows nobody."""

from assistant.asr.local import LocalEars


class Noted:
    """A transcriber that counts how often it was told to forget."""

    def __init__(self) -> None:
        self.forgot = 0

    def forget(self) -> None:
        self.forgot += 1


def test_a_transcriber_that_comes_back_has_forgotten_its_speaker():
    ears = LocalEars(make=Noted)
    first, second = ears.transcriber(), ears.transcriber()
    assert first is not second
    ears.give_back(first)
    assert first.forgot == 1
    assert ears.transcriber() is first
