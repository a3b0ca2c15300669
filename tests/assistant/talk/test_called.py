"""A talk that is called by name: what is said before leaves no trace, and what follows is a turn like any other."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assistant.base.errors import EngineFailed
from assistant.events import (
    AudioDelta,
    PersonaSwitched,
    ServerVad,
    Settings,
    SpeechStarted,
    TranscriptCompleted,
    WakeChanged,
)
from tests.fakes.models import FakeEars, FakeTranscriber
from tests.fakes.talk import World

SETTINGS = Settings(persona="ada", turn_detection=ServerVad(), wake=True)


def world(**how) -> World:
    return World(settings=replace(SETTINGS, **how.pop("settings", {})), **how)


def events(world: World, kind: type) -> list:
    return [got.event for got in world.log if isinstance(got.event, kind)]


def states(world: World) -> list[tuple[str, str]]:
    return [(event.state, event.called) for event in events(world, WakeChanged)]


def test_nothing_before_the_name_is_in_transcript_log_or_journal(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    talk = world(folder=tmp_path)
    session = talk.play(
        (1.0, ("the secret is a walnut", 2.0)), (3.4, ("really a walnut", 1.0)),
        (5.0, ("ada what time is it", 1.6)), until=12.0,
    )  # fmt: skip
    heard = [event.transcript for event in events(talk, TranscriptCompleted)]
    assert heard == ["What time is it"] and states(talk)[:3] == [("waiting", ""), ("called", "Ada"), ("open", "")]
    began = events(talk, SpeechStarted)
    assert len(began) == 1 and 4600 <= began[0].audio_start_ms <= 5000  # counted from the first sound ever sent
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    everything = f"{talk.log}{session.items}{caplog.text}{kept!r}{talk.llm.folded}{talk.llm.heard}"
    assert "time is it" in everything and "walnut" not in everything and "secret" not in everything


def test_no_sound_before_the_name_reaches_the_ears_of_the_turn():
    """The end of what was said before lies in the padding of an ordinary turn."""
    pushed = []

    class Recording(FakeEars):
        def transcriber(self):
            made = super().transcriber()
            push = made.push
            made.push = lambda pcm: (pushed.append(pcm), push(pcm))
            return made

    ears = Recording()
    talk = world(asr=ears)
    talk.asr = ears
    talk.play((1.0, ("walnut walnut", 1.0)), (2.3, ("ada what time is it", 1.6)), until=6.0)
    turn = np.concatenate(pushed[-60:])
    assert events(talk, TranscriptCompleted)[0].transcript == "What time is it"
    first = 0.2 + 0.001  # the level of the first utterance
    last_read = max(i for i, pcm in enumerate(pushed) if np.any(np.isclose(pcm, first, atol=1e-5)))
    glances = [i for i, pcm in enumerate(pushed) if pcm.size > 8000]
    assert last_read in glances and turn.size  # only the look for the name saw it, never the turn


def test_ears_that_fail_while_a_name_is_waited_for_are_named_in_the_log_once(caplog, monkeypatch):
    looks, called = [], FakeTranscriber.called

    def failing(transcriber, sound, names):
        looks.append(sound)
        if len(looks) <= 3:
            raise EngineFailed("the server of the ears does not answer")
        return called(transcriber, sound, names)

    monkeypatch.setattr(FakeTranscriber, "called", failing)
    talk = world()
    talk.play((1.0, ("ada what time is it", 2.2)), (6.0, ("ada what day is it", 1.6)), until=12.0)
    assert [line.getMessage() for line in caplog.records if line.name == "assistant.talk.scribe"] == [
        "no name can be heard: EngineFailed: the server of the ears does not answer"
    ]
    assert [event.transcript for event in events(talk, TranscriptCompleted)] == ["What day is it"]
    assert len(looks) == 5, "three failed, and the next two found the name"


def test_a_follow_up_needs_no_name_and_then_it_waits_again():
    talk = world()
    talk.play(
        (1.0, ("ada what time is it", 1.6)), (6.0, ("and tomorrow", 1.0)), (30.0, ("is anybody there", 1.0)), until=33.0
    )
    assert [event.transcript for event in events(talk, TranscriptCompleted)] == ["What time is it", "and tomorrow"]
    assert [state for state, _ in states(talk)] == ["waiting", "called", "open", "waiting"]


def test_a_name_alone_opens_and_another_name_calls_another_persona():
    talk = world()
    talk.play((1.0, ("ben", 0.6)), (4.0, ("what time is it", 1.2)), until=8.0)
    assert [event.name for event in events(talk, PersonaSwitched)] == ["ben"]
    assert [event.transcript for event in events(talk, TranscriptCompleted)] == ["what time is it"]
    assert states(talk)[:3] == [("waiting", ""), ("called", "Ben"), ("open", "")]


def test_stop_is_enough_while_it_sounds():
    talk = world(answers=lambda prompt: ["one two three four five six seven eight nine ten eleven " * 3], speed=2.0)
    talk.play((1.0, ("ada count for me", 1.6)), (6.0, ("stop", 0.5)), until=9.0)
    assert [event.transcript for event in events(talk, TranscriptCompleted)] == ["Count for me", "stop"]
    assert events(talk, AudioDelta)


def test_nobody_has_to_call_where_nobody_asked_for_it():
    talk = world(settings={"wake": False})
    talk.play((1.0, ("ada what time is it", 1.6)), until=5.0)
    assert [event.transcript for event in events(talk, TranscriptCompleted)] == ["Ada what time is it"]
    assert states(talk) == []


def test_a_name_delays_no_answer():
    """In virtual time: from the end of the same words to the first sound."""
    waits = []
    for wake, words in ((True, "ada what time is it"), (False, "what time is it now")):
        talk = world(settings={"wake": wake})
        talk.play((1.0, (words, 1.6)), until=6.0)
        waits.append(next(got.at for got in talk.log if isinstance(got.event, AudioDelta)))
    assert waits[0] == pytest.approx(waits[1], abs=0.05)


def test_a_still_room_is_heard_a_tenth_of_a_second_at_a_time_and_a_name_at_once():
    """A thread is woken ten times a second, not fifty; a talk that waits for nothing gets every packet."""
    woken: list[int] = []

    async def counted(function):
        woken.append(1)
        return function()

    counts = {}
    for wake in (True, False):
        woken.clear()
        world(offload=counted, settings={"wake": wake}).play(until=10.0)
        counts[wake] = len(woken)
    assert counts[False] - counts[True] >= 390 and counts[True] <= 110, counts
    talk = world(offload=counted)
    talk.play((5.03, ("ada what time is it", 1.6)), until=12.0)
    assert [event.transcript for event in events(talk, TranscriptCompleted)] == ["What time is it"]
