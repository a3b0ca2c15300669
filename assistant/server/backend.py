"""The process behind the web server, as the server sees it: its talks, names, lists and keys."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field

from assistant.base.clock import Clock
from assistant.base.errors import EngineFailed
from assistant.contracts import HouseholdKeeper, MemoryKeeper, ModelKeeper, VoiceKeeper
from assistant.device.thread import EngineThread
from assistant.events import Settings
from assistant.realtime.fields import Json
from assistant.realtime.settings import Facts
from assistant.talk.talks import Talks

log = logging.getLogger(__name__)


def _empty() -> Json:
    return {"capsules": [], "tiers": {}}


@dataclass(slots=True)
class Keys:
    """Temporary keys for browsers, each with the session that it was made for."""

    limit: int = 256
    _known: dict[str, tuple[float, Json]] = field(default_factory=dict)

    def remember(self, key: str, expires_at: float, session: Json) -> None:
        """Remember a key; the oldest goes when there are too many, since a client may ask for keys for ever."""
        while len(self._known) >= self.limit:
            self._known.pop(next(iter(self._known)))
        self._known[key] = (expires_at, session)

    def valid(self, now: float) -> list[str]:
        """Keys that still hold; expired ones are dropped."""
        self._known = {key: known for key, known in self._known.items() if known[0] > now}
        return list(self._known)

    def session(self, key: str, now: float) -> Json | None:
        """The session that a key was made for."""
        return self._known[key][1] if key in self.valid(now) else None


@dataclass(slots=True)
class ServerContext:
    """Given to the server at birth. `personas`, `capsules` and `about` are called again each time."""

    talks: Talks
    clock: Clock
    facts: Facts
    personas: Callable[[], Json]
    """`{"current": name, "personas": […], "voices": […]}`"""
    capsules: Callable[[], Json] = _empty
    """`{"capsules": […], "tiers": {…}}`"""
    about: Callable[[], Mapping[str, object]] = dict
    """Facts that `/healthz` adds: profile, models, device, how to get larger ones."""
    metrics: Callable[[], bytes] = bytes
    thread: EngineThread | None = None
    """The thread of the models that may sleep."""
    household: HouseholdKeeper | None = None
    """Timers, alarms, reminders, lists and notes."""
    memory: MemoryKeeper | None = None
    """The sentences that every talk begins with."""
    voices: VoiceKeeper | None = None
    """The keeper of voices; None if the voice runs on a server."""
    models: ModelKeeper | None = None
    """The keeper of language models; None if they cannot be changed."""
    settings: Settings = field(default_factory=Settings)
    """The settings that a session starts with."""
    wake: bool = False
    """The page begins by waiting for a name."""
    keys: Keys = field(default_factory=Keys)
    born: float = field(default_factory=time.monotonic)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def later(self, work: Coroutine[None, None, None]) -> None:
        """Do work that no client waits for. If the models refuse it, the next request is only slower."""

        async def whole() -> None:
            try:
                await work
            except EngineFailed as error:
                log.debug("left undone: %s", error)

        task = asyncio.get_running_loop().create_task(whole())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
