"""Nods and turns taken too early: what later speech shows about earlier, in the talk and in the models' state."""

from assistant.events import (
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
    TranscriptCompleted,
    TruncateItem,
    Undo,
)
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
