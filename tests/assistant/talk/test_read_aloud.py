"""A reply in Markdown: the voice gets its words, the talk keeps its text, and both count as heard together."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from assistant.events import CreateItem, CreateResponse, Message, ResponseDone, SpokenText, TextPart
from assistant.talk.heard import cut_pieces, heard
from assistant.talk.reply import UNSAYABLE
from assistant.text.segment import SHOWN
from tests.assistant.talk.test_heard import piece
from tests.fakes.models import WORD_S, FakeTTS
from tests.fakes.talk import World

CODE = "Here is the code:\n```python\nx = 1\n\nprint(x)\n```\nThat is **all**."
SAID = ["Here is the code:", SHOWN["code"], "That is all."]


class Reader(FakeTTS):
    """Notes what it is given; it has sounds for plain letters only."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def speak(self, talk, voice, piece_id, text, *, speed=1.0, language=None):
        self.given.append(text.strip())
        sayable = " ".join(re.findall(r"[a-zA-Z][a-zA-Z.,:]*", text))
        return super().speak(talk, voice, piece_id, sayable, speed=speed, language=language)


def answered(text, *more):
    voice = Reader()
    world = World(lambda prompt: [text], tts=voice)
    begin = [(0.0, CreateItem(Message("u", "user", (TextPart("go"),)))), (0.1, CreateResponse())]
    session = world.play(*begin, *more, until=12)
    return world, voice, session


def test_code_is_announced_and_stays_in_the_talk():
    world, voice, session = answered(CODE)
    assert voice.given == SAID
    assert "".join(event.delta for event in world.of(SpokenText)) == CODE
    assert session.items[-1].content[0].transcript == CODE


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (2, "Here is"), (4, "Here is the code:\n"), (6, "Here is the code:\n"), (11, CODE[: CODE.index("That")]),
        (14, CODE),
    ],
)
def test_a_block_counts_as_heard_with_its_announcement(words, kept):
    _, _, session = answered(CODE)
    end_ms = round(words * WORD_S * 1000)
    assert session.conversation.truncate(session.items[-1].id, 0, end_ms).transcript == kept


@pytest.mark.parametrize("text", ["Привет, как дела?", "今日は。散歩に行きましょう。", "🎉 🎉", "<!-- no -->"])
def test_a_text_without_sounds_is_answered_by_one_sentence(text):
    world, voice, session = answered(text)
    assert voice.given[-1] == UNSAYABLE and voice.given.count(UNSAYABLE) == 1
    response = world.of(ResponseDone)[0].response
    assert response.status == "completed" and session.items[-1].content[0].transcript == text
    assert sum(one.samples for one in session.conversation.entry(session.items[-1].id).pieces) > 0


def test_pieces_without_sound_are_heard_with_the_one_before():
    whole = [
        piece("Look: ", 9_000, name="a"),
        piece("```\n", 9_000, start=6, at=9_000, name="b"),
        piece("x = 1\n", 0, start=10, at=18_000, name="c"),
        piece("```\n", 0, start=16, at=18_000, name="d"),
        piece("Done.", 9_000, start=20, at=18_000, name="e"),
    ]
    assert [heard(whole, played).chars for played in (0, 9_000, 17_999, 18_000, 27_000)] == [0, 6, 9, 20, 25]
    cut = heard(whole, 18_000)
    assert [one.piece_id for one in cut.uttered] == ["a", "b"]
    assert [one.piece_id for one in cut_pieces(whole, cut)] == ["a", "b", "c", "d"]
    assert cut_pieces(cut_pieces(whole, cut), cut) == cut_pieces(whole, cut)
    growing = [*whole[:4], replace(whole[4], samples=0, complete=False)]
    assert heard(growing, 18_000).chars == 20
