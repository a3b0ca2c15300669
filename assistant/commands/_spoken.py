"""The assistant as an MCP server: another program speaks, listens and asks the person through it.

The models are those of a server that runs; the sound is this machine's own. Standard output belongs to the protocol.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from assistant.base.channel import Channel
from assistant.base.errors import AssistantError
from assistant.base.pcm import from_pcm16, to_pcm16
from assistant.commands._server import RunningServer
from assistant.events import Pcm

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientWebSocketResponse
    from mcp.server.mcpserver import MCPServer

WAIT_S, MOST_S = 20.0, 120.0
NOBODY = "nobody said anything"
INSTRUCTIONS = "Speak to the person at this machine, and hear what they say."
NO_LOUDSPEAKER = "there is no loudspeaker; `assistant talk --devices` lists what is there"

Play: TypeAlias = Callable[[AsyncIterator[Pcm]], Awaitable[bool]]
Listen: TypeAlias = Callable[[], AbstractAsyncContextManager[Channel[Pcm]]]


class PersonHere:
    """`play` takes sound to its end and returns whether it could; `listen` opens the microphone. Both at 24 kHz."""

    def __init__(self, server: RunningServer, play: Play, listen: Listen) -> None:
        self._server, self._play, self._listen = server, play, listen
        self._alone = asyncio.Lock()
        """One person, one loudspeaker."""

    async def speak(self, text: str, voice: str = "") -> str:
        "Say a text aloud to the person at this machine; returns when it has been said."
        async with self._alone:
            await self._say(text, voice)
        return "said"

    async def listen(self, seconds: float = WAIT_S) -> str:
        "Listen until the person at this machine has said something, at most this many seconds; returns their words."
        async with self._alone:
            return await self._hear(seconds) or NOBODY

    async def ask(self, question: str, seconds: float = WAIT_S) -> str:
        "Ask the person at this machine a question aloud; returns the words of their answer."
        async with self._alone:
            await self._say(question, "")
            return await self._hear(seconds) or NOBODY

    async def _say(self, text: str, voice: str) -> None:
        if not await self._play(self._sound(text, voice)):
            raise AssistantError(NO_LOUDSPEAKER)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[ClientSession]:
        """Raises AssistantError if no server is there."""
        import aiohttp

        headers = {"Authorization": f"Bearer {self._server.key}"} if self._server.key else {}
        async with aiohttp.ClientSession(headers=headers) as client:
            try:
                yield client
            except aiohttp.ClientError as error:
                told = f"there is no server at {self._server.url} ({error}); start one with `assistant serve`"
                raise AssistantError(told) from error

    async def _sound(self, text: str, voice: str) -> AsyncIterator[Pcm]:
        body = {"model": "local", "input": text, "voice": voice or "default", "response_format": "pcm"}
        async with self._client() as client, client.post(f"{self._server.url}/v1/audio/speech", json=body) as answer:
            if answer.status != 200:
                told = (await answer.text())[:500]
                with suppress(ValueError, KeyError, TypeError):
                    told = json.loads(told)["error"]["message"]
                raise AssistantError(told)
            rest = b""
            async for data in answer.content.iter_any():
                whole = len(rest + data) // 2 * 2
                pcm, rest = (rest + data)[:whole], (rest + data)[whole:]
                yield from_pcm16(pcm)

    async def _hear(self, seconds: float) -> str:
        url = f"{self._server.url.replace('http', 'ws', 1)}/v1/realtime?intent=transcription"
        async with (
            self._client() as client, client.ws_connect(url, protocols=("realtime",)) as wire, self._listen() as sound,
        ):  # fmt: skip
            sending = asyncio.create_task(_send(wire, sound))
            try:
                async with asyncio.timeout(min(max(seconds, 1.0), MOST_S)):
                    return await _first_words(wire)
            except TimeoutError:
                return ""
            finally:
                sending.cancel()
                await asyncio.wait([sending])


async def _send(wire: ClientWebSocketResponse, sound: Channel[Pcm]) -> None:
    async for block in sound:
        audio = base64.b64encode(to_pcm16(block)).decode()
        await wire.send_json({"type": "input_audio_buffer.append", "audio": audio})


async def _first_words(wire: ClientWebSocketResponse) -> str:
    """The first turn that has words. Raises AssistantError if the server ends the session."""
    async for message in wire:
        event = message.json()
        if event["type"] == "conversation.item.input_audio_transcription.completed" and event["transcript"].strip():
            return str(event["transcript"])
        if event["type"] == "error":
            raise AssistantError(str(event["error"]["message"]))
    raise AssistantError("the server ended the session")


def spoken_server(person: PersonHere) -> MCPServer:
    """Raises AssistantError without the package."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        from assistant.tools.mcp.server import MISSING

        raise AssistantError(MISSING) from error
    server = MCPServer("voice-assistant", instructions=INSTRUCTIONS, log_level="WARNING")

    def told(function: Callable[..., Awaitable[str]]) -> Callable[..., Awaitable[str]]:
        """Only errors of the package's own kind reach the other program in words."""

        @wraps(function)
        async def call(**values: object) -> str:
            try:
                return await function(**values)
            except AssistantError as error:
                raise ToolError(str(error)) from error

        return call

    for function in (person.speak, person.listen, person.ask):
        server.tool(structured_output=False)(told(function))
    return server


@asynccontextmanager
async def _microphone() -> AsyncIterator[Channel[Pcm]]:
    from assistant.local.devices import chatter_to, microphone

    sound: Channel[Pcm] = Channel(100)
    with chatter_to(Path(os.devnull)), microphone(sound) as ear:
        tending = asyncio.create_task(ear.tend())
        try:
            yield sound
        finally:
            tending.cancel()
            with suppress(asyncio.CancelledError):
                await tending


async def serve(server: RunningServer) -> int:
    """Until the other program closes the pipe."""
    from assistant.local.ringing import play_aloud

    await spoken_server(PersonHere(server, play_aloud, _microphone)).run_stdio_async()
    return 0
