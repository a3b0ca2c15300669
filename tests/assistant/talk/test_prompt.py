"""The conversation as a prompt: one line a reply, remembered lines those of the talk as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.base.errors import PeerError
from assistant.events import AudioPart, FunctionCall, FunctionOutput, Message, TextPart, ToolSpec
from assistant.talk.conversation import Conversation, Entry
from assistant.talk.prompt import Lines, build, choose_tools


def message(item_id, role="user", text="x"):
    return Entry(Message(item_id, role, (TextPart(text),)))


def test_a_reply_and_its_calls_are_one_line():
    entries = [
        Entry(Message("s", "system", (TextPart("Be kind."),))), message("u"),
        Entry(Message("a", "assistant", (AudioPart("Let me see."),)), "r.0"),
        Entry(FunctionCall("c", "k", "look", "{}"), "r.0"), Entry(FunctionOutput("o", "k", "fine")),
        Entry(Message("b", "assistant", (AudioPart("Fine."),)), "r.1"), Entry(Message("v", "user", (AudioPart(""),))),
    ]  # fmt: skip
    prompt = build("You are Ada.", (), entries)
    assert prompt.system == "You are Ada.\n\nBe kind."
    assert [(line.role, line.text, len(line.calls), line.reply_id) for line in prompt.lines] == [
        ("user", "x", 0, None), ("assistant", "Let me see.", 1, "r.0"), ("tool", "fine", 0, None),
        ("assistant", "Fine.", 0, "r.1"), ("user", "[inaudible]", 0, None),
    ]  # fmt: skip


def test_tool_choice():
    tools = (ToolSpec("a"), ToolSpec("b"))
    assert choose_tools(tools, "auto") == tools and choose_tools(tools, "none") == ()
    assert choose_tools(tools, "b") == tools[1:]
    with pytest.raises(PeerError, match="declared: a, b"):
        choose_tools(tools, "c")


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["add", "put", "delete", "system"]), st.integers(0, 9)), max_size=20))
def test_remembered_lines_are_those_of_the_talk_as_it_is(steps):
    talk, made = Conversation(), Lines()
    for number, (what, place) in enumerate(steps):
        ids = [entry.item.id for entry in talk]
        if what in ("add", "system"):
            role = "system" if what == "system" else ("user", "assistant")[place % 2]
            talk.add(message(f"i{number}", role, f"text {number}"))
        elif ids and what == "put":
            talk.put(message(ids[place % len(ids)], "user", f"changed {number}"))
        elif ids:
            talk.delete(ids[place % len(ids)])
        assert build("You are Ada.", (), talk, made) == build("You are Ada.", (), talk)
