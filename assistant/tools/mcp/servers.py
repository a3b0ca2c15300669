"""All MCP servers of a home: started together, asked by every talk, stopped at the end."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from assistant.base.errors import ToolError
from assistant.tools.mcp.offered import named_apart
from assistant.tools.mcp.server import McpServer
from assistant.tools.mcp.written import McpFile, ServerPlan, read_mcp_file
from assistant.tools.registry import Tool

AGAIN_S = 20.0
log = logging.getLogger(__name__)


class McpServers:
    """`problems`: sentences for the person at the terminal."""

    def __init__(self, file: McpFile, logs: Path | None = None, taken: Collection[str] = ()) -> None:
        self.problems: list[str] = list(file.problems)
        self._file, self._logs, self._taken = file, logs, taken
        self._servers = {plan.name: McpServer(plan, logs) for plan in file.plans}
        self._usable: set[str] = set()
        self._starting: dict[str, None] = {}
        self._up = asyncio.Event()
        """Set, and another one put in its place, whenever one of those is ready or given up."""
        self._asked_for: dict[str, McpServer] = {}
        self._connecting: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By address: several talks may ask for one at the same time."""
        self._waiting: list[asyncio.Task[None]] = []
        """For addresses at which nothing was yet."""

    @classmethod
    def of_home(cls, home: Path, taken: Collection[str] = ()) -> McpServers:
        return cls(read_mcp_file(home), home / "logs", taken)

    @property
    def names(self) -> tuple[str, ...]:
        """The servers that the file names, whether or not they work."""
        return tuple(self._servers)

    @property
    def starting(self) -> tuple[str, ...]:
        """The servers that are not yet ready."""
        return tuple(self._starting)

    async def one_is_up(self) -> None:
        """Return once one of those is ready, or given up."""
        await self._up.wait()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Those that a talk has which begins now."""
        usable = (server for name, server in self._servers.items() if name in self._usable)
        return named_apart((tool for server in usable for tool in server.tools), self._taken)

    async def start(self) -> None:
        """Start them all at once; one that does not work becomes a problem, and the others go on."""
        self._starting = dict.fromkeys(self._servers)
        if self._servers:  # it takes a second, in which the loop has better things to do
            with suppress(ImportError):
                await asyncio.to_thread(import_module, "mcp")
            logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it prints a traceback for any line of a server
        outcomes = await asyncio.gather(*map(self._start, self._servers.values()))
        self.problems += [line for lines in outcomes for line in lines]

    async def _start(self, server: McpServer) -> list[str]:
        try:
            await server.start()
            self._usable.add(server.plan.name)
            return list(server.problems)
        except ToolError as error:
            if server.plan.url and not server.refuses:
                self._waiting.append(asyncio.create_task(self._start_later(server)))
            return [str(error)]
        finally:
            del self._starting[server.plan.name]
            self._up.set()
            self._up = asyncio.Event()

    async def _start_later(self, server: McpServer) -> None:
        """Try an address again until something is there: the machine or the house may have started with us."""
        while server.plan.name not in self._usable and not server.refuses:
            await asyncio.sleep(AGAIN_S)
            with suppress(ToolError):
                await server.start()
                self._usable.add(server.plan.name)
                log.warning("the MCP server %s is there now", server.plan.name)

    async def stop(self) -> None:
        for waiting in self._waiting:
            waiting.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in (*self._servers.values(), *self._asked_for.values())))

    # --------------------------------------------------------------------- asked for by a client

    def named(self, label: str, url: str | None) -> str | None:
        """The server that a client means: one of the file by its name or address, or an address that its owner allowed.
        None: neither."""
        if url is None:
            return label if label in self._servers else None
        for name, server in self._servers.items():
            if server.plan.url == url:
                return name
        return url if url in self._file.allowed else None

    async def tools_of(self, name: str) -> tuple[Tool, ...]:
        """The tools of a server that `named` returned, once it is ready; an allowed one is connected to now. Raises
        ToolError."""
        if name in self._servers:
            while name in self._starting:
                await self.one_is_up()
            if name not in self._usable:
                raise ToolError(f"the MCP server {name!r} does not work; `assistant mcp ls` says why")
            return tuple(tool for tool in self.tools if tool.server == name)
        async with self._connecting[name]:
            if (server := self._asked_for.get(name)) is None:
                server = McpServer(ServerPlan(name, url=name), self._logs)
                await server.start()
                self._asked_for[name] = server
        return named_apart(server.tools, (*self._taken, *(tool.spec.name for tool in self.tools)))
