"""One MCP server: started or connected to, asked for its tools, called, and started again once if it dies. If it says
that its tools have changed, it is asked for them again.

A connection lives in a task of its own, because the `mcp` package opens and closes one in the same task. Calls of
several talks share it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from assistant.base.errors import ToolError
from assistant.base.extras import adding
from assistant.tools.errors import AnswerError
from assistant.tools.mcp.answers import shortened, words_of
from assistant.tools.mcp.offered import offered
from assistant.tools.mcp.written import ServerPlan
from assistant.tools.registry import FAILED, Tool

if TYPE_CHECKING:
    from mcp import Client

START_S = 20.0
"""Until a server has answered with its tools; the first start of one may fetch packages."""
STOP_S = 6.0
ENDS_S = 0.5
"""A program has this long to end by itself, and again until it is killed. With the package's two seconds each, one that
hangs outlived us: a Ctrl-C ends this process after less."""
SETTLES_S = 0.5
"""A server that reports a change is asked for its tools this much later: it may change several, and one that reports a
change whenever it is asked would keep us busy without an end."""
LISTEN_AGAIN_S = 20.0
MISSING = f"MCP servers need the package mcp; run `{adding('mcp')}`, and start again"
MOST_PAGES = 20
SESSION = "mcp-session-id"
FORGOTTEN = (400, 404)
"""The protocol wants 404 for a session that has ended; its own `server-everything` answers 400."""
log = logging.getLogger(__name__)


class _Asked(Protocol):
    """A request over HTTP."""

    @property
    def method(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


class _Answered(Protocol):
    """An answer over HTTP."""

    @property
    def status_code(self) -> int: ...

    @property
    def request(self) -> _Asked: ...


class McpServer:
    """`logs`: the folder for what the server writes beside its answers; None: nowhere."""

    def __init__(self, plan: ServerPlan, logs: Path | None = None) -> None:
        self.plan = plan
        self.tools: tuple[Tool, ...] = ()
        self.problems: tuple[str, ...] = ()
        """Sentences about tools that are left out."""
        self._logs = logs
        self._client: Client | None = None
        self._life: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._changed = False
        """Whether the tools have changed since they were asked for."""
        self._status = 0
        """The last answer's, over HTTP."""
        self._forgotten = False
        """Whether the last call was refused because its session is not known there, as after a restart."""
        self._over = asyncio.Event()
        self._again = False
        """Whether it was started again."""
        self._restarting: asyncio.Task[Client] | None = None

    @property
    def refuses(self) -> bool:
        """Whether it does not let us in. Some lock out anybody who tries again and again."""
        return self._status in (401, 403)

    async def start(self) -> Client:
        """Connect and list the tools. Raises ToolError with a sentence."""
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._life = asyncio.create_task(self._live(ready, self._over))
        try:
            async with asyncio.timeout(START_S):
                client = await asyncio.shield(ready)
                await self._list(client)
        except TimeoutError:
            await self._close()
            raise ToolError(f"the MCP server {self.plan.name!r} did not answer within {START_S:g} s") from None
        except (Exception, asyncio.CancelledError) as error:
            await self._close()
            if isinstance(error, asyncio.CancelledError | ToolError):
                raise
            at = "" if not self.plan.url else f" at {urlsplit(self.plan.url).netloc.rpartition('@')[2]}"
            told = f"the MCP server {self.plan.name!r}{at} cannot be used: {reason(error)}{self._last_words()}"
            raise ToolError(told) from error
        self._client = client
        return client

    async def stop(self) -> None:
        """Close the connection and end the program behind it."""
        if self._restarting is not None:
            self._restarting.cancel()
            await asyncio.wait([self._restarting])
        await self._close()

    async def _close(self) -> None:
        self._client = None
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        life, self._life = self._life, None
        if life is None:
            return
        self._over.set()
        with suppress(Exception):
            await asyncio.wait([life], timeout=STOP_S)
        life.cancel()
        await asyncio.wait([life])

    async def _live(self, ready: asyncio.Future[Client], over: asyncio.Event) -> None:
        try:
            async with self._connected() as client:
                ready.set_result(client)
                listening = asyncio.create_task(self._listen(client))
                try:
                    await over.wait()
                finally:
                    listening.cancel()
                    await asyncio.wait([listening])
        except Exception as error:  # the end of a task: a server may fail in every way
            if ready.done():
                log.info("the connection to the MCP server %s ended: %s", self.plan.name, reason(error))
            else:
                ready.set_exception(error)
                ready.exception()  # it was seen, even if nobody waits any more

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        try:
            from mcp import Client, StdioServerParameters
            from mcp.client import stdio
            from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
        except ImportError as error:
            raise ToolError(MISSING) from error
        plan = self.plan
        if plan.cwd and not Path(plan.cwd).is_dir():
            raise ToolError(f"the MCP server {plan.name!r} cannot be used: its cwd {plan.cwd!r} is not a folder")
        async with AsyncExitStack() as stack:
            if plan.url:
                http = await stack.enter_async_context(create_mcp_http_client(headers=dict(plan.headers)))
                http.event_hooks["response"].append(self._answered)  # the package's error does not say it
                transport = streamable_http_client(plan.url, http_client=http)
            else:
                errors = stack.enter_context(self._log_file().open("w", encoding="utf-8"))
                program = StdioServerParameters(
                    command=plan.command, args=list(plan.args), env=dict(plan.env), cwd=plan.cwd,
                    encoding_error_handler="replace",
                )  # fmt: skip
                stdio.PROCESS_TERMINATION_TIMEOUT = stdio.FORCE_KILL_TIMEOUT = ENDS_S
                transport = stdio.stdio_client(program, errors)
            yield await stack.enter_async_context(Client(transport, message_handler=self._heard))

    async def _answered(self, response: _Answered) -> None:
        if response.request.method == "POST":  # the others wait for news, and are refused where there is none
            self._status = response.status_code
            self._forgotten = response.status_code in FORGOTTEN and SESSION in response.request.headers

    async def _heard(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification) and self._client is not None:
            self._list_soon(self._client)

    async def _listen(self, client: Client) -> None:
        """Newer servers say only to those who listen that their tools have changed; `_heard` hears the others."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        with suppress(ListenNotSupportedError, MCPError):
            while True:
                with suppress(SubscriptionLost):  # a proxy may cut what is silent for a minute
                    async with client.listen(tools_list_changed=True) as changes:
                        async for _ in changes:
                            self._list_soon(client)
                await asyncio.sleep(LISTEN_AGAIN_S)
                self._list_soon(client)  # changes meanwhile were not reported

    def _list_soon(self, client: Client) -> None:
        self._changed = True
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._list_again(client))

    async def _list_again(self, client: Client) -> None:
        """Talks that begin from now on have the new tools."""
        try:
            while self._changed:
                await asyncio.sleep(SETTLES_S)
                self._changed = False
                await self._list(client)
        except Exception as error:  # the end of a task: the old list holds
            log.warning("the MCP server %s does not list its tools again: %s", self.plan.name, reason(error))

    def _last_words(self) -> str:
        """Mostly why it failed: the last line that the program wrote beside its answers, or the status over HTTP."""
        if self.plan.url:
            return f"; it answered {self._status}" if self._status >= 400 else ""
        with suppress(OSError):
            lines = self._log_file().read_text("utf-8", "replace").split("\n")
            said = [line.strip() for line in lines if line.strip()]
            return f"; it wrote: {said[-1][:200]}" if said else ""
        return ""

    def _log_file(self) -> Path:
        if self._logs is None:
            return Path("/dev/null")
        return self._logs / f"mcp.{''.join(c if c.isalnum() else '_' for c in self.plan.name)}.log"

    async def _list(self, client: Client) -> None:
        listed, cursor = [], None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        self.tools, self.problems = offered(self.plan, listed, self.ask)

    # ------------------------------------------------------------------------------------- calls

    async def ask(self, name: str, values: Mapping[str, object], reads: bool) -> str:
        """Call a tool. It is called once more if the server did not know its session any more, and if the server died
        over one that only reads. Raises AnswerError."""
        client = await self._alive()
        try:
            return await self._asked(client, name, values)
        except Exception as error:
            forgotten = isinstance(error, _SessionForgotten)
            if not forgotten and not _is_end(error):
                raise
            if self._client is client:
                await self._close()
            unknown = "" if reads or forgotten else "; whether the call was done is not known"
            try:
                again = await self._alive()
            except AnswerError as gone:
                raise AnswerError(f"{gone}{unknown}", gone.say) from error
            if unknown:
                told = f"the MCP server {self.plan.name!r} ended during the call{unknown}"
                raise AnswerError(told, FAILED) from error
        return await self._asked(again, name, values)

    async def _asked(self, client: Client, name: str, values: Mapping[str, object]) -> str:
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        try:
            result = await client.call_tool(name, dict(values))
        except MCPError as error:
            if error.error.code == CONNECTION_CLOSED:
                raise
            told = f"{self.plan.name} refused the call: {shortened(error.error.message)}"
            if self.plan.url:
                told += self._last_words()
            raise (_SessionForgotten if self._forgotten else AnswerError)(told, FAILED) from error
        if result.is_error:
            raise AnswerError(words_of(result, "it failed and gave no reason"), FAILED)
        return words_of(result)

    async def _alive(self) -> Client:
        """The connection; a program that died is started again, once, and an address is tried again whenever it is
        needed, because others start what is there. An interruption or a timeout of the call does not stop the start.
        Raises AnswerError."""
        if self._client is not None and self._life is not None and not self._life.done():
            return self._client
        if self._restarting is None or self._restarting.done():
            self._restarting = asyncio.create_task(self._start_again())
        return await asyncio.shield(self._restarting)

    async def _start_again(self) -> Client:
        if self._again and not self.plan.url:
            raise AnswerError(
                f"the MCP server {self.plan.name!r} ended twice and is not used any more; see what it wrote in "
                f"{self._log_file()}, and start the assistant again",
                f"Sorry, {self.plan.name} does not work any more.",
            )
        self._again = True
        log.warning("the MCP server %s ended; it is started or connected to again", self.plan.name)
        await self._close()
        try:
            return await self.start()
        except ToolError as error:
            says = "cannot be reached now" if self.plan.url else "does not work any more"
            raise AnswerError(str(error), f"Sorry, {self.plan.name} {says}.") from error


class _SessionForgotten(AnswerError):
    """The call did not begin: the server does not know its session."""


def reason(error: BaseException) -> str:
    """The first cause in a group of errors, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"there is no program {error.filename!r}"
    if isinstance(error, ValueError) and type(error).__name__ == "ValidationError":  # of many lines
        words = str(error).splitlines()
        return f"its answer has a wrong shape ({': '.join(line.strip() for line in words[1:3])})"
    return f"{error}" or type(error).__name__


def _is_end(error: BaseException) -> bool:
    """Whether the connection is gone; anything else is about the call."""
    from anyio import BrokenResourceError, ClosedResourceError
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    if isinstance(error, MCPError):
        return bool(error.error.code == CONNECTION_CLOSED)
    return isinstance(error, BrokenResourceError | ClosedResourceError | OSError)
