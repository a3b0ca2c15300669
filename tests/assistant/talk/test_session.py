"""Talks as timelines in virtual time: what comes when, to the millisecond."""

import asyncio
import datetime as dt
import shutil
from dataclasses import replace

import numpy as np
import pytest

from assistant.base.errors import TalksFull, UnknownTalk
from assistant.contracts import SpeechChunk
from assistant.events import (
    AppendAudio,
    AudioCleared,
    AudioDelta,
    CallDone,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Duck,
    Error,
    FunctionOutput,
    IdleTimeout,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    Message,
    PersonaSwitched,
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
    SettingsUpdated,
    SpeechStarted,
    SpeechStopped,
    StateChanged,
    StopPlayback,
    SwitchPersona,
    TextDelta,
    TextPart,
    TimelineReady,
    ToolSpec,
    ToolUsed,
    TranscriptCompleted,
    TranscriptFailed,
    TruncateItem,
    Undo,
    UpdateSettings,
)
from assistant.talk.conversation import item_text
from assistant.talk.prompt import build
from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.errors import AnswerError
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from assistant.tools.moments import Moment
from assistant.tools.registry import Tool, ToolRegistry, ToolResult
from assistant.tools.wall import wall_clock
from capsules.durable import HEAD, entry_bytes, read_entries
from tests.fakes.loop import run
from tests.fakes.models import FakeDetector, FakeEars, FakeTTS
from tests.fakes.talk import PERSONAS, World

COUNT = "one two three four five six seven eight nine ten eleven twelve."


def counting(prompt):
    return [COUNT] if "count" in prompt.lines[-1].text else ["Fine."]


def typed(text, item_id="typed"):
    return CreateItem(Message(item_id, "user", (TextPart(text),)))


def test_spoken_turn_follows_the_protocols_order_and_the_models_times():
    world = World(candidates=False)
    world.play((0.5, ("hello there friend", 1.0)), until=6)
    names = [name for name in world.names() if name not in ("TranscriptPartial", "SpokenText", "AudioDelta")]
    assert names == [
        "SpeechStarted", "SpeechStopped", "AudioCommitted", "ItemAdded", "ItemDone", "ResponseCreated",
        "TranscriptDelta", "TranscriptCompleted", "OutputItemAdded", "ItemAdded", "PartAdded", "TimelineReady",
        "AudioDone", "SpokenTextDone", "PartDone", "ItemDone", "OutputItemDone", "ResponseDone",
    ]  # fmt: skip
    [stopped], [done] = world.of(SpeechStopped), world.of(ResponseDone)
    assert stopped.audio_end_ms == 1504  # speech ends at 1.5 s; blocks are 32 ms
    # 500 ms of silence, asked per 32 ms block, the block delivered in 20 ms pieces
    assert world.when(ResponseCreated) == [2.02]
    # 20 ms prefill, 5 tokens of 10 ms, 30 ms voice prefill, 100 ms of sound at ten times real time
    assert world.when(TimelineReady) == [pytest.approx(2.13)]
    parts = {part.name: round(part.ms, 3) for part in done.timeline.parts}
    assert parts == {
        "turn_wait": 516, "transcribe": 0, "prefill": 20, "llm": 50, "tts_prefill": 30, "tts_wait": 10,
        "transport": 0,
    }  # fmt: skip
    assert done.timeline.total_ms == pytest.approx(done.timeline.figures["voice_to_voice_ms"]) == pytest.approx(626)
    assert done.timeline.figures["ttfa_ms"] == pytest.approx(110)
    assert sum(delta.pcm.size for delta in world.of(AudioDelta)) == 5 * 7200


def test_second_turn_reuses_what_the_first_folded():
    world = World()
    world.play((0.5, ("one two", 0.6)), (4.0, ("three four", 0.6)), until=8)
    first, second = world.of(ResponseDone)
    assert first.response.usage.cached_tokens == 0
    assert second.response.usage.cached_tokens == second.response.usage.input_tokens - 3  # only the new user line


def test_barge_in_stops_the_reply_and_keeps_what_was_heard():
    world = World(counting, speed=1.2)

    def front(session, event):
        if isinstance(event, SpeechStarted) and world.of(AudioDelta):
            return [TruncateItem(world.of(AudioDelta)[0].item_id, 0, 1000)]
        return []

    world.on_event = front
    session = world.play((0.2, ("count", 0.4)), (3.0, ("stop now", 0.5)), until=7)
    cancelled = world.of(ResponseDone)[0].response
    assert (cancelled.status, cancelled.reason) == ("cancelled", "turn_detected")
    [truncated] = world.of(ItemTruncated)
    assert (truncated.audio_end_ms, truncated.transcript) == (1000, "one two three")
    spoken = next(item for item in session.items if item.id == truncated.item_id)
    assert spoken.content[0].transcript == "one two three" and spoken.status == "incomplete"
    # the models remember the heard part, then the new question and its answer, and nothing else
    state = " ".join(world.llm.folded[session.talk])
    assert "<assistant> one two three <user> stop now <assistant> Fine." in state
    pieces = world.tts.said[session.talk]
    assert [samples for _, samples in pieces] == [24_000, 7_200]


def test_nothing_of_a_reply_follows_its_end():
    world = World(counting, speed=1.2)
    world.play((0.2, ("count", 0.4)), (2.5, ("no", 0.3)), until=6)
    ended = set()
    for got in world.log:
        if isinstance(got.event, ResponseDone):
            ended.add(got.event.response.id)
        elif hasattr(got.event, "response_id"):
            assert got.event.response_id not in ended
    assert len(ended) == 2


@pytest.mark.parametrize(
    ("end_ms", "kept"), [(-5, ""), (0, ""), (100, ""), (160, "one"), (460, "one two"), (10**9, COUNT)]
)
def test_truncation_is_clamped_and_cuts_at_words(end_ms, kept):
    world = World(counting)
    steps = [(0.0, typed("count")), (0.1, CreateResponse()), (9.0, TruncateItem("item_1", 0, end_ms))]
    session = world.play(*steps, until=12)
    assert not world.of(Error)
    [truncated] = world.of(ItemTruncated)
    assert truncated.transcript == kept
    assert truncated.audio_end_ms == min(max(0, end_ms), 3600)
    assert session.items[-1].content[0].transcript == kept


def test_second_truncation_may_only_shorten():
    world = World(counting)
    cuts = [(9.0 + i / 10, TruncateItem("item_1", 0, ms)) for i, ms in enumerate([1000, 2000, 400])]
    world.play((0.0, typed("count")), (0.1, CreateResponse()), *cuts, until=12)
    assert [cut.audio_end_ms for cut in world.of(ItemTruncated)] == [1000, 1000, 400]
    assert [cut.transcript for cut in world.of(ItemTruncated)] == ["one two three", "one two three", "one"]


def test_truncation_while_the_reply_runs_stops_it_first():
    world = World(counting, speed=2)
    world.play((0.0, typed("count")), (0.1, CreateResponse()), (0.6, TruncateItem("item_1", 0, 600)), until=4)
    names = [n for n in world.names() if n in ("ResponseDone", "ItemTruncated")]
    assert names == ["ResponseDone", "ItemTruncated"]
    assert world.of(ResponseDone)[0].response.status == "cancelled"


def test_manual_mode_commits_by_hand_and_starts_nothing_by_itself():
    world = World(settings=Settings(persona="ada", turn_detection=None))
    world.play((0.3, ("good morning", 0.8)), (1.5, CommitAudio()), (3.0, CreateResponse()), until=6)
    assert not world.of(SpeechStarted)
    assert world.of(TranscriptCompleted)[0].transcript == "good morning"
    assert world.when(ResponseCreated) == [3.0]
    assert world.of(ResponseDone)[0].response.output[0].content[0].transcript == "You said good morning."


def test_what_is_said_once_detection_is_switched_off_in_a_pause_is_heard():
    world = World()
    by_hand = UpdateSettings(Settings(persona="ada", turn_detection=None))
    world.play((0.5, ("good", 0.4)), (1.1, by_hand), (1.3, ("morning", 0.5)), (2.0, CommitAudio()), until=5)
    assert [event.transcript for event in world.of(TranscriptCompleted)] == ["good morning"]


def test_empty_commit_is_an_error_and_clear_empties():
    world = World(settings=Settings(persona="ada", turn_detection=None))
    steps = [(0.01, CommitAudio("e1")), (0.5, ClearAudio()), (0.51, CommitAudio("e2"))]
    world.play(*steps, until=1)
    assert [(error.code, error.cause) for error in world.of(Error)] == [
        ("input_audio_buffer_commit_empty", "e1"), ("input_audio_buffer_commit_empty", "e2"),
    ]  # fmt: skip
    assert len(world.of(AudioCleared)) == 1


def test_a_microphone_that_falls_silent_by_sending_nothing_ends_the_turn_within_a_second():
    world = World()

    async def talk():
        session = world.talks.open()
        words = world.asr.spoken("hello", 0.6)
        async with asyncio.TaskGroup() as group:
            group.create_task(session.run())
            reading = group.create_task(world._read(session))
            await session.send(AppendAudio(words, 16_000))
            await asyncio.sleep(5)
            session.close()
            await reading

    run(talk())
    assert world.when(SpeechStopped) == [1.0]
    assert world.of(ResponseDone)[0].response.status == "completed"


def test_a_second_response_is_refused_while_one_runs_and_an_aside_is_not():
    world = World(counting, speed=2)
    aside = ResponseParams(conversation="none", modality="text", input=(Message("x", "user", (TextPart("hi"),)),),
                           metadata={"topic": "aside"})  # fmt: skip
    session = world.play(
        (0.0, typed("count")), (0.1, CreateResponse()), (0.3, CreateResponse(cause="c2")),
        (0.4, CreateResponse(aside)), until=6,
    )  # fmt: skip
    [error] = world.of(Error)
    assert (error.code, error.cause) == ("conversation_already_has_active_response", "c2")
    done = {event.response.id: event.response for event in world.of(ResponseDone)}
    assert done["resp_2"].metadata == {"topic": "aside"} and not done["resp_2"].in_conversation
    assert done["resp_2"].output[0].content == (TextPart("Fine."),)
    assert all(item.id != done["resp_2"].output[0].id for item in session.items)
    assert f"{session.talk}/resp_2" not in world.llm.folded
    assert done["resp_1"].status == "completed"


def test_cancel_without_a_reply_has_the_code_that_clients_know():
    world = World()
    world.play((0.1, CancelResponse(cause="c")), until=1)
    [error] = world.of(Error)
    assert error.code == "response_cancel_not_active" and error.message.startswith("Cancellation failed")


def test_typed_turn_answers_in_text():
    world = World()
    world.play((0.0, typed("hi")), (0.1, CreateResponse(ResponseParams(modality="text"))), until=2)
    assert "".join(delta.delta for delta in world.of(TextDelta)) == "You said hi."
    assert not world.of(AudioDelta)


def test_a_voice_with_a_pace_of_its_own_says_so():
    """The settings that hold are told: a speed that will not be followed is not among them."""
    world = World(lambda prompt: ["Hello."])
    world.play((0.5, UpdateSettings(Settings(persona="ada", speed=1.4))), until=1.0)
    assert [event.settings.speed for event in world.of(SettingsUpdated)] == [1.0]
    other = World(lambda prompt: ["Hello."])
    other.tts.paces = True
    other.play((0.5, UpdateSettings(Settings(persona="ada", speed=1.4))), until=1.0)
    assert [event.settings.speed for event in other.of(SettingsUpdated)] == [1.4]


def test_clients_tool_call_round():
    def answers(prompt):
        if prompt.lines[-1].role == "tool":
            return [f"It is {prompt.lines[-1].text}."]
        return [("weather", {"city": "Bern"})]

    world = World(answers, Settings(persona="ada", tools=(ToolSpec("weather"),)))
    session = world.play(
        (0.0, typed("weather?")), (0.1, CreateResponse()),
        (1.0, CreateItem(FunctionOutput("out", "call_resp_1.0", "sunny"))), (1.5, CreateResponse()), until=4,
    )  # fmt: skip
    [call] = world.of(CallDone)
    assert (call.name, call.arguments) == ("weather", '{"city": "Bern"}')
    first, second = world.of(ResponseDone)
    assert first.response.output[0].name == "weather"
    assert second.response.output[0].content[0].transcript == "It is sunny."
    assert world.when(ResponseCreated) == [0.1, 1.5]
    assert [type(item).__name__ for item in session.items] == ["Message", "FunctionCall", "FunctionOutput", "Message"]


def tools_of(*functions):
    def make():
        registry = ToolRegistry()
        for function in functions:
            registry.tool(function)
        return registry

    return make


async def slow() -> str:
    "Takes its time."
    await asyncio.sleep(3)
    return "at last"


def test_own_tool_runs_here_and_a_slow_one_is_bridged():
    def answers(prompt):
        return [prompt.lines[-1].text + "!"] if prompt.lines[-1].role == "tool" else [("slow", {})]

    world = World(answers, tools=tools_of(slow))
    session = world.play((0.0, typed("go")), (0.1, CreateResponse()), until=8)
    [done] = world.of(ResponseDone)
    assert [item.content[0].transcript for item in done.response.output] == ["One moment.", "at last!"]
    assert world.of(ToolUsed)[0].output == "at last"
    assert [item.role for item in session.items] == ["user", "assistant", "assistant"]  # the call stays inside


async def divide() -> str:
    "Cannot be done."
    raise AnswerError("nothing can be divided by zero")


LOST = "I did not catch that. Could you say it again?"


@pytest.mark.parametrize("lost", [LOST, None])
def test_a_model_that_comes_to_nothing_says_so(lost):
    world = World(lambda prompt: [], lost=lost)
    session = world.play((0.0, typed("fifty per cent of achy", "a")), (0.1, CreateResponse()), until=4)
    said = [item_text(item) for item in session.items[1:]]
    assert said == [lost or "I have no answer to that."]
    assert [done.response.status for done in world.of(ResponseDone)] == ["completed"]


@pytest.mark.parametrize(("lost", "before"), [(LOST, ""), (None, ""), (LOST, "hello")])
def test_a_model_that_may_lose_its_way_is_not_asked_about_what_nobody_understood(lost, before):
    world = World(lambda prompt: ["I was asked."], lost=lost)
    first = [(0.0, typed(before, "a"))] if before else []  # words that wait for their answer
    session = world.play(*first, (0.1, typed("", "b")), (0.2, CreateResponse()), until=4)
    said = LOST if lost and not before else "I was asked."
    assert item_text(session.items[-1]) == said


@pytest.mark.parametrize("lost", [LOST, None])
def test_an_error_of_a_tool_is_for_the_model_and_a_person_hears_a_question(lost):
    """A model that may lose its way has no words for it, so the tool's question is said; others read the error."""

    def answers(prompt):
        last = prompt.lines[-1]
        return ["How long, please?"] if last.role == "tool" else [("set_timer", {"duration": "10 timer"})]

    app = BuiltinTools(Kept(), wall_clock, {}, lambda: "ada")
    world = World(answers, tools=lambda: builtin_tools(app), lost=lost)
    session = world.play((0.0, typed("ten")), (0.1, CreateResponse()), until=8)
    said = item_text(session.items[-1])
    assert said == ("10 seconds, minutes or hours?" if lost else "How long, please?")
    assert "is not a length of time" in world.of(ToolUsed)[0].output and not app.kept.promises("timer")


@pytest.mark.parametrize("lost", [LOST, None])
def test_why_a_tool_failed_is_said_by_a_mind_that_can_and_else_for_it(lost):
    def answers(prompt):
        return [("divide", {})] if prompt.lines[-1].role == "user" else ["I read " + prompt.lines[-1].text]

    world = World(answers, tools=tools_of(divide), lost=lost)
    session = world.play((0.0, typed("go")), (0.1, CreateResponse()), until=8)
    [done] = world.of(ResponseDone)
    said = "Nothing can be divided by zero." if lost else 'I read {"error": "nothing can be divided by zero"}'
    assert [item.content[0].transcript for item in done.response.output] == [said]
    lines = build("", (), session.conversation).lines
    assert [line.role for line in lines] == ["user", "assistant", "tool", "assistant"] and lines[-1].text == said


async def undo() -> ToolResult:
    "Take the last turn back."
    return ToolResult("ok", effect="undo")


def test_spoken_undo_leaves_the_state_of_before():
    def answers(prompt):
        last = prompt.lines[-1]
        if last.role == "tool":
            return ["Done."]
        return [("undo", {})] if "undo" in last.text else [f"You said {last.text}."]

    world = World(answers, tools=tools_of(undo))
    session = world.play(
        (0.0, typed("keep", "a")), (0.1, CreateResponse()), (2.0, typed("drop", "b")), (2.1, CreateResponse()),
        (4.0, typed("undo", "c")), (4.1, CreateResponse()), until=8,
    )  # fmt: skip
    assert [item.id for item in session.items] == ["a", "item_1"]
    assert len(session.conversation) == 2  # hidden call and result went too
    other = World(answers, tools=tools_of(undo))
    alone = other.play((0.0, typed("keep", "a")), (0.1, CreateResponse()), until=4)
    assert world.llm.folded[session.talk] == other.llm.folded[alone.talk]
    assert world.tts.said[session.talk] == other.tts.said[alone.talk]


def test_undo_takes_back_what_tools_did_and_an_interruption_does_not(tmp_path):
    """Over two sessions with a restart between them; the tools' state and the words of the talk stay together."""

    def answers(prompt):
        last = prompt.lines[-1]
        if last.role == "tool" or " " not in last.text:
            return [COUNT]
        name, _, value = last.text.partition(" ")
        return [(name, {"items": value} if "list" in name else {"duration": value} if value != "that" else {})]

    def world():
        return World(answers, folder=tmp_path, tools=lambda: builtin_tools(App.of(made)))

    class App(BuiltinTools):
        @classmethod
        def of(cls, made):
            made.append(cls(Kept(home), home.now, {}, lambda: "ada"))
            return made[-1]

    made: list[App] = []
    home = HomeRows()
    one = world()
    session = one.play(
        (0.0, typed("list_add milk", "a")), (0.1, CreateResponse()), (8.0, typed("list_add eggs", "b")),
        (8.1, CreateResponse()), (9.0, CancelResponse()), (10.0, typed("set_timer 5 hours", "c")),
        (10.1, CreateResponse()), (18.0, Undo(1)), until=19,
    )  # fmt: skip
    used = [event.output for event in one.of(ToolUsed)]
    assert used == ["milk", "eggs", "5 hours", "The timer of 5 hours is stopped."]
    assert [item.id for item in session.items if item.role == "user"] == ["a", "b"]
    [app] = made
    assert [row.text for row in app.kept.things("list shopping")] == ["milk", "eggs"]
    assert not app.kept.promises("timer")

    two = world()
    run(two.talk((0.0, Undo(1)), until=1, resume=session.talk))
    assert [event.output for event in two.of(ToolUsed)] == ["I took eggs off the shopping list."]
    assert [row.text for row in made[-1].kept.things("list shopping")] == ["milk"]


def test_a_talk_of_which_nothing_is_left_is_not_resumed(tmp_path):
    world = World(folder=tmp_path)
    session = world.play((0.0, typed("secret")), until=1)
    run(world.talk((0.0, Undo(1)), until=1, resume=session.talk))
    with pytest.raises(UnknownTalk):
        World(folder=tmp_path).talks.open(resume=session.talk)


def killed_at(world, folder, at_s, *steps):
    """A talk whose process is gone at this time: what another one finds in a copy of its folder then."""
    copy = folder.with_name("copy")

    async def watch():
        await asyncio.sleep(at_s)
        shutil.copytree(folder, copy)

    async def both():
        async with asyncio.TaskGroup() as group:
            group.create_task(watch())
            session = await world.talk(*steps, until=at_s + 1)
        return session

    session = run(both())
    return World(folder=copy).talks.open(resume=session.talk)


def test_whatever_a_front_was_told_outlives_a_kill_the_moment_after(tmp_path):
    """At every event the journal holds what that event tells: the talk is resumed from a copy made right then."""
    folder = tmp_path / "talks"
    world, found = World(counting, folder=folder), []

    def at_event(session, event):
        copy = tmp_path / f"copy{len(found)}"
        if folder.exists() and isinstance(event, ItemDone | ItemTruncated | ItemDeleted | ResponseDone):
            shutil.copytree(folder, copy)
            items = {item.id: item for item in session.items if item.status != "in_progress"}
            found.append((event, items, World(folder=copy), session.talk))
        return ()

    world.on_event = at_event
    world.play(
        (0.0, typed("one", "a")), (0.1, CreateResponse()), (6.0, typed("two", "b")), (6.1, CreateResponse()),
        (7.5, CancelResponse()), (8.0, TruncateItem("item_2", 0, 300)), (9.0, Undo(1)), until=10,
    )  # fmt: skip
    assert {type(event) for event, *_ in found} >= {ItemDone, ItemTruncated, ItemDeleted, ResponseDone}
    for event, items, other, talk in found:
        if not items:
            continue
        again = {item.id: item for item in other.talks.open(resume=talk).items}
        for item_id, item in items.items():
            assert item_text(again[item_id]) == item_text(item), event


def test_an_undo_is_whole_after_a_kill_at_any_change_or_was_not_begun(tmp_path):
    folder = tmp_path / "talks"
    world = World(counting, folder=folder)
    typed_turns = ((0.0, typed("one", "a")), (0.1, CreateResponse()), (6.0, typed("two", "b")), (6.1, CreateResponse()))
    session = world.play(*typed_turns, (16.0, Undo(1)), until=18)
    path = folder / f"{session.talk}.journal"
    payloads, lengths = read_entries(path).payloads, set()
    assert len(session.items) == 2
    for count in range(1, len(payloads) + 1):
        data = HEAD
        for payload in payloads[:count]:
            data += entry_bytes(len(data), payload)
        path.write_bytes(data)
        lengths.add((count, len(World(folder=folder).talks.open(resume=session.talk).items)))
    counts = [length for _, length in sorted(lengths)]
    assert counts[-1] == 2 and max(counts) == 4
    assert 3 not in counts[counts.index(4) :]


def test_a_reply_that_is_killed_keeps_the_words_that_were_heard(tmp_path):
    world = World(counting, folder=tmp_path / "talks", speed=1.1)
    heard = [(at, ReportHeard("item_1", (at - 1.0) * 1000)) for at in (1.5, 2.0, 2.5)]
    steps = ((0.0, typed("count", "a")), (0.1, CreateResponse()), *heard)
    again = killed_at(world, tmp_path / "talks", 2.6, *steps)
    [_, reply] = again.items
    said = item_text(world.talks.open(resume=again.talk).items[1])
    assert reply.status == "incomplete" and said.startswith(item_text(reply)) and item_text(reply)


def test_an_end_that_is_not_whole_is_told_to_the_front(tmp_path):
    world = World(folder=tmp_path)
    session = world.play((0.0, typed("a")), until=1)
    with (tmp_path / f"{session.talk}.journal").open("ab") as file:
        file.write(bytes(20))
    later = World(folder=tmp_path)
    again = run(later.talk(until=1, resume=session.talk))
    [told] = later.of(Error)
    assert told.code == "talk_cut_short" and "20 bytes" in told.message and again.items == session.items


def test_a_timer_that_is_done_while_a_reply_is_made_is_told_behind_it():
    def answers(prompt):
        last = prompt.lines[-1]
        return [("set_timer", {"duration": "3 seconds"})] if last.text == "timer" else [COUNT]

    begin = wall_clock()
    home = HomeRows(now=lambda: begin + dt.timedelta(seconds=asyncio.get_running_loop().time()))
    app = BuiltinTools(Kept(home), home.now, {}, lambda: "ada")
    world = World(answers, tools=lambda: builtin_tools(app))
    world.tts.speed = 2.0
    session = world.play((0.0, typed("timer", "a")), (0.1, CreateResponse()), (2.9, typed("count", "b")),
                         (3.0, CreateResponse()), until=12)  # fmt: skip
    assert item_text(session.items[-1]) == "Your timer is done."
    made = [event.response.id for event in world.of(ResponseDone) if event.response.status == "completed"]
    assert len(made) == 3 and world.when(ResponseCreated)[-1] >= world.when(ResponseDone)[-2]


@pytest.mark.parametrize(
    ("detection", "steps", "told"),
    [
        (ServerVad(), (), True), (None, (), False), (ServerVad(create_response=False), (), False),
        (None, ((0.0, typed("hello")), (0.1, CreateResponse())), True),
    ],
    ids=["voice", "nothing said", "writes down", "typed"],
)  # fmt: skip
def test_a_talk_that_answers_is_told_what_rings_and_one_that_only_writes_down_is_not(detection, steps, told):
    begin = wall_clock()
    home = HomeRows(now=lambda: begin + dt.timedelta(seconds=asyncio.get_running_loop().time()))
    world = World(settings=Settings(persona="ada", turn_detection=detection),
                  tools=lambda: builtin_tools(BuiltinTools(Kept(home), home.now, {}, lambda: "ada")))  # fmt: skip

    async def play():
        Kept(home).promise("timer", "5 seconds", Moment(begin + dt.timedelta(seconds=5)))
        return await world.talk(*steps, until=9)

    session = run(play())
    assert ("Your timer is done." in [item_text(item) for item in session.items]) == told
    assert bool(home.rows("timer")) != told, "it waits for somebody who can be told"


@pytest.mark.parametrize("sure", [True, False])
def test_start_over_forgets_the_talk_once_the_person_is_sure(sure):
    """Nothing brings a talk back, and a model may take one word, such as "start", for this wish."""

    def answers(prompt):
        last = prompt.lines[-1]
        if last.role == "tool" or "_" not in last.text:
            return ["Well."]
        return [(last.text, {"items": "milk"} if "list" in last.text else {})]

    app = BuiltinTools(Kept(), wall_clock, {}, lambda: "ada")
    world = World(answers, tools=lambda: builtin_tools(app))
    session = world.play(
        (0.0, typed("list_add", "a")), (0.1, CreateResponse()),
        (4.0, typed("start_over", "b")), (4.1, CreateResponse()),
        (7.0, typed("Yes, please." if sure else "What time is it?", "c")), (7.1, CreateResponse()), until=11,
    )  # fmt: skip
    said = [item_text(done.item) for done in world.of(ItemDone) if done.item.role == "assistant"]
    assert said == ["Well.", "Shall I forget this whole talk?", "Well."]
    assert bool(session.items) != sure and [row.text for row in app.kept.things("list shopping")] == ["milk"]


def test_the_next_turn_is_prepared_when_one_is_over_and_after_an_edit():
    world = World()
    session = world.play(
        (0.0, typed("hello")), (0.1, CreateResponse()), (2.0, Undo(1)),
        (3.0, CreateResponse(ResponseParams(conversation="none"))), until=6,
    )  # fmt: skip
    assert world.llm.prepared == [(session.talk, 2), (session.talk, 0)]


def test_a_resumed_talk_is_prepared_before_its_first_turn():
    world = World()
    session = world.play((0.0, typed("hello")), until=1)
    assert world.llm.prepared == []
    run(world.talk(until=1, resume=session.talk))
    assert world.llm.prepared == [(session.talk, 1)]


def test_sound_that_comes_in_the_moment_of_the_end_is_not_sent_after_it():
    """The next piece of sound has arrived, and its task is about to go on, when the reply is stopped."""

    class Held(FakeTTS):
        async def speak(self, talk, voice, piece_id, text, *, speed=1.0, language=None):
            yield SpeechChunk(np.full(2400, 0.1, np.float32))
            self.more = asyncio.get_running_loop().create_future()
            await self.more
            yield SpeechChunk(np.full(2400, 0.1, np.float32))

    tts = Held()
    world = World(tts=tts)

    def stop(session, event):
        async def at_once():
            await asyncio.sleep(1)
            tts.more.set_result(None)
            await session._replies.stop(session._replies.active, "turn_detected")

        if isinstance(event, AudioDelta):
            world.stopping = asyncio.ensure_future(at_once())
        return ()

    world.on_event = stop
    session = world.play((0.0, typed("hello")), (0.1, CreateResponse()), until=4)
    assert world.names()[-1] == "ResponseDone" and len(world.of(AudioDelta)) == 1
    assert session.items[-1].status == "incomplete"


def test_a_turn_that_waits_behind_a_cancelled_reply_is_answered_once():
    listens = Settings(persona="ada", turn_detection=ServerVad(interrupt_response=False))
    world = World(counting, listens, speed=1)
    world.play(
        (0.0, typed("count")), (0.1, CreateResponse()), (0.8, ("hello", 0.5)), (3.0, CancelResponse()),
        (8.0, typed("and you")), (8.1, CreateResponse()), until=12,
    )  # fmt: skip
    statuses = [done.response.status for done in world.of(ResponseDone)]
    assert statuses == ["cancelled", "completed", "completed"]


def test_a_front_that_leaves_in_mid_reply_leaves_nothing_open():
    world = World(counting, speed=1)
    given = (Message("x", "user", (TextPart("count"),)),)
    aside = CreateResponse(ResponseParams(conversation="none", modality="text", input=given))
    session = world.play((0.0, typed("count")), (0.1, CreateResponse()), (0.99, aside), until=1.0)
    assert world.of(ResponseDone) == [] and len(world.of(ResponseCreated)) == 2
    assert session.items[-1].status == "incomplete"
    assert set(world.llm.folded) == set(world.tts.said) == {session.talk}


def test_undo_and_rewind_from_the_front():
    world = World(counting)
    session = world.play(
        (0.0, typed("count", "a")), (0.1, CreateResponse()), (6.0, typed("ok", "b")), (6.1, CreateResponse()),
        (8.0, Undo(1)), (8.1, Rewind("item_1", words=4)), until=9,
    )  # fmt: skip
    assert [event.item_id for event in world.of(ItemDeleted)] == ["item_2", "b"]
    assert session.items[-1].content[0].transcript == "one two three four"
    assert world.tts.said[session.talk] == [("item_1.0", 4 * 7200)]
    state = world.llm.folded[session.talk]
    assert state[-5:] == ["<assistant>", "one", "two", "three", "four"]


def test_deleting_an_item_twice_is_an_error_and_late_reports_on_it_are_not():
    world = World(counting)
    world.play(
        (0.0, typed("count", "a")), (0.1, CreateResponse()), (6.0, Undo(1)), (6.1, TruncateItem("item_1", 0, 500)),
        (6.2, ReportHeard("item_1", 400)), (6.3, DeleteItem("a", cause="d")), until=8,
    )  # fmt: skip
    assert [(error.code, error.cause) for error in world.of(Error)] == [("item_not_found", "d")]
    assert world.of(ItemTruncated)[0].audio_end_ms == 0


DUCKING = Settings(persona="ada", duck=True)


def test_a_nod_ducks_and_resumes():
    world = World(counting, DUCKING)
    world.play((0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("mhm", 0.25)), until=8)
    assert len(world.of(Duck)) == len(world.of(Resume)) == 1
    assert not world.of(SpeechStarted) and not world.of(StopPlayback)
    assert [event.response.status for event in world.of(ResponseDone)] == ["completed"]


@pytest.mark.parametrize("paced", [True, False])
def test_who_takes_a_reply_faster_than_it_sounds_talks_over_nothing(paced):
    world = World(counting, Settings(persona="ada", turn_detection=SemanticVad(), paced=paced))
    world.play((0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("mhm", 0.25)), until=8)
    assert len(world.of(SpeechStarted)) == len(world.of(ResponseDone)) - 1 == (0 if paced else 1)


class Shouting(FakeEars):
    """Only who raises the voice is heard, where that is listened for."""

    def detector(self):
        return ForShouts()


class ForShouts(FakeDetector):
    def push(self, pcm, played=None, raised=False):
        return [block if raised else replace(block, probability=0.0) for block in super().push(pcm)]


def test_shouts_are_listened_for_over_a_reply_and_until_they_are_over():
    ears = Shouting()
    world = World(counting, DUCKING, asr=ears)
    world.asr = ears
    shout, later = (1.5, ("wait a minute please", 1.2)), (20.0, ("and now", 0.5))
    world.play((0.0, typed("count")), (0.1, CreateResponse()), shout, later, until=25)
    assert world.of(StopPlayback)
    assert [event.transcript for event in world.of(TranscriptCompleted)] == ["wait a minute please"]


def test_real_words_over_the_reply_stop_it_within_half_a_second():
    world = World(counting, DUCKING)
    world.play((0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("wait a minute please", 1.2)), until=8)
    [ducked], [stopped] = world.when(Duck), world.when(StopPlayback)
    assert ducked - 1.5 < 0.12 and stopped - 1.5 <= 0.55
    assert world.of(ResponseDone)[-1].response.status == "completed"
    assert world.of(SpeechStarted)


def test_interruption_switched_off_queues_the_answer():
    world = World(counting, Settings(persona="ada", turn_detection=ServerVad(interrupt_response=False), paced=True))
    world.play((0.2, ("count", 0.4)), (1.6, ("and then", 0.5)), until=12)
    assert [event.response.status for event in world.of(ResponseDone)] == ["completed", "completed"]


def test_no_reply_when_the_front_wants_none():
    world = World(settings=Settings(persona="ada", turn_detection=ServerVad(create_response=False)))
    world.play((0.2, ("hello", 0.5)), until=4)
    assert world.of(TranscriptCompleted) and not world.of(ResponseCreated)


@pytest.mark.parametrize(("complete", "wait_ms"), [(1.0, 150), (0.1225, 690), (0.0, 1200), (None, 600)])
def test_semantic_detection_waits_by_completeness(complete, wait_ms):
    world = World(settings=Settings(persona="ada", turn_detection=SemanticVad()))
    world.llm.complete = complete
    world.play((0.2, ("turn on the light", 1.5)), until=6)
    waited = (world.when(SpeechStopped)[0] - 1.7) * 1000
    pace = 2.6 / (4 / 1.504)
    assert wait_ms * min(1.0, pace) <= waited <= wait_ms * max(1.0, pace) + 100


def test_idle_timeout_speaks_up():
    world = World(settings=Settings(persona="ada", turn_detection=ServerVad(idle_timeout_ms=2000)))
    world.llm.answers = lambda prompt: ["Still there?"]
    world.play((0.2, ("hello", 0.5)), until=9)
    done = world.when(ResponseDone)
    [first, *_] = world.when(IdleTimeout)
    assert done[0] < first and len(done) >= 2
    assert first == pytest.approx(world.when(TimelineReady)[0] + 0.6 + 2.0, abs=0.01)  # two words, then the wait


def test_a_nod_does_not_end_the_wait_for_the_user():
    world = World(counting, replace(DUCKING, turn_detection=ServerVad(idle_timeout_ms=2000)))
    world.play((0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("mhm", 0.25)), until=7)
    assert len(world.of(Resume)) == 1
    assert world.when(IdleTimeout)[0] == pytest.approx(world.when(TimelineReady)[0] + 12 * 0.3 + 2.0, abs=0.01)


def test_failing_model_fails_its_reply_and_the_talk_goes_on():
    world = World()
    world.llm.fail_after = 1

    def front(session, event):
        if isinstance(event, ResponseDone) and event.response.status == "failed":
            world.llm.fail_after = None
        return []

    world.on_event = front
    world.play((0.0, typed("a", "a")), (0.1, CreateResponse()), (2.0, CreateResponse()), until=4)
    failed, fine = world.of(ResponseDone)
    assert failed.response.error_code == "server_error" and "fell over" in failed.response.error_message
    assert fine.response.status == "completed"
    assert world.llm.running == world.tts.running == 0


def test_failing_voice_closes_what_was_open():
    world = World(lambda prompt: ["Good morning to you. This breaks."])
    world.tts.fail_on = "breaks"
    session = world.play((0.0, typed("a", "a")), (0.1, CreateResponse()), until=4)
    assert world.of(ResponseDone)[0].response.status == "failed"
    assert session.items[-1].status == "incomplete"
    assert session.items[-1].content[0].transcript == "Good morning to you. "


def test_failing_ears_are_told_and_survived():
    world = World()
    world.asr.broken = True
    world.play((0.2, ("hello", 0.5)), until=4)
    assert world.of(TranscriptFailed)[0].message == "the fake ears are broken"
    assert world.of(ResponseDone)[0].response.status == "completed"


def test_lead_is_bounded_for_a_front_that_plays_in_real_time():
    long = " ".join(["word"] * 60) + "."
    world = World(lambda prompt: [long])
    world.play((0.0, typed("a")), (0.1, CreateResponse()), until=30)
    first = world.when(AudioDelta)[0]
    for got in world.log:
        if isinstance(got.event, AudioDelta):
            lead = got.event.start_sample / 24_000 - (got.at - first)
            assert lead <= 6.0 + 1e-6
    assert world.when(ResponseDone)[0] == pytest.approx(first + 60 * 0.3 - 6.0, abs=0.11)


def test_settings_are_answered_and_unknown_personas_refused():
    world = World()
    good = Settings(persona="ben", instructions="Be brief.")
    world.play((0.1, UpdateSettings(good)), (0.2, UpdateSettings(Settings(persona="eve"), cause="s")), until=1)
    assert [event.settings for event in world.of(SettingsUpdated)] == [good]
    [error] = world.of(Error)
    assert (error.code, error.param, error.cause) == ("invalid_value", "session.persona", "s")


def test_persona_switch_changes_voice_and_instructions():
    world = World()
    session = world.play((0.0, typed("hi")), (0.1, SwitchPersona("ben")), (0.5, CreateResponse()), until=3)
    assert world.of(PersonaSwitched)[0].voice == "ben"
    assert world.llm.folded[session.talk][0] == "system:You are Ben."
    assert world.of(ResponseDone)[0].response.voice == "ben"


def test_a_switch_takes_until_both_engines_could_go_on(monkeypatch):
    world = World()
    prepare, warm = world.llm.prepare, world.tts.warm

    async def folded(talk, prompt):
        await asyncio.sleep(0.2)
        await prepare(talk, prompt)

    async def opened(voice):
        await asyncio.sleep(0.3)
        return await warm(voice)

    monkeypatch.setattr(world.llm, "prepare", folded)
    monkeypatch.setattr(world.tts, "warm", opened)
    world.play((0.0, typed("hi")), (0.1, SwitchPersona("ben")), until=3)
    [told] = world.of(PersonaSwitched)
    assert told.ms == pytest.approx(500) and world.when(PersonaSwitched) == [pytest.approx(0.6)]


@pytest.mark.parametrize("keeps", [(), ("llm",), ("tts",), ("llm", "tts")], ids=lambda names: "+".join(names) or "none")
def test_an_undo_reaches_the_engines_that_keep_state_and_the_talk_goes_on(keeps):
    world = World(counting)
    for name in {"llm", "tts"} - set(keeps):
        getattr(world, name).state = None
    world.play(
        (0.0, typed("count")), (0.1, CreateResponse()), (8.0, Undo(1)), (9.0, typed("again")), (9.1, CreateResponse()),
        until=18,
    )  # fmt: skip
    assert [(event.engine, event.what) for event in world.of(StateChanged)] == [(name, "rollback") for name in keeps]
    assert len(world.of(ResponseDone)) == 2 and not world.of(Error)
    assert bool(world.llm.prepared) == ("llm" in keeps)


def test_retrieve_gives_the_heard_words_or_the_known_error():
    world = World(counting)
    world.play(
        (0.0, typed("count")), (0.1, CreateResponse()), (9.0, TruncateItem("item_1", 0, 700)),
        (9.1, RetrieveItem("item_1")), (9.2, RetrieveItem("nobody", cause="r")), until=10,
    )  # fmt: skip
    assert world.of(ItemRetrieved)[0].item.content[0].transcript == "one two"
    assert [(e.code, e.cause) for e in world.of(Error)] == [("item_retrieve_invalid_item_id", "r")]


def test_player_reports_extend_the_timeline():
    world = World(counting)

    def front(session, event):
        if isinstance(event, AudioDelta) and event.start_sample == 4800:
            return [ReportHeard(event.item_id, 5.0)]
        return []

    world.on_event = front
    world.play((0.0, typed("count")), (0.1, CreateResponse()), until=9)
    timeline = world.of(ResponseDone)[0].timeline
    assert [part.name for part in timeline.parts][-1] == "player"
    assert timeline.figures["player_ms"] == pytest.approx(timeline.parts[-1].ms)


def test_talks_are_limited_resumed_and_taken_over(tmp_path):
    world = World(counting, folder=tmp_path, limit=1)
    session = world.play((0.0, typed("count")), (0.1, CreateResponse()), until=8)
    items = session.items

    async def reopen(talks):
        again = talks.open(resume=session.talk)
        assert again.items == items
        with pytest.raises(TalksFull, match="all 1 places"):
            talks.open()
        taken = talks.open(resume=session.talk)
        assert taken.items == items
        with pytest.raises(UnknownTalk):
            talks.open(resume="conv_77")
        with pytest.raises(UnknownTalk):
            talks.open(resume="../../etc/passwd")
        for one in (again, taken):
            one.close()
            await one.run()
        assert talks.active == 0

    run(reopen(world.talks))
    run(reopen(World(counting, folder=tmp_path, limit=1).talks))  # another process, the same folder
    (tmp_path / f"{session.talk}.journal").write_text("[{]")
    with pytest.raises(UnknownTalk, match="not kept completely"):
        World(folder=tmp_path).talks.open(resume=session.talk)


def test_a_front_that_vanishes_frees_everything():
    world = World(counting)

    async def vanish():
        session = world.talks.open()
        running = asyncio.ensure_future(session.run())
        await session.send(typed("count"))
        await session.send(CreateResponse())
        await asyncio.sleep(0.4)
        assert world.llm.running + world.tts.running > 0
        session.close()
        await running
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left and world.llm.running == world.tts.running == world.talks.active == 0

    run(vanish())


def test_a_slow_front_slows_its_own_reply_only():
    world = World(lambda prompt: [" ".join(["word"] * 200)], Settings(persona="ada", paced=False))

    async def slow_front():
        session = world.talks.open()
        running = asyncio.ensure_future(session.run())
        await session.send(typed("x"))
        await session.send(CreateResponse())
        await asyncio.sleep(60)
        assert len(session.events) == 256  # nobody reads: the reply waits, memory is bounded
        other = world.talks.open()
        beside = asyncio.ensure_future(other.run())
        await other.send(typed("y", "y"))
        await other.send(CreateResponse())
        kinds = []
        async for event in other.events:
            kinds.append(type(event).__name__)
            if isinstance(event, ResponseDone):
                break
        session.close()
        other.close()
        await asyncio.gather(running, beside)
        assert kinds[-1] == "ResponseDone"

    run(slow_front())


def test_sound_at_other_rates_is_heard():
    world = World(settings=Settings(persona="ada", turn_detection=None))

    async def talk():
        session = world.talks.open()
        async with asyncio.TaskGroup() as group:
            group.create_task(session.run())
            reading = group.create_task(world._read(session))
            for rate in (8_000, 24_000, 48_000):
                await session.send(AppendAudio(np.full(rate, 0.201, np.float32), rate))
            await session.send(CommitAudio())
            await asyncio.sleep(1)
            session.close()
            await reading

    world.asr.spoken("tone", 3.0)
    run(talk())
    assert world.of(TranscriptCompleted)[0].audio_seconds == pytest.approx(3.0, abs=0.05)


def test_a_tool_choice_that_a_persona_cannot_meet_is_refused_and_ends_nothing(monkeypatch):
    """Asking for it, and becoming a persona that lacks the tool while it is asked for."""
    monkeypatch.setitem(PERSONAS, "mute", replace(PERSONAS["ada"], name="mute", tools=()))
    look = Tool(ToolSpec("look"), lambda: "nothing to see")
    world = World(settings=Settings(persona="ada"), tools=lambda: ToolRegistry([look]))
    asks = Settings(persona="ada", tool_choice="look")
    world.play(
        (0.1, UpdateSettings(replace(asks, persona="mute"), "one")), (0.2, UpdateSettings(asks)),
        (0.3, SwitchPersona("mute", "two")), (0.4, typed("hello")), (0.5, CreateResponse()), until=4,
    )  # fmt: skip
    assert [error.cause for error in world.of(Error)] == ["one", "two"]
    [done] = world.of(ResponseDone)
    assert done.response.status == "completed"


def test_an_item_that_a_reply_was_to_read_is_deleted_before_it_could():
    """Both commands are there at once, so the deletion is done before the reply's task has begun."""
    world = World()
    session = world.play(
        (0.1, typed("hello", "old")), (0.3, CreateResponse(ResponseParams(input=("old",), modality="text"))),
        (0.3, DeleteItem("old")), (1.0, typed("hello")), (1.1, CreateResponse()), until=4,
    )  # fmt: skip
    failed, completed = world.of(ResponseDone)
    assert (failed.response.status, failed.response.error_code) == ("failed", "item_not_found")
    assert completed.response.status == "completed" and len(session.items) == 2
