"""Speech over a reply: the table is whole, and whoever ducks resumes or stops."""

from assistant.events import ServerVad, Settings
from assistant.talk.interruption import TABLE, Action, Manner, Phase, Signal, actions, manner_of


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
        did = actions(Phase.JUDGED, signal, Manner.DUCK)
        assert (Action.RESUME in did) != (Action.STOP_PLAYER in did)
        did = actions(Phase.JUDGED, signal, Manner.JUDGE)
        assert (Action.SET_ASIDE in did) != (Action.STOP_REPLY in did)


def test_manner_follows_the_settings():
    assert manner_of(Settings()) is Manner.JUDGE
    assert manner_of(Settings(turn_detection=ServerVad())) is Manner.STOP
    assert manner_of(Settings(duck=True)) is Manner.DUCK
    assert manner_of(Settings(duck=True, turn_detection=ServerVad(interrupt_response=False))) is Manner.LISTEN
    assert manner_of(Settings(turn_detection=None)) is Manner.STOP
