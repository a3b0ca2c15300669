"""What the user shows: which picture counts, when it enters the talk, and that it leaves with the turn."""

import numpy as np
import pytest

from assistant.base.picture import Picture
from assistant.contracts import CANNOT_SEE, Prompt
from assistant.events import (
    AudioDelta,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Error,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    Message,
    PicturePart,
    ResponseDone,
    ResponseParams,
    SemanticVad,
    Settings,
    SightChanged,
    SpokenText,
    TextPart,
    Undo,
)
from assistant.talk.shown import MOST_FRAMES
from assistant.talk.view import EYES
from tests.fakes.talk import World

GREY = 100


def picture(grey=GREY, width=64, height=48) -> Picture:
    return Picture.of(np.full((height, width, 3), grey, np.uint8))


def shown(item_id: str, *pictures: Picture, text: str | None = None, frame: bool | None = None) -> CreateItem:
    parts = [PicturePart(one, frame) for one in pictures]
    words = [] if text is None else [TextPart(text)]
    return CreateItem(Message(item_id, "user", (*parts, *words)))


def typed(item_id: str, text: str) -> CreateItem:
    return CreateItem(Message(item_id, "user", (TextPart(text),)))


class Seen:
    """Answers anything, and keeps the prompts."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []

    def __call__(self, prompt: Prompt) -> list[str]:
        self.prompts.append(prompt)
        return ["I see."]

    @property
    def lines(self) -> list[tuple[str, tuple[tuple[int, str], ...]]]:
        """The user's lines of the last prompt: words, and what stands where."""
        return [
            (line.text, tuple((placed.at, placed.picture.digest) for placed in line.pictures))
            for line in self.prompts[-1].lines
            if line.role == "user"
        ]


def world(**given) -> tuple[World, Seen]:
    seen = Seen()
    return World(seen, sees=True, **given), seen


ONE, TWO, THREE = picture(10), picture(90), picture(200)


# ------------------------------------------------------------------------------------------------ meant


def test_a_picture_stands_where_it_was_sent():
    talk, seen = world()
    mixed = CreateItem(Message("a", "user", (
        TextPart("look at "), PicturePart(ONE), TextPart("and "), PicturePart(TWO), PicturePart(THREE),
        TextPart("this"),
    )))  # fmt: skip
    talk.play((0.5, mixed), (0.6, CreateResponse()), until=5)
    text = "look at and this"
    at = (8, ONE.digest), (12, TWO.digest), (12, THREE.digest)
    assert seen.lines == [(text, at)] and not talk.of(Error)


def test_a_picture_alone_joins_the_words_that_follow():
    talk, seen = world()
    session = talk.play((0.5, shown("p", ONE)), (1.0, ("what is this", 1.0)), until=5)
    assert seen.lines == [("what is this", ((0, ONE.digest),))]
    [done] = talk.of(ResponseDone)
    assert done.response.usage is not None and done.response.usage.input_image_tokens == 1
    assert [type(item).__name__ for item in session.items] == ["Message"] * 3


def test_a_turn_of_pictures_alone_is_answered():
    talk, seen = world()
    talk.play((0.5, shown("p", ONE, TWO)), (0.6, CreateResponse()), until=5)
    assert seen.lines == [("", ((0, ONE.digest), (0, TWO.digest)))]


def test_the_model_looks_before_a_word_is_said():
    talk, _ = world()
    talk.play((0.5, shown("p", ONE)), until=0.6)
    assert (talk.llm.heard, talk.llm.looked) == ([""], [(ONE.digest,)])
    talk, _ = world()
    talk.play(*stream(0.5, 3.0), (3.0, ("what is this", 2.0)), until=4)
    assert talk.llm.looked[-1] == (picture().digest,) and talk.llm.heard[-1] == ""


def test_of_many_that_are_meant_the_last_four_are_shown():
    talk, seen = world()
    many = [picture(grey, 64 + grey) for grey in range(6)]  # of six sizes, so that they are no frames
    talk.play(*((0.5 + n / 10, shown(f"p{n}", one)) for n, one in enumerate(many)), (2.0, CreateResponse()), until=5)
    assert seen.lines == [("", tuple((0, one.digest) for one in many[2:]))]


def test_undo_takes_the_picture_back():
    talk, seen = world()
    session = talk.play(
        (0.5, typed("u", "hello")), (0.6, CreateResponse()), (3.0, shown("p", ONE)), (3.5, ("what is this", 1.0)),
        (8.0, Undo()), (9.0, typed("v", "and now")), (9.1, CreateResponse()), until=14,
    )  # fmt: skip
    assert [deleted.item_id for deleted in talk.of(ItemDeleted)][-1] == "p"
    assert seen.lines == [("hello", ()), ("and now", ())]
    other, plain = world()
    other.play(
        (0.5, typed("u", "hello")), (0.6, CreateResponse()), (9.0, typed("v", "and now")), (9.1, CreateResponse()),
        until=14,
    )  # fmt: skip
    assert plain.prompts[-1].lines == tuple(seen.prompts[-1].lines)
    assert talk.llm.folded[session.talk] == other.llm.folded[next(iter(other.llm.folded))]


def test_undo_of_a_picture_that_nobody_asked_about():
    talk, _ = world()
    session = talk.play((0.5, shown("p", ONE)), (1.0, Undo()), until=3)
    assert session.items == () and [one.item_id for one in talk.of(ItemDeleted)] == ["p"]


def test_a_deleted_picture_is_not_seen():
    talk, seen = world()
    talk.play((0.5, shown("p", ONE)), (1.0, DeleteItem("p")), (1.5, typed("u", "so")), (1.6, CreateResponse()), until=5)
    assert seen.lines == [("so", ())]


def test_a_damaged_picture_with_words_is_one_error_and_without_none():
    talk, seen = world()
    whole = ONE.encoded
    broken = Picture(ONE.digest, ONE.width, ONE.height, encoded=whole[: len(whole) - 30])
    talk.play(
        (0.5, shown("a", broken, text="what is this")), (0.6, shown("b", broken)), (0.7, typed("c", "so")),
        (0.8, CreateResponse()), until=5,
    )  # fmt: skip
    [error] = talk.of(Error)
    assert (error.code, error.param) == ("image_parse_error", "item.content[0].image_url")
    assert [one.item.id for one in talk.of(ItemAdded)][:2] == ["b", "c"] and seen.lines == [("so", ())]
    assert b'image_parse_error"} 2.0' in talk.talks.metrics.text()


def test_the_input_of_one_reply_may_show():
    talk, seen = world()
    given = (shown("x", ONE, text="what is this").item,)
    talk.play((0.5, CreateResponse(ResponseParams(conversation="none", input=given))), until=5)
    assert seen.lines == [("what is this", ((0, ONE.digest),))]


# ------------------------------------------------------------------------------------------------ frames


def stream(begin: float, end: float, every: float = 1.0, grey=lambda at: GREY):
    """What clients send while a camera is on: one picture after another, each an item of its own."""
    steps = int((end - begin) / every)
    return [(begin + n * every, shown(f"f{n}", picture(int(grey(begin + n * every))))) for n in range(steps)]


def test_of_a_camera_the_newest_frame_is_seen_at_the_onset_of_speech():
    talk, seen = world()
    talk.play(*stream(0.5, 9.6, grey=lambda at: 20 * at), (6.0, ("what is this", 1.0)), until=12)
    assert seen.lines == [("what is this", ((0, picture(int(20 * 5.5)).digest),))]
    assert not talk.of(ItemDeleted) and not talk.of(Error)
    assert len(talk.of(ItemDone)) == 9 + 2  # frames, question, answer


def test_without_words_a_frame_is_no_turn_and_costs_nothing():
    talk, seen = world()
    session = talk.play(*stream(0.5, 200.0, grey=lambda at: at), until=220)
    assert seen.prompts == [] and len(session.items) == MOST_FRAMES
    assert sum(len(item.content) for item in session.items) <= 1
    assert len(talk.llm.looked) <= 2


def test_a_frame_that_shows_nothing_new_is_not_shown_again():
    talk, seen = world()
    talk.play(*stream(0.5, 20.0), (3.0, ("what is this", 1.0)), (10.0, ("and now", 1.0)), until=25)
    assert [pictures for _, pictures in seen.lines] == [((0, picture().digest),), ()]
    talk, seen = world()
    lighter = stream(0.5, 20.0, grey=lambda at: 10 * at)
    talk.play(*lighter, (3.0, ("what is this", 1.0)), (10.0, ("and now", 1.0)), until=25)
    assert [len(pictures) for _, pictures in seen.lines] == [1, 1]


def test_an_old_frame_is_no_news():
    talk, seen = world()
    talk.play(*stream(0.5, 4.0), (20.0, ("what is this", 1.0)), until=25)
    assert [pictures for _, pictures in seen.lines] == [()]


def test_in_a_long_turn_a_frame_gives_way_to_one_that_differs_much():
    words = "well what is this thing that I hold here and what is that other thing now"
    talk, seen = world()
    talk.play(*stream(0.5, 14.0, grey=lambda at: 40 if at < 4 else 220), (1.0, (words, 8.0)), until=16)
    assert [pictures for _, pictures in seen.lines] == [((0, picture(220).digest),)]
    talk, seen = world()
    talk.play(*stream(0.5, 14.0, grey=lambda at: 40 if at < 4 else 44), (1.0, (words, 8.0)), until=16)
    assert [pictures for _, pictures in seen.lines] == [((0, picture(40).digest),)]


def test_a_front_may_say_that_a_picture_is_a_frame_and_send_it_when_the_user_has_begun():
    talk, seen = world()
    session = talk.play((1.4, shown("f", ONE, frame=True)), (1.0, ("what is this", 1.0)), until=5)
    assert seen.lines == [("what is this", ((0, ONE.digest),))]
    assert session.items[0].id == "f"


def test_a_front_may_say_that_pictures_of_one_size_are_meant():
    talk, seen = world()
    both = (0.5, shown("a", ONE, frame=False)), (0.7, shown("b", TWO, frame=False))
    talk.play(*both, (1.0, CreateResponse()), until=5)
    assert seen.lines == [("", ((0, ONE.digest), (0, TWO.digest)))]


def test_a_noise_takes_the_frame_back():
    talk, seen = world()
    talk.play(*stream(0.5, 3.0), (3.0, ("", 0.4)), (8.0, typed("u", "hello")), (8.1, CreateResponse()), until=12)
    assert [line.pictures for line in seen.prompts[0].lines] == [()]
    assert seen.lines == [("[inaudible]", ()), ("hello", ((0, picture().digest),))]  # it is still what is shown now


def test_a_typed_message_shows_the_frame_and_so_does_a_reply_that_is_asked_for():
    talk, seen = world()
    talk.play(*stream(0.5, 5.0), (3.0, typed("u", "what is this")), (3.1, CreateResponse()), until=8)
    assert seen.lines == [("what is this", ((0, picture().digest),))]
    by_hand = Settings(persona="ada", turn_detection=None)
    talk, seen = world(settings=by_hand)
    talk.play(*stream(0.5, 5.0), (2.0, ("what is this", 1.0)), (3.2, CommitAudio()), (3.3, CreateResponse()), until=8)
    assert seen.lines == [("what is this", ((0, picture().digest),))]


def test_undo_takes_the_frame_of_the_turn_back():
    talk, seen = world()
    asked = 3.0, ("what is this", 1.0)
    session = talk.play(*stream(0.5, 4.0), asked, (8.0, Undo()), (9.0, CreateResponse()), until=12)
    assert seen.lines == [] and all(not item.content for item in session.items if item.role == "user")


@pytest.mark.parametrize("detection", [SemanticVad()], ids=["semantic"])
def test_frames_disturb_no_candidate(detection):
    settings = Settings(persona="ada", turn_detection=detection)
    talk, seen = world(settings=settings)
    talk.play(*stream(0.5, 9.0, every=0.05), (3.0, ("what is this", 1.0)), until=12)
    [done] = talk.of(ResponseDone)
    assert done.timeline is not None and "candidates_dropped" not in done.timeline.figures
    assert done.timeline.figures["candidate_begun_ms"] > 0
    assert len(seen.prompts) == 1 and seen.lines == [("what is this", ((0, picture().digest),))]


# ----------------------------------------------------------------------------------------- without eyes


def test_a_model_without_eyes_says_so_aloud_and_guesses_nothing():
    asked: list[Prompt] = []
    talk = World(lambda prompt: asked.append(prompt) or ["A cat."])
    talk.play((0.5, shown("p", ONE)), (1.0, ("what is this", 1.0)), until=12)
    [done] = talk.of(ResponseDone)
    assert done.response.status == "completed" and talk.of(AudioDelta) and asked == [] and not talk.of(Error)
    assert "".join(one.delta for one in talk.of(SpokenText)) == CANNOT_SEE


def test_a_model_without_eyes_reads_where_a_picture_stood():
    prompts: list[Prompt] = []
    talk = World(lambda prompt: prompts.append(prompt) or ["Well."])
    talk.play((0.5, shown("p", ONE)), (0.6, typed("u", "what is this")), (0.7, CreateResponse()),
              (14.0, typed("v", "a cat")), (14.1, CreateResponse()), until=20)  # fmt: skip
    [prompt] = prompts
    assert [line.text for line in prompt.lines] == ["[picture] what is this", CANNOT_SEE, "a cat"]


@pytest.mark.parametrize("spoken", [True, False], ids=["spoken", "typed"])
@pytest.mark.parametrize(("words", "sees_it"), [
    ("what time is it", False), ("tell me a story", False), ("what day is it today", False),
    ("what is this", True), ("what's it", True), ("what does it say", True), ("what color is the cup", True),
])  # fmt: skip
def test_beside_a_picture_that_is_not_seen_other_requests_are_answered(words, sees_it, spoken):
    prompts: list[Prompt] = []
    talk = World(lambda prompt: prompts.append(prompt) or ["Half past two."])
    if spoken:
        talk.play((0.5, shown("p", ONE)), (1.0, (words, 1.5)), until=14)
    else:
        talk.play((0.5, shown("p", ONE, text=words)), (1.0, CreateResponse()), until=14)
    assert "".join(one.delta for one in talk.of(SpokenText)) == (CANNOT_SEE if sees_it else "Half past two.")
    assert [prompt.lines[-1].text for prompt in prompts] == ([] if sees_it else [f"[picture] {words}"])


def test_a_picture_alone_that_is_not_seen_is_told_of():
    talk = World(lambda prompt: ["A cat."])
    talk.play((0.5, shown("p", ONE)), (1.0, CreateResponse()), until=12)
    assert "".join(one.delta for one in talk.of(SpokenText)) == CANNOT_SEE


def test_a_camera_on_a_model_without_eyes_changes_nothing():
    prompts: list[Prompt] = []
    talk = World(lambda prompt: prompts.append(prompt) or ["Half past two."])
    talk.play(*stream(0.5, 9.6), (6.0, ("what time is it", 1.0)), until=12)
    [prompt] = prompts
    assert [line.text for line in prompt.lines] == ["what time is it"] and not talk.of(Error)


def test_a_front_is_told_when_a_server_turns_out_to_have_no_eyes():
    talk, seen = world()

    def answers(prompt: Prompt) -> list[str]:
        talk.llm.sees = False  # as a server's answer tells
        return seen(prompt)

    talk.llm.answers = answers
    talk.play(*stream(0.5, 20.0, grey=lambda at: 10 * at), (3.0, ("what is this", 1.0)), until=9)
    [told] = talk.of(SightChanged)
    assert not told.sees and talk.when(SightChanged)[0] >= talk.when(ResponseDone)[0]


# ---------------------------------------------------------------------------------------------- keeping


def test_pictures_that_are_meant_outlive_the_process_and_frames_do_not(tmp_path):
    talk, _ = world(folder=tmp_path)
    session = talk.play((0.5, shown("p", ONE, text="look")), *stream(1.0, 4.0), (5.0, typed("u", "so")), until=7)
    folder = tmp_path / "pictures" / session.talk
    assert [path.name for path in folder.iterdir()] == [ONE.digest]
    again, _ = world(folder=tmp_path)
    resumed = again.talks.open(resume=session.talk)
    assert [item.id for item in resumed.items] == ["p", "u"]
    part = resumed.items[0].content[0]
    assert isinstance(part, PicturePart) and part.picture == ONE and (part.picture.pixels == ONE.pixels).all()


def test_a_kept_picture_goes_with_its_item_and_with_the_talk(tmp_path):
    talk, _ = world(folder=tmp_path)
    both = (0.5, shown("p", ONE, text="look")), (0.6, shown("q", TWO, text="look"))
    session = talk.play(*both, (1.0, DeleteItem("p")), until=3)
    folder = tmp_path / "pictures" / session.talk
    assert [path.name for path in folder.iterdir()] == [TWO.digest]
    talk.talks.forget(session.talk)
    assert not folder.exists()


@pytest.mark.parametrize("how", ["gone", "torn"])
def test_a_kept_picture_that_is_lost_leaves_a_word(tmp_path, how):
    talk, _ = world(folder=tmp_path)
    session = talk.play((0.5, shown("p", ONE, text="look")), until=3)
    path = tmp_path / "pictures" / session.talk / ONE.digest
    path.unlink() if how == "gone" else path.write_bytes(ONE.encoded[:50])
    again, _ = world(folder=tmp_path)
    [item] = again.talks.open(resume=session.talk).items
    assert item.content == (TextPart("[picture]"), TextPart("look"))


def test_a_disk_that_keeps_no_picture_says_so(tmp_path):
    (tmp_path / "pictures").write_text("no folder")
    talk, _ = world(folder=tmp_path)
    talk.play((0.5, shown("p", ONE, text="look")), (1.0, typed("u", "so")), until=3)
    [error] = talk.of(Error)
    assert error.code == "talk_not_kept" and "after a restart it is gone" in error.message


@pytest.mark.parametrize(("sees", "own", "told"), [
    (True, None, f"You are Ada.\n{EYES}"), (False, None, "You are Ada."), (True, "Be brief.", "Be brief."),
])  # fmt: skip
def test_a_persona_with_eyes_is_told_what_a_camera_may_show(sees, own, told):
    seen = Seen()
    settings = Settings(persona="ada", instructions=own)
    World(seen, settings, sees=sees).play((0, typed("u", "hello")), (0.1, CreateResponse()), until=3)
    assert {prompt.system for prompt in seen.prompts} == {told}
