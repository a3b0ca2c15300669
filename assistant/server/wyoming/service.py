"""All connections over one address."""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wyoming.error import Error
from wyoming.event import async_write_event

from assistant.server.backend import ServerContext
from assistant.server.wyoming.caller import WyomingCaller
from assistant.server.wyoming.frames import MAX_LINE
from assistant.server.wyoming.houses import Houses, HouseTalk

MOST_CALLERS = 64


@asynccontextmanager
async def wyoming_service(
    context: ServerContext, sock: socket.socket, known: dict[str, HouseTalk] | None = None
) -> AsyncIterator[None]:
    """Serve everybody who connects to `sock`, which listens, until the block ends; their work ends with it. `known`:
    see `Houses`."""
    houses = Houses(context.talks, context.clock, {} if known is None else known)
    callers: dict[asyncio.Task[None], StreamWriter] = {}

    async def welcome(reader: StreamReader, writer: StreamWriter) -> None:
        if len(callers) >= MOST_CALLERS:
            await async_write_event(Error(f"all {MOST_CALLERS} places are taken").event(), writer)
            writer.close()
            return
        task = asyncio.create_task(WyomingCaller(reader, writer, context, houses).serve())
        callers[task] = writer
        task.add_done_callback(callers.pop)

    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # else one who lost power has its place for ever
    server = await asyncio.start_server(welcome, sock=sock, limit=MAX_LINE)
    try:
        yield
    finally:
        server.close()
        for writer in callers.values():  # not the tasks: an end that is under way goes on
            writer.transport.abort()
        if callers:
            await asyncio.wait(callers)
