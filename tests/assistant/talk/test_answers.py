"""Several answers from one state of a talk: the first is spoken and stands, the others are made beside it."""

from dataclasses import replace

import pytest

from assistant.events import (
    CreateItem,
    CreateResponse,
    Error,
    ItemAdded,
    Message,
    ResponseCreated,
    ResponseDone,
    ResponseParams,
    TextPart,
)
from tests.assistant.talk.test_candidates import clerk, household
from tests.fakes.talk import World

TWO, TEXT = ResponseParams(answers=2), ResponseParams(answers=3, modality="text")


def typed(text, item_id="u"):
    return CreateItem(Message(item_id, "user", (TextPart(text),)))


def hello(prompt):
    return ["Fine, and you?"] if prompt.lines[-1].text == "hello" else ["Good."]


def test_the_first_is_the_talks_and_the_others_leave_nothing():
    world = World(hello)
    session = world.play((0.0, typed("hi")), (0.1, CreateResponse()), (4.0, typed("hello", "v")),
                         (4.1, CreateResponse(TWO)), until=9)  # fmt: skip
    done = [event.response for event in world.of(ResponseDone)][1:]
    assert sorted((one.answer, one.in_conversation, one.status) for one in done) == [
        (0, True, "completed"), (1, False, "completed"),
    ]  # fmt: skip
    assert len({one.output[0].content[0].transcript for one in done}) == 1
    assert session.items[-1].id in {item.id for one in done if one.answer == 0 for item in one.output}
    assert len(session.items) == 4 and len(world.of(ItemAdded)) == 4
    assert list(world.llm.folded) == [session.talk] and list(world.tts.said) == [session.talk]


def test_every_answer_begins_with_one_prompt_whoever_asks_first():
    world = World(hello)
    asked = []
    world.llm.answers = lambda prompt: (asked.append(prompt), hello(prompt))[1]
    world.play((0.0, typed("hello")), (0.1, CreateResponse(TEXT)), until=3)
    assert len(asked) == 3 and asked[0] == asked[1] == asked[2]
    assert [event.response.answer for event in world.of(ResponseCreated)] == [0, 1, 2]


def test_seeds_follow_the_first_ones_and_it_keeps_its_own():
    world = World(hello)
    options = []
    before = world.llm.reply
    world.llm.reply = lambda talk, prompt, given: (options.append(given), before(talk, prompt, given))[1]
    world.play((0.0, typed("hello")), (0.1, CreateResponse(TEXT)), until=3)
    assert [one.seed for one in options] == [None, 1, 2]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        (replace(TWO, conversation="none"), "invalid_value"),
        (replace(TWO, input=()), "invalid_value"),
        (replace(TWO, answers=6), "rate_limit_exceeded"),
    ],
    ids=["aside", "input", "too many"],
)
def test_what_cannot_be_is_refused_and_nothing_begins(params, code):
    world = World(hello)
    world.play((0.0, typed("hello")), (0.1, CreateResponse(params, "c1")), until=2)
    [error] = world.of(Error)
    assert (error.code, error.cause) == (code, "c1") and not world.of(ResponseCreated)


@pytest.mark.parametrize("engine", ["llm", "tts"])
def test_where_a_server_keeps_the_state_there_is_one_answer(engine):
    world = World(hello)
    getattr(world, engine).state = None
    world.play((0.0, typed("hello")), (0.1, CreateResponse(TWO)), until=2)
    assert [error.code for error in world.of(Error)] == ["capsules_off"]


def test_what_an_answer_beside_the_talk_calls_is_told_and_not_run():
    tools = household()
    world = World(clerk, tools=lambda: tools)
    session = world.play((0.0, typed("put it there")), (0.1, CreateResponse(TWO)), until=6)
    assert [row.text for row in tools.kept.things("list shopping")] == ["thing 1"], "once, by the answer that stands"
    other = next(event.response for event in world.of(ResponseDone) if event.response.answer == 1)
    assert [item.name for item in other.output] == ["put"] and session.items[-1].content[0].transcript
