"""The user stands out from people in the background; in quiet and in noise nothing is changed."""

import numpy as np

from assistant.asr.foreground import FLOOR_BLOCKS, LEAST, SOFT_BLOCKS, Foreground

USER, CROWD, QUIET = 1e-2, 3e-4, 1e-9
SPEECH, NO_SPEECH = 0.9, 0.03
SOON = SOFT_BLOCKS[0][1]


def heard(blocks: list[tuple[float, float]]) -> list[float]:
    foreground = Foreground()
    return [foreground.probability(power, probability) for power, probability in blocks]


def test_a_crowd_that_goes_on_behind_the_user_ends_as_speech_soon_after_him():
    lead, said, after = [(CROWD, SPEECH)] * 40, [(USER, SPEECH)] * 30, [(CROWD, SPEECH)] * 30
    found = heard(lead + said + after)
    assert found[40 + 3 : 70] == [SPEECH] * 27
    assert found[-30 + SOON + 3 :] == [0.0] * (30 - SOON - 3)
    assert found[70 : 70 + SOON] == [SPEECH] * SOON, "soft ends of words are his"


def test_a_crowd_alone_is_nobody_once_it_is_known():
    rng = np.random.default_rng(5)
    crowd = [(CROWD * float(10 ** rng.normal(0, 0.15)), SPEECH) for _ in range(400)]
    assert set(heard(crowd)[LEAST + 10 :]) == {0.0}


def test_in_quiet_nothing_is_refused_however_softly_a_word_ends():
    said = [(USER, SPEECH)] * 40 + [(USER / 500, SPEECH)] * 20 + [(QUIET, NO_SPEECH)] * 20
    blocks = [(QUIET, NO_SPEECH)] * 40 + said
    assert heard(blocks) == [probability for _, probability in blocks]


def test_in_noise_that_is_no_speech_nothing_is_refused():
    blocks = [(CROWD, NO_SPEECH)] * 40 + [(CROWD * 2, SPEECH)] * 40 + [(CROWD, NO_SPEECH)] * 10
    assert heard(blocks) == [probability for _, probability in blocks]


def test_who_begins_at_once_and_in_digital_silence_is_heard():
    assert heard([(USER, SPEECH)] * LEAST)[: LEAST - 1] == [SPEECH] * (LEAST - 1)
    assert heard([(0.0, NO_SPEECH)] * FLOOR_BLOCKS + [(1e-12, SPEECH)] * 9)[-9:] == [SPEECH] * 9
