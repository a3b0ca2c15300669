"""One voice at a time, and nothing that is refused touches a running reply."""

from dataclasses import replace

import pytest

from assistant.events import (
    AudioDelta,
    CancelResponse,
    CreateItem,
    CreateResponse,
    Error,
    FunctionCall,
    FunctionOutput,
    ItemAdded,
    ItemDeleted,
    ItemTruncated,
    Message,
    ReportHeard,
    ResponseCreated,
    ResponseDone,
    ResponseParams,
    ServerVad,
    Settings,
    SpokenText,
    TextPart,
    TruncateItem,
)
from assistant.talk.conversation import item_text
from tests.fakes.loop import run
from tests.fakes.talk import World

COUNT = "one two three four five six seven eight nine ten."
ASIDE = ResponseParams(conversation="none", instructions="say hello", input=())
GO = CreateResponse()


def counting(prompt):
    return [COUNT if prompt.lines else "hello there."]


def typed(text: str, item_id: str | None = None) -> CreateItem:
    return CreateItem(Message(item_id or f"m{text[:4]}", "user", (TextPart(text),)))


def statuses(world: World) -> list[str]:
    return [done.response.status for done in world.of(ResponseDone)]


def errors(world: World) -> list[tuple[str, str | None]]:
    return [(error.code, error.cause) for error in world.of(Error)]


def test_a_truncate_at_zero_before_the_first_sound_is_acknowledged():
    world = World(counting, speed=1)
    world.on_event = lambda session, event: (
        [TruncateItem(event.item.id, 0, 0, "t")]
        if isinstance(event, ItemAdded) and event.item.role == "assistant" else []
    )  # fmt: skip
    session = world.play((0.0, typed("count")), (0.1, GO), until=3)
    (cut,) = world.of(ItemTruncated)
    assert (cut.audio_end_ms, cut.transcript, errors(world), statuses(world)) == (0, "", [], ["cancelled"])
    assert [item_text(item) for item in session.items] == ["count", ""]
    assert not world.of(AudioDelta)


REFUSED = [
    (lambda running: TruncateItem(running, 1, 300, "t"), "invalid_value"),
    (lambda running: TruncateItem(running, 7, 0, "t"), "invalid_value"),
    (lambda running: TruncateItem("nobody", 0, 300, "t"), "item_not_found"),
    (lambda running: TruncateItem("u", 0, 300, "t"), "invalid_value"),
    (lambda running: TruncateItem("call", 0, 300, "t"), "invalid_value"),
    (lambda running: replace(GO, cause="t"), "conversation_already_has_active_response"),
    (lambda running: CancelResponse("resp_9", "t"), "response_cancel_not_active"),
    (lambda running: CreateItem(FunctionOutput("o", "nope", "x"), cause="t"), "invalid_value"),
    (lambda running: CreateResponse(ASIDE, "t"), "conversation_already_has_active_response"),
]


@pytest.mark.parametrize(("command", "code"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_is_one_error_and_the_running_reply_goes_on(command, code):
    world = World(counting, speed=1)
    sent: list[str] = []

    def front(session, event):
        if isinstance(event, AudioDelta) and not sent:
            sent.append(event.item_id)
            return [command(event.item_id)]
        return []

    world.on_event = front
    call = CreateItem(FunctionCall("call", "c1", "look", "{}"))
    session = world.play((0.0, call), (0.0, typed("count", "u")), (0.1, GO), until=8)
    assert errors(world) == [(code, "t")] and statuses(world) == ["completed"]
    assert item_text(session.items[-1]) == COUNT and not world.of(ItemTruncated)


@pytest.mark.parametrize("ms", [(999_999,), (10,), (10, 500), (500, 10), (0,), (-5,)])
def test_a_truncate_of_an_older_item_leaves_the_running_reply_alone(ms):
    world = World(counting, speed=1)
    first: list[str] = []
    cut: list[str] = []

    def front(session, event):
        if isinstance(event, AudioDelta):
            first.append(event.item_id)
            if event.item_id != first[0] and not cut:
                cut.append(event.item_id)
                return [TruncateItem(first[0], 0, one, "t") for one in ms]
        return []

    world.on_event = front
    session = world.play((0.0, typed("count")), (0.1, GO), (6.0, typed("more")), (6.1, GO), until=14)
    assert errors(world) == [] and statuses(world) == ["completed"] * 2
    assert item_text(session.items[-1]) == COUNT
    heard = [one.audio_end_ms for one in world.of(ItemTruncated)]
    assert heard == sorted(heard, reverse=True) and len(heard) == len(ms)  # never longer than before
    assert COUNT.startswith(item_text(session.items[1]))


def test_an_output_is_taken_where_the_call_is_known():
    world = World(counting)
    call, output = FunctionCall("a", "c1", "look", "{}"), FunctionOutput("b", "c1", "sunny")
    session = world.play((0.0, CreateItem(call)), (0.1, CreateItem(output)), until=1)
    assert errors(world) == [] and [item.id for item in session.items] == ["a", "b"]


# ------------------------------------------------------------------------------------- beside the conversation


def test_sound_beside_the_conversation_comes_alone_and_leaves_no_trace():
    world = World(counting, speed=1)
    session = world.play((0.0, CreateResponse(ASIDE)), (3.0, typed("count")), (3.1, GO), until=9)
    said = [event.delta for event in world.of(SpokenText)]
    assert "".join(said[:2]) == "hello there." and statuses(world) == ["completed"] * 2
    assert [item_text(item) for item in session.items] == ["count", COUNT]
    assert set(world.llm.folded) == {session.talk}


def test_text_beside_a_running_reply_is_made_at_once():
    world = World(counting, speed=1)
    aside = CreateResponse(replace(ASIDE, modality="text"))
    world.play((0.0, typed("count")), (0.1, GO), (1.0, aside), until=8)
    assert errors(world) == [] and statuses(world) == ["completed"] * 2
    assert world.of(ResponseDone)[0].response.in_conversation is False


@pytest.mark.parametrize("command", [replace(GO, cause="t"), CreateResponse(ASIDE, "t")])
def test_nothing_else_speaks_while_sound_beside_the_conversation_does(command):
    world = World(lambda prompt: [COUNT], speed=1)
    world.play((0.0, CreateResponse(ASIDE)), (0.5, command), until=6)
    assert errors(world) == [("conversation_already_has_active_response", "t")] and statuses(world) == ["completed"]


def test_speech_stops_sound_beside_the_conversation_and_is_answered():
    world = World(lambda prompt: [COUNT], speed=1)
    world.play((0.0, CreateResponse(ASIDE)), (1.0, ("hello", 0.6)), until=9)
    assert statuses(world) == ["cancelled", "completed"] and errors(world) == []
    aside, main = (created.response for created in world.of(ResponseCreated))
    assert not aside.in_conversation and main.in_conversation
    order = [(got.event.response_id if isinstance(got.event, AudioDelta) else type(got.event).__name__)
             for got in world.log if isinstance(got.event, AudioDelta | ResponseDone)]  # fmt: skip
    assert aside.id not in order[order.index("ResponseDone") :]


def test_speech_that_may_not_interrupt_leaves_it_until_the_reply_is_due():
    settings = Settings(persona="ada", turn_detection=ServerVad(interrupt_response=False))
    world = World(lambda prompt: [COUNT], settings=settings, speed=1)
    world.play((0.0, CreateResponse(ASIDE)), (0.3, ("hello", 0.5)), until=9)
    assert statuses(world) == ["cancelled", "completed"]  # two voices at once are understood by nobody


# ---------------------------------------------------------------------------------------------- who leaves


def hearing_front(*reports: float):
    """A front that reports once per so many milliseconds that it got."""
    left = list(reports)

    def front(session, event):
        if isinstance(event, AudioDelta) and left:
            return [ReportHeard(event.item_id, left.pop(0))]
        return []

    return front


@pytest.mark.parametrize("until", [1.3, 2.5])  # while it is made; and made already, but still to be played
def test_a_front_that_leaves_in_mid_reply_keeps_what_it_last_reported(until):
    world = World(counting, speed=1 if until < 2 else 10)
    world.on_event = hearing_front(100, 400, 700)
    session = world.play((0.0, typed("count")), (0.1, GO), until=until)
    assert item_text(session.items[-1]) == "one two" and session.items[-1].status == "incomplete"
    again = world.talks.open(resume=session.talk)
    assert item_text(again.items[-1]) == "one two"


def test_a_front_that_had_heard_all_leaves_it_whole_and_so_does_one_that_reports_nothing():
    world = World(counting, speed=10)
    world.on_event = hearing_front(100, 2950)
    session = world.play((0.0, typed("count")), (0.1, GO), until=9)
    assert item_text(session.items[-1]) == COUNT
    world = World(counting, speed=10)
    assert item_text(world.play((0.0, typed("count")), (0.1, GO), until=2).items[-1]) == COUNT


def test_a_reply_of_which_nothing_was_reported_yet_was_not_heard():
    world = World(counting, speed=10)
    world.on_event = hearing_front(3000)
    session = world.play((0.0, typed("count")), (0.1, GO), (5.0, typed("more")), (5.1, GO), until=5.4)
    assert [item_text(item) for item in session.items] == ["count", COUNT, "more", ""]


def test_the_talk_that_is_taken_over_is_cut_before_the_other_front_sees_it():
    world = World(counting, speed=10)
    seen: list[str] = []

    def front(session, event):
        if isinstance(event, ResponseDone):
            other = world.talks.open(resume=session.talk)
            seen.extend(item_text(item) for item in other.items)
            assert session.moved and not other.moved
            other.close()
        return [] if session.moved else hearing(session, event)

    hearing = hearing_front(700)
    world.on_event = front
    run(world.talk((0.0, typed("count")), (0.1, GO), until=3, microphone=False))
    assert seen == ["count", "one two"]
    assert not world.of(ItemDeleted)


@pytest.mark.parametrize("late", [0.1, 0.15, 1.5], ids=["behind it", "before its first sound", "while it sounds"])
def test_a_reply_answers_what_was_there_when_it_was_ordered(late):
    prompts: list[list[tuple[str, str]]] = []

    def script(prompt):
        prompts.append([(line.role, line.text) for line in prompt.lines])
        return [COUNT if len(prompts) == 1 else "yes."]

    world = World(script, speed=1)
    session = world.play(
        (0.0, typed("count", "u")), (0.1, GO), (late, typed("say yes", "v")), (late, typed("loudly", "w")),
        (6.0, GO), until=9,
    )  # fmt: skip
    assert prompts[0] == [("user", "count")] and statuses(world) == ["completed"] * 2
    assert [role for role, _ in prompts[1]] == ["user", "assistant", "user", "user"]
    assert [item_text(item) for item in session.items] == ["count", COUNT, "say yes", "loudly", "yes."]
    added = {event.item.id: event.previous_item_id for event in world.of(ItemAdded)}
    assert added[session.items[1].id] == "u"  # a front that goes by this has the same order


def test_a_reply_stands_behind_what_it_answers_wherever_a_later_item_goes():
    world = World(lambda prompt: [COUNT if len(prompt.lines) == 1 else "yes."], speed=1)
    first = CreateItem(Message("r", "user", (TextPart("be quick"),)), after="root")
    session = world.play((0.0, typed("count", "u")), (0.1, GO), (0.12, first), until=6)
    assert [item_text(item) for item in session.items] == ["be quick", "count", COUNT]
    added = {event.item.id: event.previous_item_id for event in world.of(ItemAdded)}
    assert added[session.items[2].id] == "u"
