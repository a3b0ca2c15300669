"""A server that answers before its models are ready: it reports what is being loaded, and lets requests wait."""

from __future__ import annotations

import asyncio
import time

from assistant.realtime.fields import Json
from assistant.server.backend import ServerContext

PATIENCE_S = 8.0
"""How long a websocket waits before it is refused: clients give up the handshake after ten seconds."""


class Starting:
    """Given to the server at birth, with or without the process behind it; `ready` adds that process."""

    def __init__(self, context: ServerContext | None = None) -> None:
        self.context = context
        self._there = asyncio.Event()
        self._doing = "starting"
        self._born = time.monotonic()
        if context is not None:
            self._there.set()

    def tell(self, line: str) -> None:
        """Set the present step, as a line for a person. Any thread may call this."""
        self._doing = line

    def ready(self, context: ServerContext) -> None:
        """Serve requests from now on, waiting ones first."""
        self.context = context
        self._there.set()

    def begin_again(self) -> ServerContext | None:
        """Let requests wait again; returns the process that serves no longer."""
        context, self.context = self.context, None
        self._there.clear()
        self._born = time.monotonic()
        return context

    async def wait(self, seconds: float | None = None) -> ServerContext | None:
        """The process behind the server, once it is there; None if it is not there after this many seconds."""
        try:
            await asyncio.wait_for(self._there.wait(), seconds)
        except TimeoutError:
            return None
        return self.context

    @property
    def for_s(self) -> float:
        return time.monotonic() - self._born

    @property
    def health(self) -> Json:
        """The answer to `/healthz` meanwhile."""
        return {"status": "starting", "doing": self._doing, "uptime_s": round(self.for_s, 1)}

    @property
    def sentence(self) -> str:
        return f"the models are being loaded ({self.for_s:.0f} s so far: {self._doing}); connect again in a moment"
