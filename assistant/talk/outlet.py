"""The outlet of a reply: to the talk, its front, and the times of its turn. Nothing leaves the outlet of a candidate.

A candidate is a reply like any other, begun before it is certain that the user has finished. Its items go to a draft of
the conversation, its events are held back, and it waits before its first sound or call would go out. `release` turns
it into an ordinary reply. A dropped candidate leaves nothing, because nothing ever got out.

A reply answers what was there when it was ordered. Items that come later are not read by it, and stand behind its own.
"""

from __future__ import annotations

import asyncio

from assistant.events import Event
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Conversation, Entry
from assistant.telemetry.trace import TurnTrace


class Outlet:
    """`guessed` is None for an ordinary reply. A candidate answers this entry as if it had been said."""

    def __init__(self, context: TalkContext, trace: TurnTrace, guessed: Entry | None = None) -> None:
        self.conversation = context.conversation
        self.trace = trace
        self.ready: float | None = None
        """When the candidate's first sound or text was ready, clock seconds."""
        self._context = context
        self._held: list[Event] | None = None
        self._before = 0
        self._certain = asyncio.Event()
        if guessed is None:
            self._certain.set()
        else:
            self.conversation = Conversation(context.conversation)
            self.conversation.add(guessed)
            self._before = len(self.conversation)
            self._held = []
        self._there = {entry.item.id for entry in self.conversation}
        """Items that the reply may read: those before it, and its own."""

    @property
    def answered(self) -> Conversation:
        """The part of the conversation that the reply answers. A picture from a camera counts whenever it came."""
        if all(self._reads(entry) for entry in self.conversation):
            return self.conversation
        return Conversation(entry for entry in self.conversation if self._reads(entry))

    def _reads(self, entry: Entry) -> bool:
        return entry.item.id in self._there or entry.frame

    def put_in_place(self, entry: Entry) -> str | None:
        """Put an entry of the reply's own behind the last one that it reads; return the previous visible id. A front
        may put a later item in front of those."""
        order = [*self.conversation]
        place = max((at for at, known in enumerate(order, 1) if known.item.id in self._there), default=0)
        while place < len(order) and order[place].frame:
            place += 1
        self._there.add(entry.item.id)
        return self.conversation.add(entry, order[place - 1].item.id if place else "root")

    async def emit(self, event: Event) -> None:
        """Send the front an event, once it is certain that the reply is wanted."""
        if self._held is None:
            await self._context.emit(event)
        else:
            self._held.append(event)

    async def certain(self, *, audible: bool = False) -> None:
        """Wait until the reply is wanted. `audible`: its first sound or text comes next."""
        if not self._certain.is_set():
            if audible and self.ready is None:
                self.ready = self._context.now()
            await self._certain.wait()

    async def release(self, trace: TurnTrace) -> None:
        """Make this an ordinary reply, timed by `trace`: the turn is over, and the guess was right."""
        made = list(self.conversation)[self._before :]
        self.conversation, self.trace = self._context.conversation, trace
        for entry in made:
            self.put_in_place(entry)
        while self._held:  # in order, including what is made while the front takes its time
            await self._context.emit(self._held.pop(0))
        self._held = None
        self._certain.set()
