"""The stock `openai` client asks for an MCP server of ours: its tools are listed, called and approved."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from assistant.contracts import Prompt
from assistant.tools.mcp.servers import McpServers
from assistant.tools.registry import ToolRegistry
from tests.fakes.models import Answer
from tests.fakes.talk import World
from tests.fakes.web import Site, serving
from tests.system.test_stock_sdk import collect, stock

pytest.importorskip("mcp", reason="no mcp here; `make test` installs it")
SERVER = Path(__file__).parents[1] / "fakes" / "mcp_server.py"
ALLOWED = "http://127.0.0.1:9/mcp"


def answers(prompt: Prompt) -> list[Answer]:
    last = prompt.lines[-1]
    names = [tool.name for tool in prompt.tools]
    if last.role == "tool":
        return [f"So {last.text}."]
    return [(last.text, {"text": "a star"})] if last.text in names else [f"I have {', '.join(names)}."]


def run(home: Path, story: Callable[[Site], Awaitable[None]]) -> None:
    home.chmod(0o755)
    (home / "logs").mkdir()
    done = {"command": sys.executable, "args": [str(SERVER), str(home / "done.txt")]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"papers": done}, "allow": [ALLOWED]}))
    (home / "mcp.json").chmod(0o600)

    async def whole() -> None:
        servers = McpServers.of_home(home)
        await servers.start()
        try:
            world = World(answers, tools=lambda: ToolRegistry(servers.tools), servers=servers, speed=100.0)
            async with serving(world) as site:
                await asyncio.wait_for(story(site), 60)
        finally:
            await servers.stop()

    asyncio.run(whole())


async def ask(connection: Any, text: str) -> list[Any]:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    await connection.conversation.item.create(item=item)
    await connection.response.create(response={"output_modalities": ["text"]})
    return await collect(connection)


def test_listed_called_and_approved(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="gpt-realtime") as connection:
            server = {
                "type": "mcp", "server_label": "papers", "allowed_tools": ["look", "put", "fail"],
                "require_approval": {"never": {"tool_names": ["look", "fail"]}},
            }  # fmt: skip
            await connection.session.update(session={"type": "realtime", "tools": [server]})
            listed = await collect(connection, "conversation.item.done")
            session = next(event for event in listed if event.type == "session.updated").session
            assert session.tools[0].server_label == "papers"
            assert [event.type for event in listed][-4:] == [
                "conversation.item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed",
                "conversation.item.done",
            ]  # fmt: skip
            assert [tool.name for tool in listed[-1].item.tools] == ["look", "put", "fail"]

            events = await ask(connection, "look")
            order = [event.type for event in events if "mcp" in event.type]
            assert order == ["response.mcp_call_arguments.done", "response.mcp_call.in_progress",
                             "response.mcp_call.completed"]  # fmt: skip
            call, message = events[-1].response.output
            assert (call.type, call.server_label, call.output) == ("mcp_call", "papers", "seen a star")
            assert message.content[0].text == "So seen a star."

            failed = (await ask(connection, "fail"))[-1].response.output[0]
            assert failed.error.type == "tool_execution_error" and "out of paper" in failed.error.message

            request, question = (await ask(connection, "put"))[-1].response.output
            assert request.type == "mcp_approval_request" and json.loads(request.arguments) == {"text": "a star"}
            assert question.content[0].text == "Shall I use papers: put, with a star?"
            done = tmp_path / "done.txt"
            assert done.read_text() == "start\n"
            await connection.conversation.item.create(
                item={"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True, "id": "a1"}
            )
            await connection.response.create(response={"output_modalities": ["text"]})
            call = (await collect(connection))[-1].response.output[0]
            assert call.approval_request_id == request.id and call.output == "done"
            assert done.read_text() == "start\nput a star\n"

    run(tmp_path, story)


@pytest.mark.parametrize(
    ("server", "param"),
    [
        ({"server_label": "unknown"}, "session.tools[0].server_label"),
        ({"server_label": "papers", "server_url": "http://127.0.0.1:10/mcp"}, "session.tools[0].server_url"),
        ({"server_label": "papers", "headers": {"a": "b"}}, "session.tools[0].headers"),
        ({"server_label": "papers", "require_approval": "perhaps"}, "session.tools[0].require_approval"),
    ],
)
def test_other_servers_and_headers_are_refused(tmp_path: Path, server: dict[str, Any], param: str) -> None:
    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="gpt-realtime") as connection:
            await connection.session.update(session={"type": "realtime", "tools": [{"type": "mcp", **server}]})
            assert (await collect(connection, "error"))[-1].error.param == param

    run(tmp_path, story)


def test_an_allowed_address_that_does_not_answer_is_a_failed_list(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="gpt-realtime") as connection:
            server = {"type": "mcp", "server_label": "mine", "server_url": ALLOWED}
            await connection.session.update(session={"type": "realtime", "tools": [server]})
            events = await collect(connection, "conversation.item.done")
            assert "mcp_list_tools.failed" in [event.type for event in events]
            assert "I have " in (await ask(connection, "hello"))[-1].response.output[0].content[0].text

    run(tmp_path, story)
