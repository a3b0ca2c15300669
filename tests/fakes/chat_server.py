"""A chat server that answers with listed deltas, and is as strict as servers are.

Each request gets the next reply of the list, the last one for ever: texts are `delta.content`, mappings whole deltas,
bytes go out as they are.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from aiohttp import web
from aiohttp.test_utils import TestServer

from assistant.remote import Address

Delta: TypeAlias = "str | Mapping[str, object] | bytes"
DONE = b"data: [DONE]\n\n"


class ChatServer:
    """`strict`: messages that are not well formed are refused, as the strictest chat templates do.

    room     characters of messages that it takes
    unknown  fields that it refuses; `named`: and says which
    """

    def __init__(
        self, *replies: Sequence[Delta], strict: bool = True, room: int = 10**9, unknown: Sequence[str] = (),
        named: bool = True, ended: bytes = DONE, system: bool = True,
    ) -> None:  # fmt: skip
        self._replies, self._strict, self._room, self._unknown = list(replies), strict, room, unknown
        self._named, self._ended, self._system = named, ended, system
        self.asked: list[dict[str, Any]] = []
        self.refused: list[str] = []

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Of the last request."""
        return self.asked[-1]["messages"]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Address]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        server = TestServer(app)
        await server.start_server()
        try:
            yield Address(f"http://{server.host}:{server.port}/v1", model="m")
        finally:
            await server.close()

    def _fault(self, body: Mapping[str, Any]) -> str:
        for field in self._unknown:
            if field in body:
                return f"unknown field {field!r}" if self._named else "bad request"
        if sum(len(str(message["content"])) for message in body["messages"]) > self._room:
            return f"This model's maximum context length is {self._room} tokens. However, you requested more."
        if not self._system and body["messages"][0]["role"] == "system":
            return "System role not supported"
        return fault_of(body["messages"]) if self._strict else ""

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        if fault := self._fault(body):
            self.refused.append(fault)
            return web.json_response({"error": {"message": fault, "code": 400}}, status=400)
        deltas = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta in deltas:
            await response.write(delta if isinstance(delta, bytes) else chunk(delta))
        if self._ended:
            await response.write(chunk({}, "stop") + self._ended)
        await response.write_eof()
        return response


def chunk(delta: str | Mapping[str, object], finish: str | None = None) -> bytes:
    fields = {"content": delta} if isinstance(delta, str) else delta
    event = {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def call(name: str, arguments: str, call_id: str = "c1", index: int = 0) -> dict[str, object]:
    """A delta with a whole call in the server's own form."""
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def fault_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the strictest of chat templates would refuse; "" for nothing."""
    wanted: list[str] = []
    before = "assistant"
    rest = messages[1:] if messages and messages[0]["role"] == "system" else messages
    for message in rest:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in wanted:
                return f"the output of {message['tool_call_id']!r} answers no call"
            wanted.remove(message["tool_call_id"])
            before = "tool"
            continue
        if wanted:
            return f"the call {wanted[0]!r} has no output"
        if role in ("system", before) or (role == "user" and before not in ("assistant", "tool")):
            return f"conversation roles must alternate user/assistant/user/assistant; {role} came behind {before}"
        for one in message.get("tool_calls", ()):
            wanted.append(one["id"])
            if not isinstance(json.loads(one["function"]["arguments"]), dict):
                return "the arguments are not an object"
        before = role
    if wanted:
        return f"the call {wanted[0]!r} has no output"
    return "" if before in ("user", "tool") else f"the last message is the {before}'s"
