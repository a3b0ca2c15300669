"""A reply that keeps silent is covered by a phrase: once a turn, from a fork, and the talk goes on as if it was not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from assistant.contracts import Prompt
from assistant.events import (
    AudioDelta,
    CreateItem,
    CreateResponse,
    Message,
    OutputItemAdded,
    ResponseDone,
    SemanticVad,
    ServerVad,
    Settings,
    SpeechStarted,
    TextPart,
    TimelineReady,
)
from assistant.talk.cover import COVER_AFTER_S, PHRASES
from assistant.talk.effects import CoverSilence
from assistant.talk.messages import StillSilent
from assistant.talk.turn_taking import Making, Overlap, TurnTakingState, step
from assistant.text.english import ENGLISH
from assistant.tools.registry import ToolRegistry
from tests.fakes.models import Answer
from tests.fakes.talk import World

COVERS = set(PHRASES.values())


def tools(seconds: float) -> ToolRegistry:
    registry = ToolRegistry()

    async def look() -> str:
        "Look."
        await asyncio.sleep(seconds)
        return "seen"

    async def work() -> str:
        "Work."
        await asyncio.sleep(seconds)
        return "worked"

    registry.tool(look, reads=True)
    registry.tool(work)
    return registry


def mind(prompt: Prompt) -> Sequence[Answer]:
    last = prompt.lines[-1]
    if last.role == "tool":
        return [("look", {})] if last.text == "worked" and "twice" in prompt.lines[0].text else [f"It is {last.text}."]
    for name in ("look", "work"):
        if name in last.text:
            return [(name, {})]
    return ["Fine."]


def typed(text: str) -> CreateItem:
    return CreateItem(Message(f"item_{text}", "user", (TextPart(text),)))


def world_of(seconds: float, **kinds: Any) -> World:
    return World(mind, tools=lambda: tools(seconds), **kinds)


def said(world: World) -> list[str]:
    return [
        "".join(part.transcript or "" for part in item.content)
        for done in world.of(ResponseDone) for item in done.response.output if isinstance(item, Message)
    ]  # fmt: skip


@pytest.mark.parametrize(("asked", "phrase"), [("look now", "Let me look."), ("work now", "One moment.")])
def test_a_slow_tool_is_covered_by_a_phrase_that_fits(asked: str, phrase: str) -> None:
    world = world_of(3.0)
    session = world.play((0.0, typed(asked)), (0.1, CreateResponse()), until=9)
    assert said(world) == [phrase, f"It is {'seen' if 'look' in asked else 'worked'}."]
    first = world.when(AudioDelta)[0]
    assert 0.1 + COVER_AFTER_S < first < 0.1 + COVER_AFTER_S + 0.2
    timeline = world.of(TimelineReady)[0].timeline
    assert timeline.total_ms > 3000, "the phrase is not the answer"
    assert [item.role for item in session.items if isinstance(item, Message)] == ["user", "assistant", "assistant"]


def test_a_quick_tool_is_not_covered() -> None:
    world = world_of(COVER_AFTER_S - 0.2)
    world.play((0.0, typed("look now")), (0.1, CreateResponse()), until=9)
    assert said(world) == ["It is seen."]


def test_both_models_go_on_as_if_nothing_had_been_said() -> None:
    """The same talk, covered and not: the prompt of the next turn and the voice's state are equal."""
    states = []
    for paced in (True, False):  # a front that does not play in real time is not covered
        world = world_of(3.0, settings=Settings(persona="ada", turn_detection=None, paced=paced))
        session = world.play((0.0, typed("look now")), (0.1, CreateResponse()), (8, typed("well")),
                             (8.1, CreateResponse()), until=14)  # fmt: skip
        assert (len(COVERS & {*said(world)}) == 1) == paced
        lines = [(line.role, line.text) for line in session.prompt_as("ada").lines]
        spoken = [samples for _, samples in world.tts.said[session.talk]]
        states.append((lines, spoken, [*world.tts.said]))
    assert states[0] == states[1]


def test_one_phrase_a_turn_and_another_in_the_next() -> None:
    world = world_of(3.0)
    world.play((0.0, typed("work twice")), (0.1, CreateResponse()), (12, typed("look")), (12.1, CreateResponse()))
    assert [text for text in said(world) if text in COVERS] == ["One moment.", "Let me look."]


@pytest.mark.parametrize("lost", [None, "I did not catch that."])
def test_a_model_that_thinks_is_covered_and_the_shipped_one_is_not(lost: str | None) -> None:
    world = world_of(3.0, lost=lost)
    world.llm.prefill_s = 3.0
    world.play((0.0, typed("hello")), (0.1, CreateResponse()), until=9)
    assert said(world) == ["Fine."] if lost else ["Let me think.", "Fine."]


def test_a_candidate_says_nothing_until_the_turn_is_over() -> None:
    settings = Settings(persona="ada", turn_detection=ServerVad(silence_duration_ms=3000))
    world = world_of(5.0, settings=settings)
    world.play((0.5, ("look now", 1.0)), until=16)
    over = 0.5 + 1.0 + 3.0
    assert said(world) == ["Let me look.", "It is seen."]
    assert world.when(AudioDelta)[0] >= over + COVER_AFTER_S
    assert world.when(OutputItemAdded)[0] >= over


def test_the_user_interrupts_a_phrase_like_any_reply() -> None:
    world = world_of(6.0, settings=Settings(persona="ada", turn_detection=ServerVad()))
    session = world.play((0.0, typed("work now")), (0.1, CreateResponse()), (1.6, ("never mind that", 0.9)), until=12)
    assert world.of(SpeechStarted) and world.of(ResponseDone)[0].response.status == "cancelled"
    assert said(world)[-1] == "Fine." and not [name for name in world.tts.said if name.endswith("/cover")]
    assert session.items[-1].status == "completed"


ROWS = [
    (TurnTakingState(), False),
    (TurnTakingState(making=Making.PRIVATE), True),
    (TurnTakingState(making=Making.SOUNDING), True),
    (TurnTakingState(making=Making.PRIVATE, covered=True), False),
    (TurnTakingState(making=Making.SOUNDING, held=True), False),
    (TurnTakingState(making=Making.PRIVATE, overlap=Overlap("a", 0, 0.0)), False),
]


@pytest.mark.parametrize(("state", "covers"), ROWS)
def test_rows_of_the_step(state: TurnTakingState, covers: bool) -> None:
    for settings in (Settings(), Settings(turn_detection=ServerVad()), Settings(turn_detection=SemanticVad("low"))):
        after, effects = step(state, StillSilent("resp_1", "works"), settings, 10.0, ENGLISH)
        assert effects == ((CoverSilence("works"),) if covers else ())
        assert after.covered == (covers or state.covered)
