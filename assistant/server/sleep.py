"""`/v1/sleep` and `/v1/wake`, extensions: the memory of the models is let go while nobody needs it, and brought back.

For programs on this machine or with the token, and for the server's own page.
"""

from __future__ import annotations

import time

from aiohttp import web

from assistant.base.errors import EngineFailed
from assistant.server.answers import problem
from assistant.server.context import ServerContext
from assistant.server.security import from_elsewhere


async def sleep(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """When nothing is being made. `freed_bytes` 0: work came up and the models are awake."""
    thread = context.thread
    if (refused := _refused(request)) is not None:
        return refused
    if thread is None:
        raise EngineFailed("no model runs here, so none can sleep")
    freed = thread.asleep_bytes or await thread.fall_asleep()
    return web.json_response({"asleep": freed > 0, "freed_bytes": freed})


async def wake(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """Answered when the models are there."""
    if (refused := _refused(request)) is not None:
        return refused
    begin = time.monotonic()
    if context.thread is not None:
        await context.thread.wake()
    return web.json_response({"asleep": False, "ms": round((time.monotonic() - begin) * 1000, 1)})


def _refused(request: web.Request) -> web.Response | None:
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")):
        return problem(403, "origin_refused", "sleeping and waking are for programs and the server's own page")
    return None
