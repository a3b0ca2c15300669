"""Whose step is next: the voice never starves, talks take turns."""

import pytest

from assistant.device.schedule import (
    SLICE,
    TARGET_LEAD_MS,
    EngineKind,
    LLMWork,
    TTSWork,
    next_engine,
    next_llm,
    next_tts,
)


def test_the_voice_never_starves_and_then_thinking_has_the_bus():
    assert next_engine(None, None) is None
    assert next_engine(LLMWork(), None) is EngineKind.LLM and next_engine(None, TTSWork(1e9)) is EngineKind.TTS
    assert next_engine(LLMWork(), TTSWork(TARGET_LEAD_MS - 1)) is EngineKind.TTS
    assert next_engine(LLMWork(), TTSWork(TARGET_LEAD_MS)) is EngineKind.LLM
    assert next_engine(LLMWork(idle_work=True), TTSWork(TARGET_LEAD_MS)) is EngineKind.TTS


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
    ("steps", "idle", "current", "chosen"),
    [
        ([3], [0], 0, 0),
        ([500, 0], [0, 0], 0, 1),  # somebody waits for its first words
        ([SLICE - 1, 0], [0, 0], 0, 0),  # who asked first
        ([500, SLICE + 1], [0, 0], 1, 1),
        ([500, 2 * SLICE], [0, 0], 1, 0),  # its slice is over
        ([SLICE * 9, 500, 600], [0, 0, 0], 0, 1),
        ([SLICE * 9], [0], 0, 0),
        ([0, 500], [1, 0], 0, 1),  # nobody waits for the first
        ([500, 0], [1, 1], 0, 1),
        ([500, 600], [0, 0], None, 0),
    ],
)
def test_talks_that_think_at_once_take_turns(steps, idle, current, chosen):
    talks = [LLMWork(bool(i), made) for i, made in zip(idle, steps, strict=True)]
    assert next_llm(talks, current) == chosen
