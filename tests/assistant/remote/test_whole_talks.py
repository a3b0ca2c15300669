"""Whole talks over a chat server that leaks, refuses and answers nothing, as the servers of the field do."""

import asyncio
import json
import random

import pytest

from assistant.contracts import Line, Prompt, ReplyOptions, ToolCall
from assistant.remote import RemoteLLM
from assistant.remote.messages import CANCELLED, SILENCE, chat_body, well_formed
from assistant.tools.registry import ToolRegistry
from tests.fakes.chat_server import ChatServer, call, chunk, fault_of
from tests.fakes.talk import World
from tests.fakes.web import serving

BODY = '{"name": "set_timer", "arguments": {"duration": "5 minutes"}}'
SET = ["The timer is set."]
NO_ANSWER, BROKEN = "I have no answer to that.", "Sorry, I cannot answer at the moment."


def timers(log: list[str]):
    def tools() -> ToolRegistry:
        registry = ToolRegistry()

        def set_timer(duration: str) -> str:
            """Set a timer."""
            log.append(duration)
            return f"timer of {duration}"

        registry.tool(set_timer)
        return registry

    return tools


async def answers(wire, question: str | None) -> dict:
    if question is not None:
        await wire.say(question)
    await wire.send("response.create")
    return (await wire.until("response.done"))["response"]


def said(response: dict) -> list[str]:
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return [part.get("transcript", part.get("text")) for part in parts]


def converse(server: ChatServer, *questions: str, audio: bool = True, log: list[str] | None = None) -> list[dict]:
    """The responses to these questions, one after another."""

    async def story() -> list[dict]:
        async with server.serving() as address:
            llm = RemoteLLM(address)
            world = World(speed=100.0, llm=llm, tools=ToolRegistry if log is None else timers(log))
            async with serving(world) as site, site.wire() as wire:
                if not audio:
                    await wire.update(output_modalities=["text"])
                found = [await answers(wire, question) for question in questions]
                await llm.close()
            return found

    return asyncio.run(story())


LEAKS = [
    ["<think>I should ", "greet.</think>Hello."],
    list("<think>I should greet.</think>Hello."),
    ["I should greet.\n", "</think>\n\nHello."],
    [{"reasoning_content": "I should greet."}, "Hello."],
    [{"reasoning": "I should greet."}, "Hello."],
    [{"content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "Hello."}]}],
    ["<thinking>hm</thinking>", "\n\nHello."],
    ["[THINK]hm[/THINK]Hello."],
    ["Hello.", "<|im_end|>"],
    [{"refusal": "Hello."}],
    [{"content": None, "refusal": "Hel"}, {"refusal": "lo."}],
]


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("deltas", LEAKS, ids=range(len(LEAKS)))
def test_thoughts_are_never_spoken_shown_or_kept(deltas, audio):
    server = ChatServer(deltas)
    first, second = converse(server, "hi", "and again", audio=audio)
    assert said(first) == said(second) == ["Hello."]
    assert [m["content"] for m in server.messages if m["role"] == "assistant"] == ["Hello."]


CALLS = [
    [f"<tool_call>{BODY}</tool_call>"],
    list(f"<tool_call>\n{BODY}\n</tool_call>"),
    [BODY],
    list(BODY),
    [f"```json\n{BODY}\n```"],
    ["<function=set_timer><parameter=duration>5 min", "utes</parameter></function>"],
    ["<think>A timer.</think>", BODY],
    [f"<think>A timer. <tool_call>{BODY}</tool_call>"],
    [call("set_timer", '{"duration": "5 minutes"}'), f"<tool_call>{BODY}</tool_call>"],
    [call("functions.set_timer", '{"duration": "5 minutes"}')],
    [call("set_timer", '"{\\"duration\\": \\"5 minutes\\"}"')],
    [call("set_timer", '{"duration": "5 minutes"}', call_id="")],
]


@pytest.mark.parametrize("deltas", CALLS, ids=range(len(CALLS)))
def test_calls_in_text_are_run_and_not_spoken(deltas):
    log: list[str] = []
    server = ChatServer(deltas, SET)
    (response,) = converse(server, "a timer please", log=log)
    assert said(response) == SET and log == ["5 minutes"] and not server.refused
    assert server.messages[-1]["content"] == "timer of 5 minutes"


UNREAD = [
    ['<tool_call>{"name": "set_timer", "arguments": {broken</tool_call>'],
    ['<tool_call>{"name": "set_timer", "argum'],
    ["<tool_call>set the timer</tool_call>"],
    [call("set_timer", '{"duration": ')],
    [call("", "{}")],
]


@pytest.mark.parametrize("deltas", UNREAD, ids=range(len(UNREAD)))
def test_a_call_that_cannot_be_read_is_asked_for_once_more(deltas):
    log: list[str] = []
    server = ChatServer(deltas, [call("set_timer", '{"duration": "5 minutes"}')], SET)
    (response,) = converse(server, "a timer please", log=log)
    assert said(response) == SET and log == ["5 minutes"] and len(server.asked) == 3 and not server.refused
    assert "could not be read" in server.asked[1]["messages"][-1]["content"]
    server = ChatServer(deltas)
    (response,) = converse(server, "a timer please", log=log)
    assert said(response) == [NO_ANSWER] and response["status"] == "completed" and len(server.asked) == 2


@pytest.mark.parametrize("tools", [True, False])
def test_a_tool_that_nobody_declared_is_told_to_the_model(tools):
    server = ChatServer([call("fly", '{"to": "moon"}')], ["I cannot fly."])
    responses = converse(server, "fly", "really", log=[] if tools else None)
    assert [said(response) for response in responses] == [["I cannot fly."]] * 2 and not server.refused
    told = server.asked[1]["messages"][-1]
    assert told["role"] == "tool" and "there is no tool 'fly'" in told["content"]
    assert ("set_timer" in told["content"]) == tools


NOTHING = [[], [""], ["  \n", " "], ["<think>hm</think>"], ["<think>never closed"], [{"reasoning_content": "hm"}],
           [{"content": None}], ["</think>"], ["<|im_end|>"]]  # fmt: skip


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("deltas", NOTHING, ids=range(len(NOTHING)))
def test_a_reply_that_is_nothing_is_one_sentence(deltas, audio):
    responses = converse(ChatServer(deltas, ["Hello."]), "hi", "hi", audio=audio)
    assert [said(response) for response in responses] == [[NO_ANSWER], ["Hello."]]
    assert [response["status"] for response in responses] == ["completed"] * 2


def test_a_model_without_words_for_what_it_did_says_that_it_is_done():
    (response,) = converse(ChatServer([call("set_timer", '{"duration": "1 minute"}')], [""]), "a timer", log=[])
    assert said(response) == ["Done."]


BREAKS = [
    (["One. ", b"data: nonsense\n\n"], ["One."]),
    (["One two", b"data: 5\n\n"], ["One two"]),
    (["One. "], ["One."]),
    ([b'data: {"error": {"message": "out of memory"}}\n\n'], []),
]


@pytest.mark.parametrize(("deltas", "before"), BREAKS, ids=range(len(BREAKS)))
def test_a_reply_that_breaks_off_ends_in_one_sentence(deltas, before):
    server = ChatServer(["Hello.", chunk({}, "stop")], deltas, ["Well."], ended=b"")
    first, second, third = converse(server, "hi", "and", "on")
    assert said(first) == ["Hello."] and said(third)[0] == "Well."
    assert [text.strip() for text in said(second)] == [*before, BROKEN] and second["status"] == "failed"
    assert second["status_details"]["error"]["message"]


def test_a_stream_without_its_end_mark_is_whole_where_the_server_said_that_it_ends():
    server = ChatServer(["Hello."], ended=b": bye\n\n")
    assert said(converse(server, "hi")[0]) == ["Hello."]


# ------------------------------------------------------------------------------------------- well-formed talks


def asked(*ids: str) -> Line:
    return Line("assistant", "", tuple(ToolCall(one, "look", "{}") for one in ids))


def told(one: str) -> Line:
    return Line("tool", "sunny", call_id=one)


USER, SAYS = Line("user", "u"), Line("assistant", "a")
TALKS = {
    "nothing": (),
    "two of the user": (USER, USER),
    "two of the assistant": (USER, SAYS, SAYS, USER),
    "the assistant first": (SAYS, USER),
    "the assistant last": (USER, SAYS),
    "a call without an output": (USER, asked("1"), USER),
    "an output without a call": (USER, told("1"), SAYS, USER),
    "a call, words, its output": (USER, asked("1"), USER, told("1"), SAYS, USER),
    "two calls in two lines": (USER, asked("1"), asked("2"), told("1"), told("2")),
    "outputs in another order": (USER, asked("1", "2"), told("2"), told("1"), USER),
    "one output of two": (USER, asked("1", "2"), told("2"), USER),
    "two outputs of one": (USER, asked("1"), told("1"), told("1"), USER),
    "an id used twice": (USER, asked("1"), told("1"), USER, asked("1"), told("1")),
    "a filler before an output": (USER, asked("1"), SAYS, told("1"), SAYS, USER),
    "a timer that rings": (USER, SAYS, SAYS, SAYS, USER),
    "calls that are no objects": (USER, Line("assistant", "", (ToolCall("1", "look", "[1"),)), told("1")),
    "a call first": (asked("1"), told("1"), USER),
}


@pytest.mark.parametrize("lines", TALKS.values(), ids=TALKS)
def test_messages_are_well_formed(lines):
    messages = chat_body("m", Prompt("Be kind.", (), lines), ReplyOptions("r"))["messages"]
    assert fault_of(messages) == "" and messages[0]["role"] == "system"


def test_nothing_is_lost_where_lines_are_merged_and_nothing_invented():
    lines = well_formed([USER, Line("user", "v"), asked("1", "2"), told("2"), SAYS, Line("assistant", "b")])
    assert [(line.role, line.text) for line in lines] == [
        ("user", "u\nv"), ("assistant", ""), ("tool", CANCELLED), ("tool", "sunny"), ("assistant", "a\nb"),
        ("user", SILENCE),
    ]  # fmt: skip
    assert well_formed(lines) == lines


def test_random_talks_are_well_formed():
    random_ = random.Random(3)
    for _ in range(2000):
        lines = []
        for _ in range(random_.randrange(12)):
            one = random_.choice("123")
            lines.append(random_.choice([USER, SAYS, asked(one), asked(*"12"), told(one)]))
        made = well_formed(lines)
        messages = [
            {"role": line.role, "tool_call_id": line.call_id,
             "tool_calls": [{"id": c.call_id, "function": {"arguments": c.arguments}} for c in line.calls]}
            for line in made
        ]  # fmt: skip
        assert fault_of(messages) == "" and well_formed(made) == made, lines


def test_a_talk_that_is_interrupted_before_its_first_word_goes_on_at_a_strict_server():
    async def story() -> None:
        server = ChatServer(["Hello."])
        async with server.serving() as address:
            llm = RemoteLLM(address)
            async with serving(World(speed=100.0, llm=llm)) as site, site.wire() as wire:
                for _ in range(2):
                    await wire.say("hello")
                    await wire.send("response.create")
                    await wire.send("response.cancel")
                    await wire.until("response.done")
                assert said(await answers(wire, "and now")) == ["Hello."]
                assert said(await answers(wire, None)) == ["Hello."]  # nothing new was said
                await llm.close()
        assert not server.refused and server.messages[1]["content"].startswith("hello\nhello")

    asyncio.run(story())


# ------------------------------------------------------------------------------------------- what servers refuse


def test_old_turns_leave_where_the_server_has_no_room():
    server = ChatServer(["Fine."], room=400)
    questions = [f"question {n} {'x' * 80}" for n in range(8)]
    responses = converse(server, *questions)
    assert [said(response) for response in responses] == [["Fine."]] * 8
    assert server.messages[0]["role"] == "system" and server.messages[-1]["content"].startswith("question 7")
    assert 0 < len(server.refused) <= 6  # and not at every turn


def test_a_turn_that_alone_is_too_long_is_an_error_and_not_for_ever():
    server = ChatServer(["Fine."], room=400)
    long, short = converse(server, "x" * 500, "hello")
    assert long["status"] == "failed" and said(long) == [BROKEN]
    assert short["status"] == "completed" and said(short) == ["Fine."]


@pytest.mark.parametrize("named", [True, False])
def test_a_server_that_does_not_know_a_field_is_asked_without_it_and_remembered(named):
    server = ChatServer(["Fine."], unknown=["chat_template_kwargs"], named=named)
    assert [said(response) for response in converse(server, "one", "two")] == [["Fine."]] * 2
    assert ["chat_template_kwargs" in body for body in server.asked] == [True, False, False]
    server = ChatServer(["Fine."], unknown=["stream_options"])
    assert said(converse(server, "one")[0]) == ["Fine."]
    assert server.asked[-1]["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_server_without_a_system_role_gets_the_instructions_with_the_first_words():
    server = ChatServer(["Fine."], system=False)
    assert [said(response) for response in converse(server, "one", "two")] == [["Fine."]] * 2
    first = server.messages[0]
    assert first["role"] == "user" and first["content"].startswith("You are Ada.") and len(server.refused) == 1
    assert first["content"].endswith("\none")


def test_words_of_a_model_that_closes_what_it_never_opened_wait_from_then_on():
    server = ChatServer(["a</think>One."], ["b</think>Two."], ["Three."], ["c</think>Four."])
    texts = [text for response in converse(server, *"1234") for text in said(response)]
    assert texts == ["One.", "Two.", "Three.", "Four."]


def test_chunks_are_as_servers_send_them():
    assert json.loads(chunk("a").removeprefix(b"data: "))["choices"][0]["delta"] == {"content": "a"}
