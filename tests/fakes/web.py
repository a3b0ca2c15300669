"""A real server on a free port over fake models, and a bare websocket client that keeps what it got."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from aiohttp.test_utils import TestServer

from assistant.base.clock import LoopClock
from assistant.base.pcm import to_pcm16
from assistant.realtime.settings import Character, Facts
from assistant.server.app import make_app
from assistant.server.backend import ServerContext
from assistant.server.security import Gate
from assistant.server.starting import Starting
from assistant.tools.home import HomeRows
from assistant.tools.running import HandsOnHome
from tests.fakes.talk import PERSONAS, World

PATIENCE = 10.0
RATE = 16_000
LISTEN_16K = {"type": "audio/pcm", "rate": RATE}
SPOKEN_ORDER = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "conversation.item.done",
    "response.output_item.done",
    "response.done",
]
"""The frames of a reply in speech, each kind where it first comes."""


def context_of(world: World) -> ServerContext:
    characters = {name: Character(p.instructions, p.voice or "ada") for name, p in PERSONAS.items()}
    facts = Facts("local", lambda: world.tts.voices, characters.get)
    return ServerContext(
        talks=world.talks,
        clock=LoopClock(),
        facts=facts if world.servers is None else replace(facts, server=world.servers.named),
        personas=lambda: {"personas": [{"name": name} for name in PERSONAS], "voices": list(world.tts.voices)},
        settings=world.talks.defaults,
        metrics=world.talks.metrics.text,
    )


class Site:
    """A running server: its addresses and its parts."""

    def __init__(self, server: TestServer, world: World, context: ServerContext) -> None:
        self.world, self.context, self.app = world, context, server.app
        self.http = f"http://{server.host}:{server.port}"
        self.ws = f"ws://{server.host}:{server.port}/v1/realtime"
        self.client = aiohttp.ClientSession()

    @asynccontextmanager
    async def wire(self, query: str = "", **kinds: Any) -> AsyncIterator[Wire]:
        """One connection, past its first two frames."""
        async with self.client.ws_connect(self.ws + query, protocols=("realtime",), max_msg_size=0, **kinds) as ws:
            wire = Wire(ws, self.world)
            wire.session = (await wire.until("session.created"))["session"]
            wire.conversation = (await wire.until("conversation.created"))["conversation"]["id"]
            yield wire


class Wire:
    """A client with no opinions: sends events, keeps all frames, waits for some."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, world: World) -> None:
        self.ws, self.world = ws, world
        self.frames: list[dict[str, Any]] = []
        self.session: dict[str, Any] = {}
        self.conversation = ""

    async def send(self, kind: str, **fields: Any) -> None:
        await self.ws.send_str(json.dumps({"type": kind, **fields}))

    async def next(self) -> dict[str, Any]:
        message = await asyncio.wait_for(self.ws.receive(), PATIENCE)
        assert message.type == aiohttp.WSMsgType.TEXT, f"{message.type} {message.data} {message.extra}"
        self.frames.append(json.loads(message.data))
        return self.frames[-1]

    async def until(self, kind: str, where: Callable[[dict[str, Any]], bool] = lambda frame: True) -> dict[str, Any]:
        """Read on to the next frame of this kind."""
        while True:
            frame = await self.next()
            if frame["type"] == kind and where(frame):
                return frame

    async def update(self, **session: Any) -> dict[str, Any]:
        await self.send("session.update", session={"type": "realtime", **session})
        return (await self.until("session.updated"))["session"]

    async def listen_16k(self, **input_fields: Any) -> dict[str, Any]:
        transcription = {"model": "whisper-1"}
        fields = {"format": LISTEN_16K, "transcription": transcription, **input_fields}
        return await self.update(audio={"input": fields})

    async def append(self, pcm: np.ndarray) -> None:
        for start in range(0, len(pcm), RATE // 10):
            audio = base64.b64encode(to_pcm16(pcm[start : start + RATE // 10])).decode()
            await self.send("input_audio_buffer.append", audio=audio)

    async def speak(self, text: str, seconds: float = 0.8, silence: float = 1.2) -> None:
        """Say something, faster than real time; the silence ends the turn."""
        await self.append(self.world.asr.spoken(text, seconds))
        await self.append(np.zeros(int(silence * RATE), np.float32))

    async def say(self, text: str, item_id: str | None = None) -> None:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self.send("conversation.item.create", item=item | ({"id": item_id} if item_id else {}))

    async def round_trip(self) -> list[dict[str, Any]]:
        """All frames up to the answer of a question sent now: everything sent before has been dealt with."""
        before = len(self.frames)
        await self.send("conversation.item.retrieve", item_id="nobody", event_id="fence")
        await self.until("error", lambda frame: frame["error"].get("event_id") == "fence")
        return self.frames[before:-1]

    def types(self) -> list[str]:
        """Frame types in order, runs of deltas folded."""
        out: list[str] = []
        for frame in self.frames:
            if not out or out[-1] != frame["type"] or not frame["type"].endswith(".delta"):
                out.append(frame["type"])
        return out

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] == kind]

    def sound(self, response_id: str) -> bytes:
        deltas = self.of("response.output_audio.delta")
        return b"".join(base64.b64decode(f["delta"]) for f in deltas if f["response_id"] == response_id)


@asynccontextmanager
async def serving(
    world: World | None = None, gate: Gate | None = None, ui: Path | None = None
) -> AsyncIterator[Site]:
    """A server for the time of the block; at the end nothing of it may be left."""
    world = world or World(speed=100.0)
    context = context_of(world)
    if ui is not None:  # the page asks for what the home keeps
        context.household = HandsOnHome(HomeRows())
    server = TestServer(make_app(Starting(context), gate or Gate("127.0.0.1"), ui), host="127.0.0.1")
    before = asyncio.all_tasks()
    await server.start_server()
    site = Site(server, world, context)
    try:
        yield site
    finally:
        await site.client.close()
        await server.close()
    assert world.talks.active == 0, "a session is left over"
    assert world.llm.running == 0 and world.tts.running == 0, "an engine still runs"
    left = asyncio.all_tasks() - before
    if left:
        await asyncio.wait(left, timeout=PATIENCE)
    assert not [task for task in left if not task.done()], "a task is left over"


def run(story: Callable[[Site], Any], **kinds: Any) -> None:
    """Run one story against a server of its own."""

    async def whole() -> None:
        async with serving(**kinds) as site:
            await asyncio.wait_for(story(site), 60.0)

    asyncio.run(whole())


@contextmanager
def serving_aside(make_world: Callable[[], World], ui: Path | None = None) -> Iterator[str]:
    """A server on a thread and a loop of its own, for clients that block; gives its base URL."""
    stop, ready, urls = threading.Event(), threading.Event(), []

    async def whole() -> None:
        async with serving(make_world(), ui=ui) as site:
            urls.append(f"{site.http}/v1")
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(whole()))
    thread.start()
    try:
        assert ready.wait(PATIENCE), "the server did not start"
        yield urls[0]
    finally:
        stop.set()
        thread.join()
