"""Servers that others wrote, over a pipe and over HTTP: their tools run, and their errors are words."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from assistant.tools.mcp.servers import McpServers
from assistant.tools.registry import ToolRegistry

pytest.importorskip("mcp", reason="no mcp here; `make test` installs it")
pytestmark = pytest.mark.slow
PATIENCE_S = 120.0
Story: TypeAlias = Callable[[ToolRegistry, McpServers], Awaitable[None]]


def run(home: Path, servers: dict[str, object], story: Story) -> None:
    home.chmod(0o755)
    (home / "logs").mkdir()
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (home / "mcp.json").chmod(0o600)

    async def whole() -> None:
        found = McpServers.of_home(home)
        await found.start()
        try:
            assert not found.problems
            await asyncio.wait_for(story(ToolRegistry(found.tools), found), PATIENCE_S)
        finally:
            await found.stop()

    asyncio.run(whole())


async def said(registry: ToolRegistry, name: str, **arguments: object) -> str:
    return (await registry.call(name, json.dumps(arguments))).text


def test_time_and_git(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    env = {**os.environ, "GIT_AUTHOR_NAME": "A", "GIT_COMMITTER_NAME": "A", "EMAIL": "a@example.org"}
    repository.mkdir()
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "The first"]):
        subprocess.run(["git", *command], check=True, env=env, cwd=repository)
    servers = {
        "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"], "timeout": 60},
        "git": {"command": sys.executable, "args": ["-m", "mcp_server_git", "--repository", str(repository)],
                "timeout": 60},
    }  # fmt: skip

    async def story(registry: ToolRegistry, found: McpServers) -> None:
        reading = {tool.spec.name for tool in registry if tool.reads}
        assert {"get_current_time", "git_log", "git_status"} <= reading and "git_commit" not in reading
        assert "Europe/Berlin" in await said(registry, "get_current_time", timezone="Europe/Berlin")
        error = json.loads(await said(registry, "get_current_time", timezone="Mars/Olympus"))["error"]
        assert "Invalid timezone" in error
        assert "The first" in await said(registry, "git_log", repo_path=str(repository), max_count=1)

    run(tmp_path, servers, story)


@pytest.mark.skipif(
    not (shutil.which("mcp-server-everything") and shutil.which("mcp-server-filesystem")),
    reason="needs `npm install -g @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem`",
)
def test_everything_and_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    servers = {
        "everything": {"command": "mcp-server-everything", "timeout": 60},
        "files": {"command": "mcp-server-filesystem", "args": [str(folder)], "timeout": 60},
    }

    async def story(registry: ToolRegistry, found: McpServers) -> None:
        assert await said(registry, "echo", message="hello") == "Echo: hello"
        assert "a picture, image/png" in await said(registry, "get-tiny-image")
        assert "temperature" in await said(registry, "get-structured-content", location="New York")
        assert "[" in await said(registry, "get-resource-links", count=2)
        assert "Long running operation" in await said(registry, "trigger-long-running-operation", duration=1, steps=2)
        written = await said(registry, "write_file", path=str(folder / "a.txt"), content="hi")
        assert "Successfully" in written and (folder / "a.txt").read_text() == "hi"
        denied = json.loads(await said(registry, "read_text_file", path="/etc/hostname"))["error"]
        assert "Access denied" in denied

    run(tmp_path, servers, story)


HOUSE = """
import sys
from mcp.server.mcpserver import Context, MCPServer

house = MCPServer("house", log_level="ERROR")

@house.tool()
def switch(device: str) -> str:
    "Switch a device."
    return f"{device} is on"

def dim(device: str) -> str:
    "Dim a device."
    return f"{device} is dim"

@house.tool()
async def learn(context: Context) -> str:
    "Learn another tool."
    house.add_tool(dim)
    await context.notify_tools_changed()
    return "learned"

if len(sys.argv) > 1:
    house.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    house.run("stdio")
"""


def test_a_server_that_speaks_the_newest_protocol_changes_its_tools(tmp_path: Path) -> None:
    """It says so only to those who listen."""

    async def story(registry: ToolRegistry, found: McpServers) -> None:
        assert await said(registry, "learn") == "learned"
        while "dim" not in {tool.spec.name for tool in found.tools}:
            await asyncio.sleep(0)
        assert await said(ToolRegistry(found.tools), "dim", device="the lamp") == "the lamp is dim"

    run(tmp_path, {"house": {"command": sys.executable, "args": ["-c", HOUSE], "timeout": 60}}, story)


def test_a_server_over_http_is_used_again_whenever_it_is_there(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        running.append(subprocess.Popen([sys.executable, "-c", HOUSE, str(port)]))
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                assert running[-1].poll() is None

    async def story(registry: ToolRegistry, found: McpServers) -> None:
        assert await said(registry, "switch", device="the lamp") == "the lamp is on"
        running[-1].kill()
        running[-1].wait()
        for _ in range(2):
            gone = await registry.call("switch", '{"device": "the lamp"}')
            assert f"'house' at 127.0.0.1:{port} cannot be used" in gone.text
            assert gone.say == "Sorry, house cannot be reached now."
        await asyncio.to_thread(start)
        assert await said(registry, "switch", device="the lamp") == "the lamp is on"

    try:
        start()
        run(tmp_path, {"house": {"url": f"http://127.0.0.1:{port}/mcp", "timeout": 60}}, story)
    finally:
        for house in running:
            house.kill()
            house.wait()
