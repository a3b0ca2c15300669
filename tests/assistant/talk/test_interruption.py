"""Speech over a reply: the table is whole, and whoever ducks resumes or stops."""

import pytest

from assistant.events import ServerVad, Settings
from assistant.talk.interruption import TABLE, Action, Manner, Phase, Signal, actions, manner_of, verdict


def test_every_phase_answers_overlap_and_listening_never_stops_a_reply():
    for manner in Manner:
        for phase in (Phase.NONE, Phase.PRIVATE, Phase.SOUNDING, Phase.PLAYED_OUT):
            assert actions(phase, Signal.OVERLAP, manner)
    assert all(
        Action.STOP_REPLY not in did
        for (_, signal, manner), did in TABLE.items()
        if manner is Manner.LISTEN and signal is not Signal.CLIENT_CANCEL
    )


def test_whoever_ducks_either_resumes_or_stops():
    for signal in (Signal.INTERRUPTION, Signal.BACKCHANNEL, Signal.TURN_ENDED):
        did = actions(Phase.DUCKED, signal, Manner.DUCK)
        assert (Action.RESUME in did) != (Action.STOP_PLAYER in did)


def test_manner_follows_the_settings():
    assert manner_of(Settings()) is Manner.STOP
    assert manner_of(Settings(duck=True)) is Manner.DUCK
    assert manner_of(Settings(duck=True, turn_detection=ServerVad(interrupt_response=False))) is Manner.LISTEN
    assert manner_of(Settings(turn_detection=None)) is Manner.STOP


@pytest.mark.parametrize(
    ("speech_ms", "words", "over", "expected"),
    [
        (100, "", False, None), (360, "", False, None), (360, "stop", False, Signal.INTERRUPTION),
        (360, "mhm", False, None), (500, "mhm", False, Signal.INTERRUPTION), (250, "", True, Signal.BACKCHANNEL),
        (250, "Yeah, okay.", True, Signal.BACKCHANNEL), (250, "no wait", True, Signal.INTERRUPTION),
        (700, "yeah", True, Signal.INTERRUPTION),
    ],
)  # fmt: skip
def test_verdict(speech_ms, words, over, expected):
    assert verdict(speech_ms, words, over) is expected
