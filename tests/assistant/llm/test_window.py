"""How much of a talk a model is shown that holds more than it understands."""

from dataclasses import replace

import pytest

from assistant.base.errors import ContextExceeded
from assistant.contracts import Line, Prompt
from assistant.llm.talk_state import TalkState
from assistant.llm.window import KEPT_SHARE, REPLY_ROOM, ContextWindow
from tests.fakes.engines import language

REACH, LIMIT = 400, 1200


@pytest.fixture(scope="module")
def window():
    small = replace(language(False), reach=REACH)
    return ContextWindow(small, small.encode, LIMIT + REPLY_ROOM)


def talk(turns, system="Be kind."):
    lines: list[Line] = []
    for turn in range(turns):
        lines += (Line("user", f"this is turn {turn}"), Line("assistant", "good"))
    return Prompt(system, (), (*lines, Line("user", "and now")))


def length(steps):
    return sum(len(step.ids) for step in steps)


def test_old_turns_leave_where_it_would_not_follow(window):
    state, prompt = TalkState(), talk(20)
    assert window.crowded(state, prompt)
    assert REACH < length(window.steps(state, prompt, open_reply=True)) <= LIMIT
    left = window.shorten(state, prompt)
    assert REACH * KEPT_SHARE / 2 < length(left) <= REACH and window.holds(left)
    assert not window.crowded(state, prompt)


def test_beside_long_instructions_there_is_room_for_a_talk(window):
    state, prompt = TalkState(), talk(20, system="word " * 130)
    instructions = len(window.steps(state, prompt, open_reply=True)[0].ids)
    assert REACH < instructions < LIMIT - REACH
    left = window.shorten(state, prompt)
    assert instructions < length(left) <= instructions + REACH / 2 and state.let_go.lines < len(prompt.lines) - 1


def test_only_what_it_cannot_hold_is_refused(window):
    long = Prompt("", (), (Line("user", "word " * 200),))
    assert REACH < length(window.shorten(TalkState(), long)) <= LIMIT
    with pytest.raises(ContextExceeded, match=f"this model holds {LIMIT}"):
        window.shorten(TalkState(), Prompt("", (), (Line("user", "word " * 300),)))
