"""Whose step is next: the voice never starves, talks take turns."""

import pytest

from assistant.device.schedule import (
    GUESS_STEPS,
    SLICE,
    TARGET_LEAD_MS,
    EngineKind,
    LLMWork,
    TTSWork,
    Urgency,
    due,
    next_engine,
    next_llm,
    next_tts,
)


def test_the_voice_never_starves_and_then_thinking_has_the_bus():
    assert next_engine(LLMWork(), TTSWork(TARGET_LEAD_MS - 1)) is EngineKind.TTS
    assert next_engine(LLMWork(), TTSWork(TARGET_LEAD_MS)) is EngineKind.LLM


@pytest.mark.parametrize(
    ("leads", "current", "chosen"),
    [
        ([0], None, 0),
        ([500, 0], 0, 0),  # a change is not worth its cost while the lead is short
        ([900, 0], 0, 1),
        ([900, 100, 0], 0, 1),  # who asked first
        ([0, 900], 1, 0),
        ([900, 900], 1, 1),
        ([900, 900], None, 0),
    ],
)
def test_talks_that_speak_at_once_take_turns(leads, current, chosen):
    assert next_tts([TTSWork(lead) for lead in leads], current) == chosen


@pytest.mark.parametrize(
    ("steps", "current", "chosen"),
    [
        ([3], 0, 0),
        ([500, 0], 0, 1),  # somebody waits for its first words
        ([SLICE - 1, 0], 0, 0),  # who asked first
        ([500, SLICE + 1], 1, 1),
        ([500, 2 * SLICE], 1, 0),  # its slice is over
        ([SLICE * 9, 500, 600], 0, 1),
        ([SLICE * 9], 0, 0),
        ([500, 600], None, 0),
    ],
)
def test_talks_that_think_at_once_take_turns(steps, current, chosen):
    assert next_llm([LLMWork(steps=made) for made in steps], current) == chosen


AWAITED, GUESS, IDLE = Urgency


@pytest.mark.parametrize(
    ("work", "chosen"),
    [
        ([], []),
        ([LLMWork(AWAITED), TTSWork(0, AWAITED)], [0, 1]),
        ([LLMWork(IDLE), TTSWork(1e9, AWAITED)], [1]),  # a voice goes before what nobody waits for, whatever its lead
        ([LLMWork(GUESS), TTSWork(1e9, AWAITED)], [1]),  # a voice that sounds never waits for a guess
        ([LLMWork(AWAITED, 500), TTSWork(0, GUESS)], [0]),  # nor does anybody's reply
        ([LLMWork(IDLE), LLMWork(GUESS), TTSWork(0, GUESS)], [1, 2]),
        ([LLMWork(GUESS, GUESS_STEPS - 1)], [0]),
        ([LLMWork(GUESS, GUESS_STEPS), TTSWork(0, GUESS, GUESS_STEPS)], []),  # enough, until it is known to be right
        ([LLMWork(GUESS, GUESS_STEPS), LLMWork(IDLE, 500)], [1]),
    ],
)
def test_a_guess_gives_way_to_all_that_is_awaited(work, chosen):
    assert due(work) == chosen
