"""Items where they are put, taken back with what belongs to them, and on disk."""

import json

import pytest

from assistant.base.errors import PeerError
from assistant.contracts import Mark
from assistant.events import AudioPart, FunctionCall, FunctionOutput, Message, TextPart
from assistant.talk.conversation import Conversation, Entry
from assistant.talk.heard import SpokenPiece
from assistant.talk.keeping import entry_of, entry_row


def piece(text, samples, marks=(), start=0, at=0, complete=True, name="p"):
    return SpokenPiece(name, text, start, start + len(text), at, samples, tuple(marks), complete)


def message(item_id, role="user", text="x"):
    return Entry(Message(item_id, role, (TextPart(text),)))


def test_items_stand_where_they_are_put():
    talk = Conversation()
    assert talk.add(message("a")) is None
    assert talk.add(message("c")) == "a"
    assert talk.add(message("b"), after="a") == "a"
    assert talk.add(message("z"), after="root") is None
    assert [item.id for item in talk.items] == ["z", "a", "b", "c"]
    with pytest.raises(PeerError, match="no item 'q'"):
        talk.add(message("d"), after="q")
    with pytest.raises(PeerError, match="exists already"):
        talk.add(message("a"))
    assert len(talk) == 4 and talk.previous_id("b") == "a"


def test_undo_counts_users_messages_and_spares_what_came_before():
    talk = Conversation([message("greeting", "assistant"), message("u1"), message("a1", "assistant"), message("u2"),
                         message("a2", "assistant")])  # fmt: skip
    assert talk.turns_back(1) == ("a2", "u2")
    assert talk.turns_back(2) == ("a2", "u2", "a1", "u1") == talk.turns_back(9)
    assert Conversation([message("greeting", "assistant")]).turns_back(1) == ()
    assert talk.after("u1") == ("a2", "u2", "a1")


def test_hidden_calls_go_with_their_reply():
    call = Entry(FunctionCall("c", "call", "look", "{}"), "resp_1.0", hidden=True)
    result = Entry(FunctionOutput("o", "call", "fine"), "resp_1.0", hidden=True)
    answer = Entry(Message("a", "assistant", (TextPart("ok"),)), "resp_1.1")
    talk = Conversation([message("u"), call, result, answer, message("v")])
    assert [item.id for item in talk.items] == ["u", "a", "v"] and talk.previous_id("a") == "u"
    talk.delete("a")
    assert [entry.item.id for entry in talk] == ["u", "v"]
    other = Conversation([message("u"), call, result, message("v")])
    other.delete("u")
    assert [entry.item.id for entry in other] == ["v"]


def test_conversations_survive_the_disk():
    spoken = Entry(
        Message("a", "assistant", (AudioPart("one two"),), "incomplete"), "resp_1.0",
        (piece("one two", 9_600, [Mark(0, 0), Mark(4_800, 4)]),),
    )  # fmt: skip
    talk = Conversation([message("u"), spoken, Entry(FunctionCall("c", "k", "n", "{}"), "resp_2.0", hidden=True),
                         Entry(FunctionOutput("o", "k", "out"))])  # fmt: skip
    rows = json.loads(json.dumps([entry_row(entry) for entry in talk]))
    assert [entry_of(row) for row in rows] == list(talk)
