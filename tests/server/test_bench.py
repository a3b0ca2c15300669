"""Benchmarks of whole turns: quantiles that occurred, and a caller that interrupts and reports what was played."""

import asyncio

import numpy as np
import pytest

from assistant.bench import turns
from assistant.bench.figures import Distribution, distribution, figures_of, summary, table
from assistant.events import Settings, Timeline, TimelinePart
from assistant.pcm import resample
from tests.fakes.loop import run
from tests.fakes.talk import World


def test_quantiles_are_values_that_occurred():
    assert distribution(range(1, 101)) == Distribution(100, 50, 90, 99, 100)
    assert distribution([7.0]) == Distribution(1, 7.0, 7.0, 7.0, 7.0)
    assert distribution([3, 1, 2]).median == 2
    with pytest.raises(ValueError, match="at least one"):
        distribution([])


def test_figures_and_parts_are_gathered_with_their_n():
    timelines = [
        Timeline(1, "r1", 0.0, (TimelinePart("wait", 0.0, 5.0),), {"ttfa_ms": 9.0, "underruns": 3.0}),
        Timeline(2, "r2", 1.0, (TimelinePart("wait", 0.0, 7.0),), {"ttfa_ms": 11.0, "yield_ms": 2.0}),
    ]
    found = figures_of(timelines)
    assert found == {"ttfa_ms": [9.0, 11.0], "part: wait": [5.0, 7.0], "yield_ms": [2.0]}
    assert summary(found)["yield_ms"]["n"] == 1
    assert len(table(found)) == 4 and "ttfa_ms" in table(found)[1]


def test_a_caller_talks_interrupts_and_is_measured():
    """In virtual time: six turns, every third interrupted; the item of an interrupted reply is cut."""
    world = World(lambda prompt: ["one two three four five six seven eight nine ten"], speed=10.0)

    async def talk() -> turns.Measured:
        session = world.talks.open(Settings(persona="ada"))
        asked = [resample(world.ears.spoken(f"question {n}", 0.8), 16_000, 24_000) for n in range(2)]
        asked = [np.where(np.abs(pcm) > 0.19, np.round(pcm, 3), 0.0).astype(np.float32) for pcm in asked]
        measured = await turns.hold(session, asked, 6, 3)
        world.cut = [item for item in session.items if getattr(item, "status", "") == "incomplete"]
        return measured

    measured = run(talk())
    assert measured.unanswered == 0 and len(measured.timelines) == 6
    found = figures_of(measured.timelines)
    assert len(found["ttfa_ms"]) == 6 and len(found["reentry_ms"]) == 1
    assert len(world.cut) == 1
    assert asyncio.run(turns.questions(world.speaker, ("hello there",)))[0].size == 2 * 7200
