"""`/v1/sleep` and `/v1/wake`, extensions: the memory of the models is let go while nobody needs it, and brought back.

For programs on this machine or with the token, and for the server's own page.
"""

from __future__ import annotations

import asyncio
import time

from aiohttp import web

from assistant.base.errors import EngineFailed
from assistant.device.thread import EngineThread
from assistant.server.answers import problem
from assistant.server.backend import ServerContext
from assistant.server.security import from_elsewhere

PATIENCE_S, STILL_S, LOOK_S = 10.0, 0.5, 0.1
BUSY = f"the models were at work for {PATIENCE_S:.0f} s, or work came up; ask again when nothing is being said"


async def sleep(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """Put the models to sleep as soon as no work runs. `freed_bytes` 0: work went on, as `reason` explains."""
    thread = context.thread
    if (refused := _refused(request)) is not None:
        return refused
    if thread is None:
        raise EngineFailed("no model runs here, so none can sleep")
    freed = thread.asleep_bytes
    if not freed and await at_rest(thread):
        freed = await thread.fall_asleep()
    return web.json_response({"asleep": freed > 0, "freed_bytes": freed} | ({} if freed else {"reason": BUSY}))


async def at_rest(thread: EngineThread) -> bool:
    """Wait for work to end, including the tail of a reply: its states, and the preparation of the next turn. False if
    it goes on for `PATIENCE_S`. Models put to sleep in the middle of it would only wake at the next step."""
    now, seen = asyncio.get_running_loop().time, thread.steps
    begin = quiet = now()
    while now() - quiet < STILL_S:
        if now() - begin > PATIENCE_S:
            return False
        await asyncio.sleep(LOOK_S)
        if thread.waiting or thread.steps != seen:
            seen, quiet = thread.steps, now()
    return True


async def wake(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """Answers once the models are awake."""
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
