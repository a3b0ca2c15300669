"""MCP servers: the ones whose tools the assistant uses, and the assistant itself as one.

  assistant mcp ls                       start the servers of mcp.json, list their tools, and what is wrong with which
  assistant mcp try SERVER TOOL          call a tool without arguments
  assistant mcp try SERVER TOOL '{"timezone": "Europe/Berlin"}'
  assistant mcp serve                    offer speaking, listening and asking to another program, over stdin and stdout

mcp.json lies in $ASSISTANT_HOME and looks as desktop clients have it:

  {"mcpServers": {"time": {"command": "python", "args": ["-m", "mcp_server_time"], "confirm": true}}}

`mcp serve` uses the models of a server that runs (`assistant serve`), and this machine's microphone and loudspeaker.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError
from assistant.commands._server import add_server_arguments, running_server

if TYPE_CHECKING:
    from assistant.app.config import Config
    from assistant.tools.mcp.servers import McpServers
    from assistant.tools.registry import Tool

NAME = "mcp"
USAGE = "ACTION [OPTIONS]"
HELP = "list and try the tools of MCP servers, or be one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", prog="assistant mcp")
    actions.add_parser("ls", aliases=["list"], help="start the servers of mcp.json and list their tools")
    attempt = actions.add_parser("try", help="call a tool")
    attempt.add_argument("server", metavar="SERVER", help="the server's name in mcp.json")
    attempt.add_argument("tool", metavar="TOOL", help="the tool, as `assistant mcp ls` lists it")
    attempt.add_argument("arguments", nargs="?", default="{}", metavar="JSON", help="its arguments as a JSON object")
    serve = actions.add_parser("serve", help="offer speaking, listening and asking to another program")
    add_server_arguments(serve)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    config = load_config()
    if args.action == "serve":
        from assistant.commands._spoken import serve

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread waits for a line of the pipe, and nothing else ends it
        return asyncio.run(serve(running_server(args, config)))
    return asyncio.run(_with_servers(config, args))


async def _with_servers(config: Config, args: argparse.Namespace) -> int:
    from assistant.tools.builtin import builtin_names
    from assistant.tools.mcp.servers import McpServers
    from assistant.tools.own import load_own_tools

    names = builtin_names()
    own = load_own_tools(config.home, names)
    (config.home / "logs").mkdir(parents=True, exist_ok=True)
    servers = McpServers.of_home(config.home, (*names, *(tool.spec.name for tool in own.tools)))
    try:
        await servers.start()
        if not servers.names and not servers.problems:
            print(f"there is no mcp.json in {config.home}; `assistant mcp --help` shows what it looks like")
            return 1 if args.action == "try" else 0
        if args.action == "try":
            return await call(servers, args.server, args.tool, args.arguments)
        print_list(servers)
        return 1 if servers.problems else 0
    finally:
        await servers.stop()


def print_list(servers: McpServers) -> None:
    for name in servers.names:
        tools = [tool for tool in servers.tools if tool.server == name]
        print(f"{name}: {len(tools)} tools")
        for tool in tools:
            print(f"  {tool.spec.name:<28} {_kind(tool):<14} {tool.spec.description[:70]}")
    for line in dict.fromkeys(servers.problems):  # a missing package is the same for all of them
        print(line)


def _kind(tool: Tool) -> str:
    return "reads" if tool.reads else "asks first" if tool.ask else "changes"


async def call(servers: McpServers, server: str, name: str, arguments: str) -> int:
    """Raises AssistantError for a server or a tool that is not there."""
    from assistant.tools.registry import ToolRegistry

    if server not in servers.names:
        known = ", ".join(servers.names) or "none"
        raise AssistantError(f"mcp.json has no server {server!r}; known: {known}")
    tools = [tool for tool in servers.tools if tool.server == server]
    wanted: Sequence[Tool] = [tool for tool in tools if tool.spec.name == name]
    if not wanted:
        told = ", ".join(tool.spec.name for tool in tools) or "; ".join(servers.problems)
        raise AssistantError(f"{server} has no tool {name!r}: {told}")
    result = await ToolRegistry(wanted).call(name, arguments)
    print(result.text)
    return 1 if result.failed else 0
