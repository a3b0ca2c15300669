"""The entrance for a front's commands: sound goes to hearing, everything else straight to the session's inbox.

A recogniser may be seconds behind. A cancel must not wait for it; but a commit makes an item only when hearing reaches
it, and commands sent after the commit depend on that item. So commits and clears are numbered as they are sent. Each
other command carries the number that it must stay behind, and waits until hearing has reached it. A waiting command is
never overtaken by another of its kind: a cancel behind a held CreateResponse may be meant for that reply.

Pictures are checked here, off the event loop, so that nothing damaged reaches the talk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from assistant.base.channel import Channel
from assistant.base.errors import PeerError
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
from assistant.talk.messages import Inbox, Refused
from assistant.talk.pictures import looked_at, shows

IN_FLIGHT = 64
"""Commands of either kind that may wait here; beyond that, their sender waits. Sound and the rest have separate room,
so a slow recogniser slows only the sender of sound."""

SoundCommand: TypeAlias = AppendAudio | CommitAudio | ClearAudio


class Inlet:
    """Hearing receives from `sound`; the rest comes out at `inbox` while `run` runs.

    On both roads a command carries the number that the other road must have reached before its turn. It was sent after
    the command with that number, so the two roads never wait for each other.
    """

    def __init__(self, inbox: Channel[Inbox], look: Callable[[Callable[[], Command]], Awaitable[Command]]) -> None:
        """look  runs a function that takes long"""
        self.sound: Channel[tuple[int, SoundCommand]] = Channel(IN_FLIGHT)
        self._inbox, self._look = inbox, look
        self._rest: Channel[tuple[int, Command]] = Channel(IN_FLIGHT)
        self._marks_sent = self._last_commit = 0
        """Number of the last commit or clear that was sent, and of the last commit among them."""
        self._marks_through = 0
        self._rest_sent = self._rest_through = 0
        self._moved = asyncio.Event()

    async def send(self, command: Command) -> None:
        """Wait while too many of its kind are waiting. Raises ChannelClosed after `close`."""
        # Count it once it is in, never before: if a sender is cancelled while it waits for room, it must not leave a
        # number that nothing will ever reach. Nothing else can run between the two lines.
        match command:
            case AppendAudio():
                await self.sound.send((0, command))
            case CommitAudio() | ClearAudio():
                await self.sound.send((self._rest_sent, command))
                self._marks_sent += 1
                if isinstance(command, CommitAudio):
                    self._last_commit = self._marks_sent
            case _:
                await self._rest.send((self._behind(command), command))
                self._rest_sent += 1

    def _behind(self, command: Command) -> int:
        """The number of the commit or clear that hearing must have reached before this command's turn."""
        match command:
            case CancelResponse() | TruncateItem() | ReportHeard():
                return 0  # these are about a reply, and a commit or clear never makes one
            case Undo():
                return self._last_commit  # it counts turns, and one that was committed before it is among them
            case _:
                return self._marks_sent

    async def reached(self, number: int) -> None:
        """For hearing, before a commit or clear: wait until everything sent before this number is in the inbox."""
        while self._rest_through < number:
            await self._move()

    def came_through(self) -> None:
        """Report that hearing has put the result of the next commit or clear into the inbox. Hearing takes them in
        order, so they need not carry their own number."""
        self._marks_through += 1
        self._moved.set()

    async def run(self) -> None:
        """Run until the commands end."""
        async for number, command in self._rest:
            while self._marks_through < number:
                await self._move()
            await self._inbox.send(await self._seen(command) if shows(command) else command)
            self._rest_through += 1
            self._moved.set()

    async def _seen(self, command: Command) -> Inbox:
        try:
            return await self._look(partial(looked_at, command))
        except PeerError as error:
            return Refused(error, command.cause)

    def close(self) -> None:
        self.sound.close()
        self._rest.close()

    async def _move(self) -> None:
        """Wait until either road has moved."""
        self._moved.clear()
        await self._moved.wait()
