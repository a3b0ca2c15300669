"""Nods and turns taken too early: what later speech shows about earlier, in the talk and in the models' state."""

import datetime as dt

import pytest

from assistant.events import (
    AudioDelta,
    CreateItem,
    CreateResponse,
    Duck,
    ItemAdded,
    ItemDeleted,
    Message,
    Nod,
    ResponseDone,
    Resume,
    SemanticVad,
    Settings,
    SpeechStarted,
    StopPlayback,
    TextPart,
    ToolUsed,
    TranscriptCompleted,
    TruncateItem,
    Undo,
)
from assistant.talk.turn_end import LONGEST_END_MS
from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.kept import Kept
from assistant.tools.rows import TIMERS
from tests.fakes.talk import World

STOCK = Settings(persona="ada")
PAGE = Settings(persona="ada", duck=True)
COUNT = "one two three four five six seven eight nine ten eleven twelve"


def typed(text, item_id="u"):
    return CreateItem(Message(item_id, "user", (TextPart(text),)))


def counting(prompt):
    return [COUNT] if prompt.lines[-1].text == "count" else [f"You said {prompt.lines[-1].text}."]


def told(world):
    return [(item.role, (item.content[0].transcript or "") if hasattr(item.content[0], "transcript")
             else item.content[0].text) for item in world]  # fmt: skip


def test_a_nod_stands_in_the_transcript_is_no_turn_and_no_model_reads_it():
    for settings in (STOCK, PAGE):
        world = World(counting, settings)
        session = world.play((0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("mhm", 0.25)), until=8)
        assert [response.response.status for response in world.of(ResponseDone)] == ["completed"]
        assert not world.of(SpeechStarted) and not world.of(StopPlayback)
        assert len(world.of(Duck)) == len(world.of(Resume)) == settings.duck
        [nod] = world.of(Nod)
        assert nod.text == "mhm" and [item.item.id for item in world.of(ItemAdded)][-1] == nod.item_id
        assert told(session.items)[-1] == ("user", "mhm") and told(session.items)[1] == ("assistant", COUNT)
        assert "mhm" not in world.llm.folded[session.talk]


def test_an_undo_takes_the_nod_with_its_turn():
    world = World(counting, PAGE)
    steps = (0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("mhm", 0.25)), (7.0, Undo(1))
    assert world.play(*steps, until=8).items == ()


def test_a_stock_client_learns_of_an_interruption_with_the_verdict():
    world = World(counting, STOCK, speed=1.2)
    world.play((0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("stop that now please", 1.2)), until=8)
    [started] = world.when(SpeechStarted)
    assert 1.6 < started <= 1.85
    assert world.of(ResponseDone)[0].response.reason == "turn_detected"


def test_stop_as_the_only_word_stops_and_is_not_answered():
    for settings in (STOCK, PAGE):
        world = World(counting, settings, speed=1.2)
        world.play((0.0, typed("count")), (0.1, CreateResponse()), (1.5, ("stop", 0.4)), until=8)
        assert [done.response.status for done in world.of(ResponseDone)] == ["cancelled"]
        assert world.of(TranscriptCompleted)[0].transcript == "stop"


def cutting(session, event):
    """A front that stops its player when it is told to, 0.2 s into the reply."""
    if isinstance(event, StopPlayback):
        return [TruncateItem(event.item_id, 0, 200)]
    return []


def test_a_turn_taken_too_early_is_reopened_and_both_parts_are_one():
    """The words sound complete, so the turn ends in the pause; the user goes on, and the answer is to the whole."""
    for settings, pause in ((STOCK, 0.4), (STOCK, 0.6), (PAGE, 0.4), (PAGE, 0.6)):
        world = World(settings=settings, speed=1.2)
        world.on_event, world.llm.complete = cutting, 1.0
        session = world.play((0.2, ("set a timer", 1.0)), (1.2 + pause, ("for the tea", 1.0)), until=9)
        assert told(session.items) == [
            ("user", "set a timer for the tea"), ("assistant", "You said set a timer for the tea."),
        ]  # fmt: skip
        assert [done.response.status for done in world.of(ResponseDone)] == ["cancelled", "completed"]
        assert world.of(ItemDeleted)


def test_the_state_behind_a_reopened_turn_is_that_of_a_talk_that_never_took_it():
    def folded(*speech):
        world = World(settings=STOCK)
        world.llm.complete = 1.0
        session = world.play(*speech, until=9)
        return world.llm.folded[session.talk], [said[1] for said in world.tts.said[session.talk]]

    split = folded((0.2, ("set a timer", 1.0)), (1.6, ("for the tea", 1.0)))
    assert split == folded((0.2, ("set a timer for the tea", 2.0)))


def test_an_answer_that_is_over_already_is_taken_back_too():
    """It was short, and little enough to count as nothing: it does not stay in the talk beside the whole."""
    for settings in (STOCK, PAGE):
        world = World(lambda prompt: ["Ok."], settings, speed=1.2)
        world.llm.complete = 1.0
        session = world.play((0.2, ("set a timer", 1.0)), (2.1, ("for the tea", 1.0)), until=9)
        assert told(session.items) == [("user", "set a timer for the tea"), ("assistant", "Ok.")]
        assert [done.response.status for done in world.of(ResponseDone)] == ["completed", "completed"]
        assert len(world.of(ItemDeleted)) == 2


def test_a_cough_before_the_answer_costs_it_nothing_but_time():
    world = World(settings=STOCK)
    world.llm.complete = 1.0
    world.llm.prefill_s = 0.5
    session = world.play((0.2, ("what time is it", 1.0)), (1.6, ("", 0.2)), until=9)
    assert told(session.items) == [("user", "what time is it"), ("assistant", "You said what time is it.")]
    assert [done.response.status for done in world.of(ResponseDone)] == ["cancelled", "completed"]


def test_server_detection_reopens_nothing():
    world = World()
    session = world.play((0.2, ("set a timer", 1.0)), (1.9, ("for the tea", 1.0)), until=9)
    assert [text for role, text in told(session.items) if role == "user"] == ["set a timer", "for the tea"]
    assert SemanticVad() == STOCK.turn_detection


def timers():
    """Timers of a home of its own."""
    household = BuiltinTools(Kept(), lambda: dt.datetime(2026, 11, 20), {}, lambda: "ada")
    return builtin_tools(household, names=["set_timer"])


def asking(prompt):
    """Sets a timer, or asks for what is missing."""
    asked = [line.text for line in prompt.lines if line.role == "user"][-1]
    if prompt.lines[-1].role == "tool":
        return ["It is set."]
    lengths = [word for word in asked.split() if word.isdigit()]
    return [("set_timer", {"duration": f"{lengths[-1]} minutes"})] if lengths else ["For how long?"]


def test_a_reply_that_only_asks_back_waits_for_a_user_who_goes_on():
    for settings in (STOCK, PAGE):
        for pause in (0.3, 0.5, 0.7, 0.9):
            world = World(asking, settings, tools=timers)
            world.llm.complete = 0.7
            session = world.play((0.2, ("set a timer for", 1.0)), (1.2 + pause, ("10 minutes", 0.8)), until=9)
            assert min(world.when(AudioDelta)) > 1.2 + pause + 0.8
            assert told(session.items) == [("user", "set a timer for 10 minutes"), ("assistant", "It is set.")]
        world = World(asking, settings, tools=timers)
        world.llm.complete = 0.7
        world.play((0.2, ("set a timer for", 1.0)), until=9)
        assert 1.2 + 0.9 < min(world.when(AudioDelta)) < 1.2 + LONGEST_END_MS / 1000  # it is asked at last
        world = World(lambda _: ["Why did the bicycle fall over? It was two tired."], settings, tools=timers)
        world.llm.complete = 0.7
        world.play((0.2, ("tell me a joke", 1.0)), until=9)
        assert min(world.when(AudioDelta)) < 1.2 + 0.6  # more follows, so it is not asked what is missing


@pytest.mark.parametrize("candidates", [True, False])
@pytest.mark.parametrize("pause", [0.3, 0.5, 0.7])
def test_what_is_corrected_behind_a_pause_leaves_no_trace_in_the_home(pause, candidates):
    """The first half is a whole request, and its timer is set in the pause. Then it never was: not in the store of the
    home, not for another front, and not in the models' state."""

    def run(*speech):
        world = World(asking, STOCK, tools=timers, speed=1.2, candidates=candidates)
        world.llm.complete = 1.0
        session = world.play(*speech, until=9)
        rows = [(row.text, row.serial) for row in session._context.view.kept.promises(TIMERS)]
        return rows, told(session.items), world.llm.folded[session.talk], world

    rows, items, folded, world = run((0.2, ("set it for 10", 1.0)), (1.2 + pause, ("I mean 12", 1.0)))
    whole = run((0.2, ("set it for 10 I mean 12", 2.0)))
    assert [row[0] for row in rows] == ["12 minutes"] and items == whole[1] and folded == whole[2]
    assert [used.output for used in world.of(ToolUsed)] == ["10 minutes", "12 minutes"]
