"""MCP servers of `mcp.json`: their tools run beside one's own, and one that misbehaves harms nobody else."""

import asyncio
import json
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from assistant.commands._run import STOP_SECONDS
from assistant.tools.mcp import servers as servers_module
from assistant.tools.mcp.answers import LONGEST
from assistant.tools.mcp.offered import named_apart, offered
from assistant.tools.mcp.server import LISTEN_AGAIN_S, McpServer
from assistant.tools.mcp.servers import McpServers
from assistant.tools.mcp.written import ServerPlan, read_mcp_file
from assistant.tools.registry import ToolRegistry
from tests.fakes import mcp_server
from tests.fakes.loop import run as run_in_virtual_time

pytest.importorskip("mcp", reason="no mcp here; `make test` installs it")
from mcp import types
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

SERVER = Path(__file__).parents[1] / "fakes" / "mcp_server.py"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    (tmp_path / "logs").mkdir()
    return tmp_path


def fake(home: Path, *more: str, **fields: object) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(SERVER), str(home / "done.txt"), *more], **fields}


def write(home: Path, servers: dict[str, object], **more: object) -> None:
    path = home / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers, **more}))
    path.chmod(0o600)


def run(home: Path, story: Callable[[McpServers, ToolRegistry], Awaitable[None]], taken: tuple[str, ...] = ()) -> None:
    async def whole() -> None:
        servers = McpServers.of_home(home, taken)
        await servers.start()
        try:
            await asyncio.wait_for(story(servers, ToolRegistry(servers.tools)), 60)
        finally:
            await servers.stop()

    asyncio.run(whole())


async def said(registry: ToolRegistry, name: str, **arguments: object) -> str:
    return (await registry.call(name, json.dumps(arguments))).text


async def wrong(registry: ToolRegistry, name: str, **arguments: object) -> str:
    result = await registry.call(name, json.dumps(arguments))
    assert result.say, "a failure is a sentence for the person too"
    error: str = json.loads(result.text)["error"]
    return error


def test_tools_appear_and_run(home: Path) -> None:
    write(home, {"papers": fake(home), "twin": fake(home, tools=["look", "nothing"], confirm=True)})

    async def story(servers: McpServers, registry: ToolRegistry) -> None:
        tools = {tool.spec.name: tool for tool in servers.tools}
        assert [*tools] == ["papers_look", "put", "hang", "die", "die_reading", "flood", "fail", "odd_name_",
                            "twin_look"]  # fmt: skip
        look = tools["papers_look"]
        assert look.reads and look.spec.description == "Look something up." and look.spec.parameters["required"]
        assert not tools["put"].reads and not tools["put"].ask
        assert await said(registry, "papers_look", text="a star") == "seen a star"
        assert await said(registry, "twin_look", text="a moon") == "seen a moon"
        assert await said(registry, "odd_name_") == "done"
        assert await wrong(registry, "papers_look") == "papers_look: 'text' is a required property"
        assert "text: 5 is not of type 'string'" in await wrong(registry, "papers_look", text=5)
        assert await wrong(registry, "fail") == "out of paper"
        assert await said(registry, "put", text="a new tool") == "done"
        while "brand_new" not in {tool.spec.name for tool in servers.tools}:  # the server said that its list changed
            await asyncio.sleep(0)
        assert await said(ToolRegistry(servers.tools), "brand_new") == "done"
        for number in range(30):  # the list changes again whenever it is asked for, which keeps nobody busy
            assert await said(registry, "papers_look", text=str(number)) == f"seen {number}"
        assert (home / "done.txt").read_text().count("list") < 10
        left_out = "\n".join(servers.problems)
        for name in ("bad_type", "huge"):
            assert f"papers: the tool '{name}' is left out: its " in left_out
        assert "twin: there is no tool 'nothing'; it offers" in left_out

    run(home, story, taken=("look",))


def test_writing_tools_are_asked_about_where_the_file_says_so(home: Path) -> None:
    write(home, {"papers": fake(home, confirm=True)})

    async def story(servers: McpServers, registry: ToolRegistry) -> None:
        assert {tool.spec.name for tool in servers.tools if not tool.ask} == {"look", "hang", "die_reading", "flood"}

    run(home, story)


def test_a_flood_is_cut_and_a_server_that_hangs_is_given_up(home: Path) -> None:
    write(home, {"papers": fake(home, timeout=60), "slow": fake(home, timeout=0.3, tools=["hang"])})

    async def story(servers: McpServers, registry: ToolRegistry) -> None:
        flood = await said(registry, "flood")
        assert flood.endswith("[9,994,000 more characters are left out]") and len(flood) < LONGEST + 100
        assert await wrong(registry, "slow_hang") == "slow_hang did not answer within 0.3 s"
        assert await said(registry, "look", text="on") == "seen on"

    run(home, story)


@pytest.mark.slow
def test_a_server_that_hangs_does_not_outlive_us(home: Path) -> None:
    write(home, {"papers": fake(home)})

    async def whole() -> float:
        servers = McpServers.of_home(home)
        await servers.start()
        hanging = asyncio.create_task(ToolRegistry(servers.tools).call("hang", "{}"))
        await asyncio.sleep(0.1)
        hanging.cancel()
        begin = time.monotonic()
        await servers.stop()
        return time.monotonic() - begin

    assert asyncio.run(asyncio.wait_for(whole(), 60)) < STOP_SECONDS


def test_a_server_that_dies_is_started_again_once_and_then_named(home: Path) -> None:
    write(home, {"papers": fake(home)})

    async def story(servers: McpServers, registry: ToolRegistry) -> None:
        assert await wrong(registry, "die") == (
            "the MCP server 'papers' ended during the call; whether the call was done is not known"
        )
        assert await said(registry, "look", text="again") == "seen again"
        assert "ended twice" in await wrong(registry, "die_reading")
        assert "start the assistant again" in await wrong(registry, "look", text="x")
        assert (home / "done.txt").read_text() == "start\nstart\n"
        assert (home / "logs" / "mcp.papers.log").read_text() == "it died\n"

    run(home, story)


@pytest.mark.parametrize("end", [None, SubscriptionLost()])
def test_a_server_that_ends_the_wait_for_news_again_and_again_keeps_nobody_busy(end: Exception | None) -> None:
    class Hasty:
        """Ends each wait at once, and knows of none behind ten."""

        waits = lists = 0

        @asynccontextmanager
        async def listen(self, tools_list_changed: bool) -> AsyncIterator[AsyncIterator[None]]:
            self.waits += 1
            if self.waits > 10:
                raise ListenNotSupportedError("")
            yield self.changes()

        async def changes(self) -> AsyncIterator[None]:
            for _ in ():
                yield
            if end is not None:
                raise end

        async def list_tools(self, cursor: str | None) -> types.ListToolsResult:
            self.lists += 1
            return types.ListToolsResult(tools=[])

    async def story() -> float:
        await McpServer(ServerPlan("hasty"))._listen(hasty)
        return asyncio.get_running_loop().time()

    hasty: Any = Hasty()
    assert run_in_virtual_time(story()) == 10 * LISTEN_AGAIN_S and hasty.lists == 9  # the tenth is still to come


def test_a_server_that_cannot_start_again_is_named_with_what_it_wrote(home: Path) -> None:
    write(home, {"papers": fake(home, "starts-badly")})

    async def story(servers: McpServers, registry: ToolRegistry) -> None:
        error = await wrong(registry, "die")
        told = "; it wrote: no second time; whether the call was done is not known"
        assert "'papers' cannot be used" in error and error.endswith(told)

    run(home, story)


def test_an_interruption_does_not_use_up_the_second_start(home: Path) -> None:
    write(home, {"papers": fake(home)})

    async def story(servers: McpServers, registry: ToolRegistry) -> None:
        interrupted = asyncio.create_task(registry.call("die", "{}"))
        while (home / "done.txt").read_text() != "start\nstart\n":
            await asyncio.sleep(0)
        interrupted.cancel()
        await asyncio.wait([interrupted])
        assert interrupted.cancelled() and await said(registry, "look", text="b") == "seen b"
        assert (home / "done.txt").read_text() == "start\nstart\n"

    run(home, story)


class House:
    """A server over HTTP of the kind that gives each connection a session, in this very loop."""

    def __init__(self, home: Path, refuses: int = 404) -> None:
        self._done, self._refuses, self._runner = home / "done.txt", refuses, web.AppRunner(self._app())
        self.sessions: set[str] = set()
        self.asked = 0

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/mcp", self._answer)
        return app

    async def open(self, port: int = 0) -> int:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        asked, session = await request.json(), request.headers.get("mcp-session-id")
        self.asked += 1
        if asked["method"] == "initialize":
            session = f"s{self.asked}"
            self.sessions.add(session)
        elif session not in self.sessions:
            return web.Response(status=self._refuses)
        if "id" not in asked:
            return web.Response(status=202)
        said = {"jsonrpc": "2.0", "id": asked["id"], **mcp_server.answer(asked, self._done)}
        return web.json_response(said, headers={"mcp-session-id": session or ""})


@pytest.mark.parametrize("status", [404, 400])
def test_a_session_that_the_server_forgot_is_opened_again_and_the_call_runs_once(home: Path, status: int) -> None:
    async def whole() -> None:
        house = House(home, status)
        write(home, {"house": {"url": f"http://127.0.0.1:{await house.open()}/mcp"}})
        servers = McpServers.of_home(home)
        await servers.start()
        registry = ToolRegistry(servers.tools)
        assert await said(registry, "put", text="a") == "done"
        for text in ("b", "c"):
            house.sessions.clear()  # it was started again
            assert await said(registry, "put", text=text) == "done"
            house.sessions.clear()
            assert await said(registry, "look", text=text) == f"seen {text}"
        assert (home / "done.txt").read_text() == "put a\nput b\nput c\n"
        await servers.stop()
        await house.close()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_an_allowed_address_is_connected_to_once_for_all_who_ask_at_the_same_time(home: Path) -> None:
    async def whole() -> None:
        house = House(home)
        url = f"http://127.0.0.1:{await house.open()}/mcp"
        write(home, {}, allow=[url])
        servers = McpServers.of_home(home)
        await servers.start()
        leaves = asyncio.create_task(servers.tools_of(url))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.wait([leaves])
        house.sessions.clear()
        found = await asyncio.gather(servers.tools_of(url), servers.tools_of(url))
        assert leaves.cancelled() and [len(tools) for tools in found] == [8, 8] and len(house.sessions) == 1
        await servers.stop()
        await house.close()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_an_address_where_nothing_was_at_the_start_is_used_later(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers_module, "AGAIN_S", 0.05)

    async def whole() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        write(home, {"house": {"url": f"http://127.0.0.1:{port}/mcp"}})
        servers, house = McpServers.of_home(home), House(home)
        await servers.start()
        assert not servers.tools and len(servers.problems) == 1
        await house.open(port)
        while not servers.tools:
            await asyncio.sleep(0.01)
        assert await said(ToolRegistry(servers.tools), "look", text="up") == "seen up"
        await servers.stop()
        await house.close()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_an_address_that_lets_nobody_in_is_not_asked_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers_module, "AGAIN_S", 0.0)

    async def refuse(request: web.Request) -> web.Response:
        asked.append(request.method)
        return web.Response(status=401)

    asked: list[str] = []

    async def whole() -> None:
        app = web.Application()
        app.router.add_post("/mcp", refuse)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        write(home, {"house": {"url": f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"}})
        servers = McpServers.of_home(home)
        await servers.start()
        [problem] = servers.problems
        assert problem.endswith("it answered 401")
        once = len(asked)
        await asyncio.sleep(0.2)
        assert len(asked) == once
        await servers.stop()
        await runner.cleanup()

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_no_tool_is_lost_to_another_of_its_name() -> None:
    """Model servers take few letters, so names of other alphabets become the same."""
    async def ask(name: str, values: object, reads: bool) -> str:
        return name

    listed = [types.Tool(name=name, input_schema={"type": "object"}) for name in ("時間", "日付", "天気", "x" * 80)]
    tools, problems = offered(ServerPlan("家"), listed, ask)
    named = named_apart((*tools, *tools), ("___",))
    names = [tool.spec.name for tool in named]
    assert not problems and len(set(names)) == 8 and all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in names)
    registry = ToolRegistry(named)
    for name, there in zip(names, [tool.name for tool in listed] * 2, strict=True):
        assert asyncio.run(said(registry, name)) == there


def test_servers_that_do_not_start_are_named_and_the_others_go_on(home: Path) -> None:
    write(home, {
        "gone": {"command": "no-such-program"}, "mute": {"command": "true"}, "bad": fake(home, "declares-badly"),
        "papers": fake(home),
    })  # fmt: skip

    async def story(servers: McpServers, registry: ToolRegistry) -> None:
        assert "look" in registry and len(servers.problems) == 5
        assert "the MCP server 'gone' cannot be used: there is no program 'no-such-program'" in servers.problems
        assert any(line.startswith("the MCP server 'mute' cannot be used") for line in servers.problems)
        assert any("'bad' cannot be used: its answer has a wrong shape (tools.10" in line for line in servers.problems)

    run(home, story)


def test_a_server_that_is_slow_to_start_keeps_nobody_waiting(home: Path) -> None:
    """Whoever asks for it by name waits for it."""
    begin = f"exec {sys.executable} {SERVER} {home}/done.txt"
    slow = {"command": "sh", "args": ["-c", f"until [ -e {home}/go ]; do sleep 0.02; done; {begin}"]}
    write(home, {"slow": slow, "papers": fake(home, tools=["look"]), "gone": {"command": "no-such-program"}})

    async def story() -> None:
        servers = McpServers.of_home(home)
        starting = asyncio.create_task(servers.start())
        await asyncio.sleep(0)
        assert servers.starting == ("slow", "papers", "gone") and not servers.tools
        while len(servers.starting) > 1:
            await servers.one_is_up()
        assert servers.starting == ("slow",) and [tool.server for tool in servers.tools] == ["papers"]
        asked = asyncio.create_task(servers.tools_of("slow"))
        await asyncio.sleep(0.1)
        assert not asked.done()
        (home / "go").touch()
        assert {tool.server for tool in await asked} == {"slow"}
        await starting
        assert not servers.starting and len({tool.server for tool in servers.tools}) == 2
        await servers.stop()

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ({}, "it needs either a command or a url"),
        ({"command": "a", "url": "http://127.0.0.1/"}, "it needs either"),
        ({"command": "a", "confrim": True}, "unknown 'confrim'; did you mean 'confirm'?"),
        ({"command": "a", "args": "b"}, "args must be a list of texts"),
        ({"command": "a", "env": {"A": 1}}, "env must be an object of texts"),
        ({"command": "a", "timeout": 0}, "timeout is in seconds"),
        ({"command": "a", "confirm": "yes"}, "confirm must be true or false"),
        ({"command": "a", "disabled": "true"}, "disabled must be true or false"),
        ({"command": "a", "excludedTools": ["b"]}, "name those to use under 'tools'"),
        ({"command": "a", "env": {"KEY": "${env:NOT_SET_ANYWHERE}"}},
         "the variable NOT_SET_ANYWHERE is not set; set it before the start, or write ${NOT_SET_ANYWHERE:-…} with"),
        ({"url": "https://example.org/sse", "type": "sse"}, "streamable HTTP"),
        ({"url": "http://example.org/mcp"}, "needs https"),
        ({"url": "ftp://127.0.0.1/mcp"}, "is not an address"),
        ("time", "it must be an object"),
    ],
)
def test_a_mistake_is_one_sentence_and_the_other_servers_stay(home: Path, server: object, told: str) -> None:
    write(home, {"bad": server, "off": {"disabled": True}, "good": {"url": "https://example.org/mcp", "type": "http"},
                 "own": {"url": "http://192.168.0.9/mcp", "insecure": True}})  # fmt: skip
    file = read_mcp_file(home)
    assert [plan.name for plan in file.plans] == ["good", "own"]
    [problem] = file.problems
    assert "the server 'bad' is left out: " in problem and told in problem


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", '{"mcpServers": []}', '{"servers": {}}', '{"allow": ["http://example.org"]}', "[" * 100_000,
        '{"mcpServers": {"time": {"command": "a"}, "time": {"command": "b"}}}',
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_left_out(home: Path, text: str) -> None:
    (home / "mcp.json").write_text(text)
    (home / "mcp.json").chmod(0o600)
    assert len(read_mcp_file(home).problems) == 1


def test_a_file_shared_with_other_programs_is_used_and_their_keys_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    server = {"command": "a", "autoApprove": ["b"], "args": ["${SECRET}", "$1", "${1}"], "enabled": True}
    text = json.dumps({"mcpServers": {"time": server, "off": {"enabled": False}}, "theme": "dark"})
    (home / "mcp.json").write_text(f"\ufeff{text}", "utf-8")
    (home / "mcp.json").chmod(0o600)
    file = read_mcp_file(home)
    [plan] = file.plans
    assert plan.args == ("s3cret", "$1", "${1}")
    assert [told.partition(": ")[2] for told in file.problems] == [
        "'theme' means nothing here", "'autoApprove' of 'time' means nothing here"
    ]  # fmt: skip


def test_a_variable_that_is_not_set_gives_its_default(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "set")
    monkeypatch.delenv("UNSET", raising=False)
    write(home, {"house": {
        "url": "${UNSET:-https://example.org}/${SET:-other}/mcp", "headers": {"Key": "${env:UNSET:-}", "A": "${SET}"},
    }})  # fmt: skip
    [plan] = read_mcp_file(home).plans
    assert plan.url == "https://example.org/set/mcp" and plan.headers == {"Key": "", "A": "set"}


def test_a_file_that_others_can_write_is_not_read(home: Path) -> None:
    write(home, {"papers": fake(home)})
    (home / "mcp.json").chmod(0o666)
    file = read_mcp_file(home)
    assert not file.plans and "other users can write to" in file.problems[0]


def test_clients_may_ask_for_servers_that_the_owner_named_or_allowed(home: Path) -> None:
    house, other = "http://127.0.0.1:9/mcp", "http://127.0.0.1:10/mcp"
    write(home, {"house": {"url": house}}, allow=[other])
    servers = McpServers.of_home(home)
    assert servers.named("house", None) == "house" and servers.named("my home", house) == "house"
    assert servers.named("x", other) == other
    assert servers.named("x", None) is None and servers.named("house", "http://127.0.0.1:11/mcp") is None
