"""A front's player, imitated: what it plays while the microphone brings so much."""

import numpy as np
import pytest

from assistant.base.sound import REPLY_RATE
from assistant.events import (
    AudioDelta,
    Duck,
    Response,
    ResponseDone,
    Resume,
    SemanticVad,
    ServerVad,
    Settings,
    SpeechStarted,
    StopPlayback,
)
from assistant.talk.playing import AHEAD_S, DUCKED, LINGERS_S, FrontPlayer

RATE = 16_000
SLICE = RATE // 10
SEMANTIC = Settings(turn_detection=SemanticVad())
STOPS = [
    SpeechStarted("item", 0),
    StopPlayback("resp", "item"),
    ResponseDone(Response("resp", "cancelled", "audio", None, True)),
]


def sound(seconds: float) -> AudioDelta:
    """A tone, so that silence is told from it."""
    time = np.arange(int(seconds * REPLY_RATE)) / REPLY_RATE
    return AudioDelta("resp", "item", 0, 0, 0, (0.5 * np.sin(2 * np.pi * 440 * time)).astype(np.float32))


def taken(playing: FrontPlayer, begin: float, slices: int) -> np.ndarray:
    """What is played while the microphone brings so many slices from `begin` on."""
    found = [playing.played_during(SLICE, begin + (n + 1) * 0.1) for n in range(slices)]
    return np.concatenate([np.zeros(SLICE, np.float32) if each is None else each.sound for each in found])


def level(part: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(part))))


def test_it_begins_when_it_was_told_and_plays_on_without_a_gap():
    playing = FrontPlayer()
    assert playing.played_during(SLICE, 0.1) is None
    playing.told(sound(1.0), SEMANTIC, 0.15)
    first = playing.played_during(SLICE, 0.2)
    assert first is not None and first.anew
    assert not first.sound[: RATE // 20].any() and level(first.sound[RATE // 20 + 50 :]) > 0.3
    playing.told(sound(1.0), SEMANTIC, 0.3)
    rest = taken(playing, 0.2, 25)
    assert level(rest[: int(1.9 * RATE)]) == pytest.approx(0.5 / np.sqrt(2), rel=0.02)
    assert np.flatnonzero(rest)[-1] == pytest.approx(1.95 * RATE, abs=200)
    assert playing.played_during(SLICE, 9.0) is None


@pytest.mark.parametrize("stop", STOPS, ids=lambda event: type(event).__name__)
def test_a_front_that_is_told_to_stop_lingers_and_no_more(stop):
    playing = FrontPlayer()
    playing.told(sound(3.0), SEMANTIC, 0.0)
    taken(playing, 0.0, 5)
    playing.told(stop, SEMANTIC, 0.5)
    rest = taken(playing, 0.5, 20)
    assert np.flatnonzero(rest)[-1] == pytest.approx(LINGERS_S * RATE, abs=2)


def test_a_front_that_is_not_interrupted_plays_on():
    for detection in (SemanticVad(interrupt_response=False), ServerVad(interrupt_response=False), None):
        settings, playing = Settings(turn_detection=detection), FrontPlayer()
        playing.told(sound(2.0), settings, 0.0)
        playing.told(SpeechStarted("item", 0), settings, 0.0)
        assert level(taken(playing, 0.0, 15)) > 0.3


def test_a_lowered_sound_is_lower():
    playing = FrontPlayer()
    playing.told(sound(2.0), SEMANTIC, 0.0)
    loud = level(taken(playing, 0.0, 5))
    playing.told(Duck("resp", "item"), SEMANTIC, 0.5)
    assert level(taken(playing, 0.5, 3)) == pytest.approx(loud * DUCKED, rel=0.05)
    playing.told(Resume("resp", "item"), SEMANTIC, 0.8)
    assert level(taken(playing, 0.8, 3)) == pytest.approx(loud, rel=0.05)


def test_a_front_that_plays_from_files_plays_nothing():
    playing = FrontPlayer()
    playing.told(sound(2.0), Settings(paced=False), 0.0)
    assert playing.played_during(SLICE, 0.1) is None


def test_sound_that_comes_at_once_meets_no_more_than_can_have_been_played():
    playing = FrontPlayer()
    playing.told(sound(5.0), SEMANTIC, 0.0)
    at_once = np.concatenate([playing.played_during(SLICE, 0.1).sound for _ in range(30)])
    assert np.count_nonzero(np.abs(at_once) > 0.01) <= (0.1 + AHEAD_S) * RATE
    assert not at_once[int((0.2 + AHEAD_S) * RATE) :].any()


def test_a_microphone_that_was_muted_has_missed_what_was_played():
    playing = FrontPlayer()
    playing.told(sound(3.0), SEMANTIC, 0.0)
    taken(playing, 0.0, 5)
    again = playing.played_during(SLICE, 2.1)
    assert again is not None and again.anew
    assert np.flatnonzero(taken(playing, 2.1, 20))[-1] == pytest.approx(0.9 * RATE, abs=200)
