"""Where a front's commands come in: sound goes to hearing, everything else straight to the session's inbox.

A recogniser may be seconds behind. Nobody's cancel is to wait for it; but a commit makes an item at the moment in which
hearing comes to it, and what was sent after the commit counts on that item. So commits and clears are numbered as they
are sent, each other command knows the number that it must stand behind, and waits until hearing has come so far. What
waits is never overtaken by another of its kind: a cancel behind a held CreateResponse may be meant for that reply.
"""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from assistant.base.channel import Channel
from assistant.events import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    Command,
    CommitAudio,
    ReportHeard,
    TruncateItem,
    Undo,
)
from assistant.talk.messages import Inbox

IN_FLIGHT = 64
"""Commands of either kind that may wait here; then their sender waits. Sound and the rest have room of their own, so a
slow recogniser slows the sender of sound only."""

SoundCommand: TypeAlias = AppendAudio | CommitAudio | ClearAudio


class Inlet:
    """`sound` is hearing's to receive from; the rest comes out at `inbox` while `run` runs."""

    def __init__(self, inbox: Channel[Inbox]) -> None:
        self.sound: Channel[SoundCommand] = Channel(IN_FLIGHT)
        self._inbox = inbox
        self._rest: Channel[tuple[int, Command]] = Channel(IN_FLIGHT)
        self._sent = 0
        """The number of the last commit or clear that was sent."""
        self._last_commit = 0
        """The number of the last commit among them."""
        self._through = 0
        self._moved = asyncio.Event()

    async def send(self, command: Command) -> None:
        """Waits while too many of its kind are waiting. Raises ChannelClosed after `close`."""
        match command:
            case AppendAudio():
                await self.sound.send(command)
            case CommitAudio() | ClearAudio():
                await self.sound.send(command)
                # Numbered once it is in: a sender that is cancelled while it waits for room must leave no number
                # behind that nothing will ever come through with. Nothing can run between the two lines.
                self._sent += 1
                if isinstance(command, CommitAudio):
                    self._last_commit = self._sent
            case _:
                await self._rest.send((self._behind(command), command))

    def _behind(self, command: Command) -> int:
        """The number that hearing must have come to before this command's turn."""
        match command:
            case CancelResponse() | TruncateItem() | ReportHeard():
                return 0  # they are about a reply, and no commit or clear ever makes one
            case Undo():
                return self._last_commit  # it counts turns: one that was committed before it is among them
            case _:
                return self._sent

    def came_through(self) -> None:
        """Hearing has put what came of the next commit or clear into the inbox. It takes them in order, so their number
        need not travel with them."""
        self._through += 1
        self._moved.set()

    async def run(self) -> None:
        """Until the commands end."""
        async for number, command in self._rest:
            while self._through < number:
                self._moved.clear()
                await self._moved.wait()
            await self._inbox.send(command)

    def close(self) -> None:
        self.sound.close()
        self._rest.close()
