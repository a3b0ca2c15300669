"""Calls of MCP servers within a talk: announced, asked about, allowed by a yes, and never made by a candidate."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from assistant.contracts import Prompt
from assistant.events import (
    AnswerCall,
    CancelResponse,
    CreateItem,
    CreateResponse,
    Error,
    McpApprovalRequest,
    McpCall,
    Message,
    Nod,
    OutputItemAdded,
    OutputItemDone,
    ResponseDone,
    ServerAsk,
    ServerVad,
    Settings,
    TextPart,
    ToolAsked,
    ToolBegun,
    ToolFilter,
    ToolSpec,
    ToolUsed,
    Undo,
)
from assistant.talk.approvals import DECLINED, NOT_YET, agrees, question
from assistant.talk.own_calls import INTERRUPTED
from assistant.talk.view import as_asked
from assistant.text.english import ENGLISH
from assistant.tools.registry import Tool, ToolRegistry
from tests.fakes.models import Answer
from tests.fakes.talk import World


class Files:
    """A server with a tool that writes and one that reads."""

    def __init__(self, ask: bool = False, seconds: float = 0.0) -> None:
        self.written: list[str] = []
        self.read = 0
        self.prompts: list[Prompt] = []
        self._ask, self._seconds = ask, seconds

    def tools(self) -> ToolRegistry:
        async def write(name: str) -> str:
            self.written.append(name)
            await asyncio.sleep(self._seconds)
            return f"wrote {name}"

        async def read(name: str) -> str:
            self.read += 1
            await asyncio.sleep(self._seconds)
            return f"read {name}"

        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return ToolRegistry((
            Tool(ToolSpec("write_file", "Write.", schema), write, server="files", there="write_file", ask=self._ask),
            Tool(ToolSpec("read_file", "Read.", schema), read, reads=True, server="files", there="read_file"),
        ))


def answers(prompt: Prompt) -> list[Answer]:
    last = prompt.lines[-1]
    if last.role == "tool":
        return [f"So {last.text}."]
    if last.text == "write it":
        return [("write_file", {"name": "a.txt"})]
    return [("read_file", {"name": "a.txt"})] if last.text == "read it" else [f"You said {last.text}."]


def typed(text: str) -> CreateItem:
    return CreateItem(Message(f"item_{text}", "user", (TextPart(text),)))


def world_of(files: Files, **kinds: Any) -> World:
    def answer(prompt: Prompt) -> list[Answer]:
        files.prompts.append(prompt)
        return answers(prompt)

    return World(answer, Settings(persona="ada", turn_detection=ServerVad(), **kinds), files.tools)


def said(world: World) -> list[str]:
    return [
        "".join(part.transcript or "" for part in item.content)
        for done in world.of(ResponseDone) for item in done.response.output if isinstance(item, Message)
    ]  # fmt: skip


def outputs(files: Files) -> list[str]:
    return [line.text for line in files.prompts[-1].lines if line.role == "tool"]


def test_a_call_that_changes_something_is_announced_and_one_that_reads_is_not() -> None:
    files = Files()
    world = world_of(files)
    world.play((0.1, typed("write it")), (0.2, CreateResponse()), (8, typed("read it")), (8.1, CreateResponse()))
    assert files.written == ["a.txt"] and files.read == 1
    assert said(world) == ["I am using files: write file.", "So wrote a.txt.", "So read a.txt."]
    assert [event.name for event in world.of(ToolBegun)] == ["write_file"]
    names = world.names()
    assert names.index("ToolBegun") < names.index("ToolUsed")


@pytest.mark.parametrize("answer", ["Yes, please.", "Go ahead!", "allowed by the page"])
def test_a_call_that_asks_runs_after_a_yes(answer: str) -> None:
    files = Files(ask=True)
    world = world_of(files)
    world.on_event = lambda session, event: (
        [AnswerCall(event.approval_id, True)] if isinstance(event, ToolAsked) and "page" in answer else []
    )
    steps = [(0.1, typed("write it")), (0.2, CreateResponse()), (6.0, typed(answer)), (6.1, CreateResponse())]
    world.play(*steps)
    assert files.written == ["a.txt"]
    assert said(world) == ["Shall I use files: write file, with a.txt?", "So wrote a.txt."]
    assert [event.output for event in world.of(ToolUsed)] == ["wrote a.txt"] and world.when(ToolUsed)[0] > 6
    assert outputs(files) == [NOT_YET, "wrote a.txt"]


@pytest.mark.parametrize(("request_", "left"), [("write it", [INTERRUPTED]), ("read it", [])])
def test_a_call_that_may_have_changed_something_is_remembered_when_it_is_interrupted(
    request_: str, left: list[str]
) -> None:
    """The server may finish it, so the model must not take it for undone."""
    files = Files(seconds=5.0)
    world = world_of(files)
    world.play(
        (0.1, typed(request_)), (0.2, CreateResponse()), (3.0, CancelResponse()), (3.1, typed("hello")),
        (3.2, CreateResponse()),
    )  # fmt: skip
    assert len(files.written) + files.read == 1
    assert outputs(files) == left and said(world)[-1] == "You said hello."


@pytest.mark.parametrize("answer", ["No.", "What time is it?", "Yes, but the other one.", "refused by the page"])
def test_anything_else_leaves_it_undone_for_good(answer: str) -> None:
    files = Files(ask=True)
    world = world_of(files)
    world.on_event = lambda session, event: (
        [AnswerCall(event.approval_id, False)] if isinstance(event, ToolAsked) and "page" in answer else []
    )
    world.play(
        (0.1, typed("write it")), (0.2, CreateResponse()), (6.0, typed(answer)), (6.1, CreateResponse()),
        (12.0, typed("Yes.")), (12.1, CreateResponse()),
    )  # fmt: skip
    assert files.written == [] and len(said(world)) == 3
    assert outputs(files) == [DECLINED if "page" in answer else NOT_YET]


FRONTS = [Settings(persona="ada", duck=True), Settings(persona="ada")]


@pytest.mark.parametrize("settings", FRONTS, ids=["duck", "judge"])
@pytest.mark.parametrize("begins_s", [0.6, 1.4, 2.4])
def test_a_yes_over_the_question_runs_the_call_and_a_no_is_answered(settings: Settings, begins_s: float) -> None:
    """The question sounds from 0.3 to 2.7 s."""
    for word, ran, reply in (("yes", ["a.txt"], "So wrote a.txt."), ("no", [], "You said no.")):
        files = Files(ask=True)
        world = World(answers, settings, files.tools)
        world.play(
            (0.1, typed("write it")), (0.2, CreateResponse()), (begins_s, (word, 0.3)), (9.0, ("yes", 0.3)), until=12
        )
        assert files.written == ran and world.of(Nod) == []
        assert said(world)[1:] == [reply, "You said yes."]


@pytest.mark.parametrize("settings", FRONTS, ids=["duck", "judge"])
def test_a_nod_over_the_question_or_a_yes_before_it_is_no_answer(settings: Settings) -> None:
    def explains(prompt: Prompt) -> list[Answer]:
        found = answers(prompt)
        return ["Let me write that down for you now.", *found] if isinstance(found[0], tuple) else found

    for answer, word, begins_s in ((answers, "mm-hm", 1.4), (explains, "yes", 1.4)):
        files = Files(ask=True)
        world = World(answer, settings, files.tools)
        world.play((0.1, typed("write it")), (0.2, CreateResponse()), (begins_s, (word, 0.3)), (8.0, ("yes", 0.3)))
        assert [nod.text for nod in world.of(Nod)] == [word]
        assert files.written == ["a.txt"] and world.when(ToolUsed)[0] > 8


def test_a_yes_that_interrupts_the_answer_to_something_else_is_not_for_the_call() -> None:
    """The person did not agree, and heard so."""
    files = Files(ask=True)
    world = World(
        lambda prompt: answers(prompt) if prompt.lines[-1].text != "a story" else ["Once upon a time. " * 30],
        FRONTS[0], files.tools,
    )  # fmt: skip
    world.llm.token_s = 0.2
    world.play(
        (0.1, typed("write it")), (0.2, CreateResponse()), (6.0, typed("a story")), (6.1, CreateResponse()),
        (10.0, ("yes please", 0.6)), until=16,
    )  # fmt: skip
    assert files.written == [] and said(world)[-1].startswith("You said yes please")


def test_a_question_that_was_taken_back_and_an_unknown_approval_run_nothing() -> None:
    files = Files(ask=True)
    world = world_of(files)
    world.play(
        (0.1, typed("write it")), (0.2, CreateResponse()), (6.0, Undo()), (6.1, AnswerCall("mcpr_x", True)),
        (6.2, typed("Yes.")), (6.3, CreateResponse()),
    )  # fmt: skip
    assert files.written == []
    assert [error.code for error in world.of(Error)] == ["item_not_found"]


def test_a_candidate_reads_and_neither_writes_nor_asks_nor_takes_a_yes() -> None:
    """The user pauses and goes on: what was begun in private leaves no trace at the server."""
    files = Files()
    world = world_of(files)
    world.play((0.5, ("write it", 0.6)), (1.5, ("never mind", 0.6)), until=8)
    assert files.prompts[0].lines[-1].text == "write it", "a candidate began"
    assert files.written == [] and world.of(ToolBegun) == [] and said(world) == ["You said write it never mind."]
    files = Files(ask=True)
    world = world_of(files)
    world.play(
        (0.1, typed("write it")), (0.2, CreateResponse()), (6.0, ("yes", 0.6)), (7.0, ("please wait", 0.6)), until=14
    )
    assert files.prompts[1].lines[-1].text == "yes" or len(files.prompts) == 2
    assert files.written == [] and said(world)[1:] == ["You said yes please wait."]


def test_a_client_gets_its_servers_calls_as_items_and_approves_them() -> None:
    """What it did not allow it does not get, and what `require_approval` says holds."""
    files = Files()
    ask = ServerAsk("files", "my files", never=ToolFilter(reads=True))
    world = world_of(files, servers=(ask,), built_in_tools=False)
    world.on_event = lambda session, event: (
        [AnswerCall(event.item.id, True)]
        if isinstance(event, OutputItemDone) and isinstance(event.item, McpApprovalRequest) else []
    )
    world.play(
        (0.1, typed("read it")), (0.2, CreateResponse()), (6, typed("write it")), (6.1, CreateResponse()),
        (12, CreateResponse()),
    )  # fmt: skip
    assert files.read == 1 and files.written == ["a.txt"]
    calls = [event.item for event in world.of(OutputItemDone) if isinstance(event.item, McpCall)]
    assert [(call.server, call.name, call.output, call.failed) for call in calls] == [
        ("my files", "read_file", "read a.txt", False), ("my files", "write_file", "wrote a.txt", False),
    ]  # fmt: skip
    [request] = [event.item for event in world.of(OutputItemAdded) if isinstance(event.item, McpApprovalRequest)]
    assert calls[1].approval_id == request.id
    for done in world.of(ResponseDone):
        assert len({item.id for item in done.response.output}) == len(done.response.output)


def test_a_client_leaves_tools_out() -> None:
    files = Files()
    world = world_of(files, servers=(ServerAsk("files", "f", allowed=ToolFilter(("read_file",))),))
    world.play((0.1, typed("hello")), (0.2, CreateResponse()))
    assert [tool.name for tool in files.prompts[-1].tools] == ["read_file"]


def test_a_client_means_a_tool_by_its_name_at_its_server() -> None:
    """A server `git` has a tool `git_status`, and ours has the server's name in front if it is taken."""
    tools = [
        Tool(ToolSpec(name), print, reads=True, server="git", there=there)
        for name, there in (("git_status", "git_status"), ("git_log", "log"), ("git_show", "git_show"))
    ]
    ask = ServerAsk("git", "g", ToolFilter(("git_status", "log")), never=ToolFilter(("git_status",)))
    found = [one for tool in tools for one in as_asked(tool, ask)]
    assert [(one.spec.name, one.ask) for one in found] == [("git_status", False), ("git_log", True)]


def test_words_that_agree_and_the_question() -> None:
    assert agrees("Yes, please!", ENGLISH) and agrees("Okay.", ENGLISH) and agrees("that's fine", ENGLISH)
    assert not agrees("yes but later", ENGLISH) and not agrees("", ENGLISH) and not agrees("yes", None)
    assert question("files", "write-file", '{"a": "x", "b": ["y"], "c": "' + "z" * 99 + '"}') == (
        "Shall I use files: write file, with x?"
    )
    assert question("f", "g", "{") == "Shall I use f: g?"
