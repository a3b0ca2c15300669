"""When readings of a sound make a call: block by block, with ears that find what the test says."""

import numpy as np
import pytest

from assistant.contracts import CalledName, SpeechBlock
from assistant.talk.waiting import Call, Waiting

SAMPLES = 512
ADA, ADA_STOP, BEN = CalledName("Ada", ""), CalledName("Ada", "stop"), CalledName("Ben", "")


class Ears:
    """Each reading finds the next of these, and then nothing."""

    def __init__(self, *found: CalledName | None) -> None:
        self.found, self.readings = list(found), 0

    def called(self, sound: np.ndarray, names: tuple[str, ...]) -> CalledName | None:
        self.readings += 1
        return self.found.pop(0) if self.found else None


def heard(ears: Ears, speech: int, silence: int = 12) -> tuple[int, Call] | None:
    """A second of silence, then blocks of speech, then of silence -> the block at which it was called."""
    waiting = Waiting(ears, None)  # type: ignore[arg-type]
    for number, chance in enumerate([0.0] * 31 + [1.0] * speech + [0.0] * silence):
        sound = np.full(SAMPLES, chance, np.float32)
        if (call := waiting.hear(SpeechBlock(number * SAMPLES, SAMPLES, chance, sound), ("Ada", "Ben"))) is not None:
            return number - 30, call
    return None


@pytest.mark.parametrize("found", [(ADA_STOP,), (None, ADA_STOP), (ADA_STOP, None, None), (ADA, BEN), (ADA,), ()])
def test_one_reading_calls_nobody(found):
    ears = Ears(*found)
    assert heard(ears, speech=60) is None and ears.readings >= 3


def test_the_second_reading_that_finds_the_same_name_calls_with_the_whole_request():
    block, call = heard(Ears(ADA_STOP, ADA_STOP), speech=60)
    assert block == 24 and call.name == "Ada" and call.leads
    assert sum(float(one.sound[0]) for one in call.blocks) == 24, "all that was said so far"


def test_what_was_found_once_is_read_again_later():
    block, _ = heard(Ears(None, None, ADA_STOP, ADA_STOP), speech=80)
    assert block == 56
    ears = Ears()
    assert heard(ears, speech=80) is None and ears.readings == 3, "and nothing else is"


def test_a_short_request_is_read_at_its_pause_and_at_its_end():
    block, call = heard(Ears(ADA_STOP, ADA_STOP), speech=12)
    assert block == 18 and call.leads


def test_a_name_alone_calls_at_its_end_and_leaves_no_sound():
    block, call = heard(Ears(ADA, ADA), speech=15)
    assert block == 23 and call == Call("Ada", (), leads=False)


def test_whoever_goes_on_behind_a_name_that_two_readings_found_is_called_for():
    block, call = heard(Ears(ADA, ADA, None), speech=60)
    assert block == 24 and call.leads


class Spotter:
    """Notes the blocks that it hears, and where it begins anew."""

    def __init__(self) -> None:
        self.heard: list[int | None] = []

    def spotter(self) -> "Spotter":
        return self

    def spot(self, sound: np.ndarray) -> None:
        self.heard.append(int(sound[0]))

    def start_over(self) -> None:
        self.heard.append(None)


def test_wake_words_are_looked_for_a_second_before_speech_and_behind_it():
    spotter = Spotter()
    waiting = Waiting(Ears(), spotter)  # type: ignore[arg-type]
    for number in range(300):
        chance = 0.4 if number == 100 or 150 <= number < 160 or number == 200 else 0.0
        block = SpeechBlock(number * SAMPLES, SAMPLES, chance, np.full(SAMPLES, number, np.float32))
        assert waiting.hear(block, ("Ada",)) is None
    assert spotter.heard == [*range(31), None, *range(70, 132), *range(132, 191), *range(191, 232)]
    waiting.let_go()
    waiting.hear(SpeechBlock(300 * SAMPLES, SAMPLES, 1.0, np.full(SAMPLES, 300, np.float32)), ("Ada",))
    assert spotter.heard[-2:] == [None, 300], "sound that was let go is not heard later"
