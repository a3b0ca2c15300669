"""A language model that is no model: known answers over the chat-completions interface.

With it the ears, the voice, the conversation and the page can be held to what should have been said. Asked for the
last number, it answers from the talk it was sent, so its answer tells what the product believes was heard.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from typing import Any

from aiohttp import web

COUNT = (
    "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen, "
    "seventeen, eighteen, nineteen, twenty."
)


def answer(messages: list[dict[str, Any]]) -> str:
    """What it says to a talk."""
    asked = [str(one["content"]) for one in messages if one["role"] == "user"][-1]
    own = [str(one["content"]) for one in messages if one["role"] == "assistant" and one.get("content")]
    if "count" in asked:
        return COUNT
    if own and own[-1].startswith("One"):
        return f"The last number was {re.findall('[a-z]+', own[-1].lower())[-1]}."
    return "I can count."


class ScriptedMind:
    """Runs in its own thread on a port of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.port = 0
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready.set,), daemon=True)
        self._thread.start()
        assert ready.wait(10), "the scripted mind did not start"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def _run(self, ready: Callable[[], None]) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(ready))
        self._loop.close()

    async def _serve(self, ready: Callable[[], None]) -> None:
        self._over = asyncio.Event()
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        ready()
        await self._over.wait()
        await runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "script", "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        words = re.findall(r"\S+\s*", answer(body["messages"]))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        pieces: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
        pieces += [({"content": word}, None) for word in words]
        for delta, reason in [*pieces, ({}, "stop")]:
            chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "script",
                     "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}  # fmt: skip
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response
