"""Commands come in: none waits for the recogniser that need not, and none overtakes what it counts on."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.base.channel import Channel
from assistant.base.errors import ChannelClosed
from assistant.events import (
    AppendAudio,
    AudioCommitted,
    AudioDelta,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Error,
    ItemDeleted,
    ItemTruncated,
    Message,
    ReportHeard,
    ResponseCreated,
    ResponseDone,
    RetrieveItem,
    Rewind,
    Settings,
    SettingsUpdated,
    TextPart,
    TranscriptCompleted,
    TruncateItem,
    Undo,
    UpdateSettings,
)
from assistant.talk.inlet import IN_FLIGHT, Inlet
from tests.fakes.loop import run
from tests.fakes.talk import World, inline

SLOW_S = 2.0
BY_HAND = Settings(persona="ada", turn_detection=None)
COUNT = "one two three four five six seven eight nine ten eleven twelve."
SOUND = AppendAudio(np.full(3200, 0.3, np.float32), 16_000)  # 200 ms, more than a commit needs


async def slowly(function):
    """A recogniser that takes 2 s for every call, its loading too."""
    await asyncio.sleep(SLOW_S)
    return function()


def slow(answers=lambda prompt: [COUNT], given=BY_HAND):
    return World(answers, given, speed=1.2, offload=slowly)


def played(world, *steps, until=60.0):
    return run(world.talk(*steps, until=until, microphone=False))


def typed(item_id="typed"):
    return CreateItem(Message(item_id, "user", (TextPart("count"),)))


# ------------------------------------------------------------------------------------- in virtual time


def test_a_cancel_takes_effect_while_sound_is_being_digested():
    world = slow()
    sounds = [(0.5 + n / 100, SOUND) for n in range(20)]  # 80 s of work
    played(world, (0.1, typed()), (0.2, CreateResponse()), *sounds, (1.0, CancelResponse()))
    assert world.when(ResponseCreated) == [0.2] and world.when(ResponseDone) == [1.0]
    assert world.of(ResponseDone)[0].response.status == "cancelled" and not world.of(Error)


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (Undo(1), ItemDeleted), (TruncateItem("item_1", 0, 300), ItemTruncated),
        (UpdateSettings(BY_HAND), SettingsUpdated), (CancelResponse(), ResponseDone),
    ],
)  # fmt: skip
def test_what_is_not_about_sound_waits_for_no_sound(command, event):
    world = slow()
    played(world, (0.1, typed()), (0.2, CreateResponse()), (0.5, SOUND), (0.51, SOUND), (1.0, command), until=20)
    assert world.when(event)[0] == 1.0 and not world.of(Error)


def test_not_even_the_loading_of_a_transcriber_is_waited_for():
    world = slow()
    played(world, (0.1, typed()), (0.2, CreateResponse()), until=1.0)
    assert world.when(ResponseCreated) == [0.2] and world.of(AudioDelta)


def test_commit_create_and_cancel_keep_their_order():
    """The cancel is for the reply that the front has asked for, and that one is for the turn it has committed."""
    world = slow()
    played(world, *[(0.1, one) for one in (SOUND, CommitAudio(), CreateResponse(), CancelResponse())])
    kinds = (AudioCommitted, ResponseCreated, ResponseDone, Error)
    assert [type(got.event) for got in world.log if isinstance(got.event, kinds)] == [
        AudioCommitted, ResponseCreated, ResponseDone,
    ]  # fmt: skip
    assert world.of(ResponseDone)[0].response.status == "cancelled"
    # loading, and two slices of 100 ms; what is behind the commit need not wait for the transcriber's last pass
    assert world.when(AudioCommitted) == world.when(ResponseCreated) == world.when(ResponseDone) == [6.0]
    assert world.when(TranscriptCompleted) == [8.0]


def test_a_cancel_alone_passes_a_commit_and_stops_the_reply_before_it():
    world = slow()
    steps = [(0.5, SOUND), (0.5, CommitAudio()), (1.0, CancelResponse())]
    played(world, (0.1, typed()), (0.2, CreateResponse()), *steps)
    assert world.when(ResponseDone) == [1.0] and world.when(AudioCommitted) == [6.0]


def test_an_undo_counts_the_turn_that_was_committed_before_it():
    world = slow()
    session = played(world, (0.1, typed("kept")), (0.5, SOUND), (0.5, CommitAudio()), (0.5, Undo(1)))
    assert [item.id for item in session.items] == ["kept"]
    assert world.when(ItemDeleted) == world.when(AudioCommitted) == [6.0]


def test_an_undo_does_not_wait_for_a_clear():
    world = slow()
    session = played(world, (0.1, typed()), (0.5, SOUND), (0.5, ClearAudio()), (0.6, Undo(1)))
    assert not session.items and world.when(ItemDeleted) == [0.6]


def test_a_slow_recogniser_slows_the_sender_of_sound_only():
    world = slow()

    async def talk():
        session = world.talks.open()
        async with asyncio.TaskGroup() as group:
            group.create_task(session.run())
            reading = group.create_task(world._read(session))
            sent = []

            async def microphone():
                for number in range(1000):
                    await session.send(SOUND)
                    sent.append(number)

            sending = group.create_task(microphone())
            await session.send(typed())
            await session.send(CreateResponse())
            await asyncio.sleep(1.0)
            assert len(sent) == IN_FLIGHT  # all that may lie there: memory is bounded
            await asyncio.sleep(20.0)
            assert IN_FLIGHT < len(sent) < IN_FLIGHT + 12  # one per two slices of 2 s
            await session.send(CreateResponse())
            await session.send(CancelResponse())
            sending.cancel()
            session.close()
            await reading

    run(talk())
    assert world.when(ResponseCreated)[-1] == 21.0


def test_a_sender_that_gives_up_leaves_nothing_to_wait_for():
    """A commit that never found room has no number: what is sent later does not wait for it."""

    async def inside():
        inbox = Channel(8)
        inlet = Inlet(inbox, inline)
        for _ in range(IN_FLIGHT):
            await inlet.send(SOUND)
        waiting = asyncio.ensure_future(inlet.send(CommitAudio()))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        running = asyncio.ensure_future(inlet.run())
        await inlet.send(CreateResponse())
        assert await inbox.receive() == CreateResponse()
        inlet.close()
        await running
        with pytest.raises(ChannelClosed):
            await inlet.send(SOUND)
        with pytest.raises(ChannelClosed):
            await inlet.send(CancelResponse())

    run(inside())


# ------------------------------------------------------------------------------------------- any order

PASSING = (CancelResponse, TruncateItem, ReportHeard)
ANY = st.sampled_from(
    [SOUND, SOUND, CommitAudio(), CommitAudio(), ClearAudio(), CreateResponse(), CancelResponse(), Undo(1),
     TruncateItem("a", 0, 0), ReportHeard("a", 1.0), typed(), UpdateSettings(BY_HAND)]
)  # fmt: skip


def is_sound(command):
    return isinstance(command, AppendAudio | CommitAudio | ClearAudio)


async def arrivals(commands, pauses, takes):
    """Places of commands in the order in which a session gets them; a commit or clear is what hearing makes
    of it. `pauses` behind each command, `takes` what hearing takes for each of what it gets, seconds."""
    came, inbox = [], Channel(8)
    inlet = Inlet(inbox, inline)

    async def ears():
        places = iter([place for place, command in enumerate(commands) if is_sound(command)])
        async for number, command in inlet.sound:
            place = next(places)
            await asyncio.sleep(takes[place])
            if not isinstance(command, AppendAudio):
                await inlet.reached(number)
                await inbox.send(command)  # as hearing puts what came of it
                inlet.came_through()

    async def session():
        async for command in inbox:
            came.append(next(place for place, one in enumerate(commands) if one is command))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in (inlet.run(), ears(), session())]
        for command, pause in zip(commands, pauses, strict=True):
            await inlet.send(command)
            await asyncio.sleep(pause)
        await asyncio.sleep(sum(takes) + 1)
        for task in tasks:
            task.cancel()
    return came


@settings(deadline=None)
@given(st.lists(st.tuples(ANY, st.sampled_from([0.0, 0.0, 0.3]), st.floats(0, 2)), min_size=1, max_size=40))
def test_nothing_overtakes_what_it_counts_on(steps):
    commands = [replace(command) for command, _, _ in steps]  # told apart by identity
    came = run(arrivals(commands, *([step[n] for step in steps] for n in (1, 2))))
    assert sorted(came) == [place for place, one in enumerate(commands) if not isinstance(one, AppendAudio)]
    for index, earlier in enumerate(came):
        for later in came[:index]:
            if later < earlier:
                continue
            # `later` was sent later and came first: only a commit or clear is passed, by what does not count on it
            assert is_sound(commands[earlier])
            undo = isinstance(commands[later], Undo) and isinstance(commands[earlier], ClearAudio)
            assert undo or isinstance(commands[later], PASSING)


EDITS = st.lists(
    st.one_of(
        st.builds(lambda n: typed(f"t{n}"), st.integers(1, 4)),
        st.builds(DeleteItem, st.sampled_from(["t1", "t2", "item_1", "item_2"])),
        st.builds(Rewind, st.sampled_from(["t1", "t2", "item_1"])),
        st.builds(RetrieveItem, st.sampled_from(["t1", "item_1"])),
        st.builds(Undo, st.integers(1, 2)),
        st.builds(ReportHeard, st.sampled_from(["t1", "item_1"]), st.floats(0, 100)),
        st.builds(TruncateItem, st.sampled_from(["t1", "item_1"]), st.just(0), st.just(100)),
        st.just(CancelResponse()), st.just(SOUND), st.just(SOUND), st.just(CommitAudio()), st.just(CommitAudio()),
        st.just(ClearAudio()),
    ),
    max_size=16,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(EDITS)
def test_all_at_once_at_slow_ears_comes_to_the_talk_of_one_after_the_other(commands):
    """The reference: ears that take no time, and a front that sends a command a second."""
    one_by_one = World(lambda prompt: ["Fine."], BY_HAND)
    reference = played(one_by_one, *[(float(n), command) for n, command in enumerate(commands)], until=40)
    at_once = slow(lambda prompt: ["Fine."])
    session = played(at_once, *[(0.0, command) for command in commands], until=120)
    assert session.items == reference.items
    assert len(at_once.of(Error)) == len(one_by_one.of(Error))
