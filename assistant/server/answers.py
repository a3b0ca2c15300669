"""Answers of plain HTTP endpoints: OpenAI's error object, server-sent events, and a peer that went away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import TypeVar

from aiohttp import web

from assistant.base.errors import PeerError
from assistant.realtime.fields import Fields, Json, parse_event

T = TypeVar("T")

LOOK_SECONDS = 0.1
MAX_BODY = 8 * 1024 * 1024
SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}


def error_body(error: PeerError, kind: str = "invalid_request_error") -> Json:
    """The object that OpenAI's clients read errors from."""
    return {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}


def problem(status: int, code: str, message: str, kind: str = "invalid_request_error") -> web.Response:
    """An answer that is an error."""
    return web.json_response(error_body(PeerError(code, message), kind), status=status)


async def json_fields(request: web.Request) -> Fields:
    """The JSON object of a request's body, as strictly read as a websocket's. Raises PeerError."""
    try:  # not `request.json()`: its parser takes NaN, any depth and any number, and a wrong shape would be a 500
        text = await request.text()
    except (UnicodeDecodeError, LookupError):
        raise PeerError("invalid_event", "the body is not UTF-8 text") from None
    return parse_event(text, MAX_BODY)


class EventStream:
    """A `text/event-stream` answer. Sending to a peer that has gone raises ConnectionResetError."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response = web.StreamResponse(headers=SSE_HEADERS)
        self.started = False

    async def send_event(self, data: Json | str) -> None:
        if not self.started:  # not at birth: a failure before the first event can still be an HTTP status
            self.started = True
            await self._response.prepare(self._request)
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        await self._response.write(f"data: {text}\n\n".encode())

    async def close_stream(self) -> web.StreamResponse:
        await self._response.write_eof()
        return self._response


async def while_connected(request: web.Request, work: Awaitable[T]) -> T:
    """Do the work, but stop it when the peer has gone. Raises ConnectionResetError then."""
    # aiohttp lets a handler run on when its client has gone, and nothing wakes one that has not written yet: an engine
    # would finish a long answer for nobody while talks wait for it. So the connection is checked now and then.
    task = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait([task], timeout=LOOK_SECONDS)
            if done:
                return task.result()
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError("the client went away")
    finally:
        if not task.done():
            task.cancel()  # and wait, so that the engine is free when the handler ends
            await asyncio.gather(task, return_exceptions=True)
