"""A server whose models are still being loaded: it says so, keeps who asks waiting, and tells who waited too long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp.test_utils import TestServer

from assistant.server import app as server_app
from assistant.server.app import make_app
from assistant.server.security import Gate
from assistant.server.starting import Starting
from tests.fakes.talk import World
from tests.fakes.web import context_of


@asynccontextmanager
async def loading(ui: Path | None = None, token: str | None = None) -> AsyncIterator[tuple[Starting, str]]:
    starting = Starting()
    server = TestServer(make_app(starting, Gate("127.0.0.1", token), ui), host="127.0.0.1")
    await server.start_server()
    try:
        yield starting, f"http://{server.host}:{server.port}"
    finally:
        await server.close()


def test_page_and_health_answer_and_say_what_is_being_done(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>x</title>")

    async def story() -> None:
        async with loading(tmp_path) as (starting, url), aiohttp.ClientSession() as client:
            starting.tell("loading the voice")
            async with client.get(f"{url}/healthz") as answer:
                health = await answer.json()
            assert (health["status"], health["doing"]) == ("starting", "loading the voice")
            async with client.get(f"{url}/") as answer:
                assert answer.status == 200
            starting.ready(context_of(World()))
            async with client.get(f"{url}/healthz") as answer:
                assert (await answer.json())["status"] == "ok"

    asyncio.run(story())


def test_a_request_waits_and_is_served_then() -> None:
    async def story() -> None:
        async with loading() as (starting, url), aiohttp.ClientSession() as client:
            asked = asyncio.ensure_future(client.get(f"{url}/v1/models"))
            wire = asyncio.ensure_future(client.ws_connect(f"{url}/v1/realtime", protocols=("realtime",)))
            await asyncio.wait([asked, wire], timeout=0.2)
            assert not asked.done() and not wire.done()
            starting.ready(context_of(World(speed=100.0)))
            async with await asked as answer:
                assert answer.status == 200
            async with await wire as ws:
                assert (await ws.receive_json())["type"] == "session.created"

    asyncio.run(story())


def test_a_websocket_that_waited_too_long_is_told_in_words(monkeypatch) -> None:
    monkeypatch.setattr(server_app, "PATIENCE_S", 0.05)

    async def story() -> None:
        async with loading() as (starting, url), aiohttp.ClientSession() as client:
            starting.tell("loading the language model")
            async with client.ws_connect(f"{url}/v1/realtime", protocols=("realtime",)) as ws:
                frame = await ws.receive_json()
                assert frame["type"] == "error" and frame["error"]["code"] == "server_starting"
                assert "loading the language model" in frame["error"]["message"]
                await ws.receive()
                assert ws.close_code == aiohttp.WSCloseCode.SERVICE_RESTART

    asyncio.run(story())


def test_who_may_not_come_in_is_refused_at_once() -> None:
    async def story() -> None:
        async with loading(token="secret") as (_, url), aiohttp.ClientSession() as client:
            async with client.get(f"{url}/v1/models") as answer:
                assert answer.status == 401
            async with client.get(f"{url}/v1/models", headers={"Host": "evil.example"}) as answer:
                assert answer.status == 421

    asyncio.run(story())
