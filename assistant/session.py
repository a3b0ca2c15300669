"""One talk: wires hearing, thinking and speaking, and decides nothing that a pure table can decide.

A front opens a session through `Talks`, runs it beside its own loop, sends commands and reads events:

    session = talks.open()
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        async for event in session.events: ...        # ends when the session has ended
        # elsewhere: await session.send(CreateResponse()); at the end: session.close()
"""

from __future__ import annotations

from assistant.channel import Channel
from assistant.clock import Clock
from assistant.engines import Ears, Speaker, Thinker
from assistant.events import Command, Event, Item, Settings

EVENTS_IN_FLIGHT = 256
COMMANDS_IN_FLIGHT = 64


class Session:
    """A talk while somebody is connected to it. `run` returns after `close`; then `events` is closed too."""

    def __init__(
        self, talk: str, thinker: Thinker, speaker: Speaker, ears: Ears, clock: Clock, settings: Settings
    ) -> None:
        self.talk = talk
        """The conversation's id; `Talks.open(resume=…)` takes it."""
        self.events: Channel[Event] = Channel(EVENTS_IN_FLIGHT)
        self._commands: Channel[Command] = Channel(COMMANDS_IN_FLIGHT)
        self._thinker, self._speaker, self._ears, self._clock = thinker, speaker, ears, clock
        self._settings = settings

    @property
    def settings(self) -> Settings:
        """What holds now."""
        return self._settings

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation, oldest first."""
        return ()

    async def send(self, command: Command) -> None:
        """Hand a command over; waits while too many are waiting. Raises ChannelClosed after `close`."""
        await self._commands.send(command)

    def close(self) -> None:
        """End the session as soon as possible; a running reply stops at the engines' next step."""
        self._commands.close()

    async def run(self) -> None:
        """Serve commands until `close`. Call it once."""
        async with self.events:
            async for _command in self._commands:
                pass
