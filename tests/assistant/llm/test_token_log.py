"""What is folded into the state, and the way from there to what should be."""

import re

from hypothesis import given
from hypothesis import strategies as st

from assistant.contracts import Line, Prompt, ToolCall
from assistant.llm.chat_layout import find_layout
from assistant.llm.token_log import FoldStep, TokenLog, Written, wanted_steps
from tests.fakes.engines import encode, render

LAYOUT = find_layout(render)


def written(text, calls=0):
    reply = Written()
    for token in re.findall(r"\s*\S+", text):
        reply.add(hash(token) % 1000, token)
    if calls:
        reply.add(7, "")
        reply.calls = calls
    return reply


def test_a_cut_reply_keeps_the_tokens_of_its_heard_words():
    reply = written("one two three")
    assert reply.upto(Line("assistant", "one two three")) == tuple(reply.tokens)
    assert reply.upto(Line("assistant", "one two")) == tuple(reply.tokens[:2])
    assert reply.upto(Line("assistant", "")) == () and reply.upto(Line("assistant", "four")) is None
    called = written("Wait.", calls=1)
    assert called.upto(Line("assistant", "Wait.", (ToolCall("k", "n", "{}"),))) == tuple(called.tokens)
    assert called.upto(Line("assistant", "Wait.")) == tuple(called.tokens[:1])


def test_half_a_character_counts_with_the_whole():
    reply = Written()
    reply.add(1, "a")
    reply.add(2, "")
    reply.add(3, "é")
    assert reply.ends == [1, 2, 2] and reply.upto(Line("assistant", "a")) == (1,)


steps = st.lists(st.builds(lambda ids, w: FoldStep(tuple(ids), w), st.lists(st.integers(0, 3), min_size=1, max_size=5),
                           st.booleans()), max_size=6)  # fmt: skip


@given(steps, steps)
def test_a_plan_leads_from_any_tape_to_any_wanted_steps(have, want):
    tape = TokenLog(have)
    plan = tape.plan(want)
    tape.truncate(plan.keep)
    kept = list(tape.steps)
    for step in plan.steps:
        tape.appended(step.ids)
    assert tape.ids == tuple(token for step in want for token in step.ids)
    for before, now in zip(have, kept, strict=False):  # nothing is kept that ends inside an append
        assert now == before or (now.written and before.ids[: len(now.ids)] == now.ids)


def test_a_prompt_is_one_append_per_turn():
    reply = written("fine")
    prompt = Prompt("S", (), (Line("user", "a"), Line("assistant", "fine", (), "r.0"), Line("user", "b")))
    found = wanted_steps(prompt, LAYOUT, encode, {"r.0": reply}.get, open_reply=True)
    assert [step.written for step in found] == [False, False, True, False]
    stays = wanted_steps(prompt, LAYOUT, encode, {"r.0": reply}.get, open_reply=False)
    assert stays == found[:3]
    unknown = wanted_steps(prompt, LAYOUT, encode, lambda _: None, open_reply=True)
    assert len(unknown) == 4 and unknown[:2] == found[:2] and not any(step.written for step in unknown)
    assert wanted_steps(prompt, LAYOUT, encode, lambda _: None, open_reply=False) == unknown[:3]
