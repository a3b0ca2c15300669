"""Where a reply puts what it makes: the talk, its front, the times of its turn. Of a candidate nothing leaves it.

A candidate is a reply like any other, begun before it is certain that the user has finished. What it adds goes to a
draft of the conversation, what it tells is held back, and where its first sound or a call is to go out it waits.
`release` makes an ordinary reply of it; one that is dropped leaves nothing, because nothing ever left.
"""

from __future__ import annotations

import asyncio

from assistant.events import Event
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Conversation, Entry
from assistant.telemetry.trace import TurnTrace


class Outlet:
    """`guessed` None: of an ordinary reply. Else of a candidate, which answers this entry as if it had been said."""

    def __init__(self, context: TalkContext, trace: TurnTrace, guessed: Entry | None = None) -> None:
        self.conversation = context.conversation
        self.trace = trace
        self.ready: float | None = None
        """When the candidate's first sound or text was there, clock seconds."""
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

    async def emit(self, event: Event) -> None:
        """Tell the front, once it is certain that there is something to tell."""
        if self._held is None:
            await self._context.emit(event)
        else:
            self._held.append(event)

    async def certain(self, *, audible: bool = False) -> None:
        """Until the reply is wanted. `audible`: what comes now is its first sound or text."""
        if not self._certain.is_set():
            if audible and self.ready is None:
                self.ready = self._context.now()
            await self._certain.wait()

    async def release(self, trace: TurnTrace) -> None:
        """The turn is over and said what was guessed: from here on this is an ordinary reply, timed by `trace`."""
        made = list(self.conversation)[self._before :]
        self.conversation, self.trace = self._context.conversation, trace
        for entry in made:
            self.conversation.add(entry)
        while self._held:  # in order, also with what is made while the front takes its time
            await self._context.emit(self._held.pop(0))
        self._held = None
        self._certain.set()
