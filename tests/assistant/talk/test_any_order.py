"""Whatever a front does in whatever order: nothing gets stuck, nothing follows its end, no item is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.events import (
    AppendAudio,
    AudioDelta,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Duck,
    FunctionOutput,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    Message,
    OutputItemAdded,
    OutputItemDone,
    ReportHeard,
    ResponseCreated,
    ResponseDone,
    ResponseParams,
    Resume,
    RetrieveItem,
    Rewind,
    SemanticVad,
    ServerVad,
    Settings,
    StopPlayback,
    SwitchPersona,
    TextPart,
    ToolSpec,
    TruncateItem,
    Undo,
    UpdateSettings,
)
from tests.fakes.talk import World

IDS = st.sampled_from([f"item_{n}" for n in range(1, 9)] + ["t1", "t2", "nobody"])
DETECTION = st.sampled_from(
    [None, ServerVad(), ServerVad(interrupt_response=False), ServerVad(create_response=False), SemanticVad()]
)
COMMANDS = st.one_of(
    st.builds(lambda n: CreateItem(Message(f"t{n}", "user", (TextPart("count"),))), st.integers(1, 4)),
    st.builds(lambda n: CreateItem(FunctionOutput(f"o{n}", "call", "fine")), st.integers(1, 2)),
    st.just(CreateResponse()),
    st.just(CreateResponse(ResponseParams(conversation="none", modality="text"))),
    st.just(CreateResponse(ResponseParams(modality="text"))),
    st.just(CancelResponse()),
    st.builds(TruncateItem, IDS, st.sampled_from([0, 0, 0, 1]), st.integers(-10, 5000)),
    st.builds(DeleteItem, IDS),
    st.builds(RetrieveItem, IDS),
    st.builds(ReportHeard, IDS, st.floats(0, 4000)),
    st.builds(Undo, st.integers(0, 3)),
    st.builds(Rewind, IDS, st.none() | st.integers(0, 5)),
    st.just(CommitAudio()),
    st.just(ClearAudio()),
    st.builds(SwitchPersona, st.sampled_from(["ada", "ben", "eve"])),
    st.builds(lambda d, duck: UpdateSettings(Settings(persona="ada", turn_detection=d, duck=duck)), DETECTION,
              st.booleans()),
    st.just(AppendAudio(np.full(3000, 0.3, np.float32), 16_000)),
)  # fmt: skip
SPEECH = st.tuples(st.sampled_from(["count", "mhm", "tool please", "wait a minute"]), st.sampled_from([0.25, 0.6, 1.2]))
STEPS = st.lists(st.tuples(st.floats(0, 12).map(lambda t: round(t, 2)), COMMANDS | SPEECH), max_size=12)


def mind(prompt):
    last = prompt.lines[-1].text if prompt.lines else ""
    if "tool" in last:
        return ["Let me see.", ("look", {})]
    return ["one two three four five six."] if "count" in last else ["Fine."]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(STEPS)
def test_a_talk_under_any_order_of_events(steps):
    world = World(mind, Settings(persona="ada", tools=(ToolSpec("look"),)), speed=2)
    world.block_s = 0.1
    session = world.play(*steps, (22.0, Undo(1)), until=26)
    every_reply_ends_once_and_nothing_follows_it(world)
    the_front_knows_every_item_that_the_talk_keeps(world, session)
    the_models_end_up_with_what_the_talk_says(world, session)


def every_reply_ends_once_and_nothing_follows_it(world):
    begun, ended, open_items = set(), set(), {}
    for got in world.log:
        event = got.event
        if isinstance(event, ResponseCreated):
            assert event.response.id not in begun
            begun.add(event.response.id)
        elif isinstance(event, ResponseDone):
            assert event.response.id in begun - ended
            ended.add(event.response.id)
            assert not open_items.pop(event.response.id, set())
        elif isinstance(event, OutputItemAdded):
            open_items.setdefault(event.response_id, set()).add(event.item.id)
        elif isinstance(event, OutputItemDone):
            open_items[event.response_id].remove(event.item.id)
        elif isinstance(event, AudioDelta):
            assert event.item_id in open_items[event.response_id]
        if isinstance(event, Duck | Resume | StopPlayback):
            assert event.response_id in begun  # its sound may still play when it is made
        elif hasattr(event, "response_id") and not hasattr(event, "ms"):
            assert event.response_id in begun - ended
    assert begun == ended  # the time is enough for every reply: none is stuck
    assert world.llm.running == world.tts.running == 0


def the_front_knows_every_item_that_the_talk_keeps(world, session):
    known = {}
    for got in world.log:
        event = got.event
        if isinstance(event, ItemAdded):
            assert event.item.id not in known
            known[event.item.id] = "added"
        elif isinstance(event, ItemDone):
            assert known.get(event.item.id) in ("added", None)
            known[event.item.id] = "done"
        elif isinstance(event, ItemDeleted):
            assert known.pop(event.item_id) is not None
    assert set(known) == {item.id for item in session.items}


def the_models_end_up_with_what_the_talk_says(world, session):
    if session.talk in world.tts.said:
        said = [(piece.piece_id, piece.samples) for piece in session.conversation.uttered()]
        assert world.tts.said[session.talk] == said
