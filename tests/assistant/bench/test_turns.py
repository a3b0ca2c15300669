"""Whole turns measured: a caller that interrupts and reports what was played."""

import asyncio
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from assistant.base.pcm import resample
from assistant.bench import turns
from assistant.bench.figures import figures_of
from assistant.events import Settings
from tests.fakes.loop import run
from tests.fakes.models import FakeTranscriber
from tests.fakes.talk import World


def question(world: World, text: str) -> turns.Question:
    pcm = resample(world.asr.spoken(text, 0.8), 16_000, 24_000)
    pcm = np.where(np.abs(pcm) > 0.19, np.round(pcm, 3), 0.0).astype(np.float32)
    return turns.Question(text, pcm, 0, pcm.size)


def test_a_caller_talks_interrupts_and_is_measured():
    """In virtual time: six turns, every third interrupted; the item of an interrupted reply is cut."""
    world = World(lambda prompt: ["one two three four five six seven eight nine ten"], speed=10.0)
    asked = partial(question, world)

    async def talk() -> list[turns.MeasuredTurn]:
        session = world.talks.open(Settings(persona="ada"))
        took: list[turns.MeasuredTurn] = []
        await turns.hold(session, [asked("first one"), asked("what then")], [asked("a long one")], 6, 3, took.append)
        world.cut = [item for item in session.items if getattr(item, "status", "") == "incomplete"]
        return took

    took = run(talk())
    timelines = [turn.timeline for turn in took]
    assert None not in timelines and [turn.interrupted for turn in took] == [False, False, True, False, False, False]
    assert [turn.question for turn in took[:4]] == ["first one", "what then", "a long one", "what then"]
    assert len({timeline.response_id for timeline in timelines}) == 6
    found = figures_of(timelines)
    assert len(found["ttfa_ms"]) == 6 and len(found["reentry_ms"]) == 1 and len(world.cut) == 1
    # The front knows the last loud sample, the session the last block that held speech.
    for turn in took:
        assert turn.figures["voice_to_voice"] == pytest.approx(turn.timeline.figures["voice_to_voice_ms"], abs=60)
    assert [("yield" in turn.figures) for turn in took] == [False, False, False, True, False, False]
    assert 0 < took[3].figures["yield"] < 500  # a front of its own player is told with the verdict


def test_who_speaks_without_end_is_written_down_and_never_answered(monkeypatch):
    world = World(lambda prompt: ["no"])
    written: list[str] = []
    partial_of = FakeTranscriber.partial
    monkeypatch.setattr(FakeTranscriber, "partial", lambda self: written.append("") or partial_of(self))

    async def talk() -> None:
        session = world.talks.open(Settings(persona="ada"))
        with suppress(TimeoutError):
            async with asyncio.timeout(8):
                await turns.speak_without_end(session, [question(world, "on and on")])
        world.kept = session.items

    run(talk())
    assert not world.kept and len(written) > 20


def test_questions_know_where_they_begin_and_end():
    world = World(lambda prompt: [])
    [asked] = asyncio.run(turns.questions(world.tts, ("hello there",)))
    assert asked.pcm.size == 2 * 7200 and 0 <= asked.begin < asked.end < asked.pcm.size
