"""A sign of life: a reply that is silent for long, because a tool runs or a model thinks, is covered by a short phrase.

`turn_taking` decides whether it is said. The voice speaks it from a fork of its state, and the model is never told of
it, so a reply that was covered goes on exactly as one that was not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from assistant.talk.context import TalkContext
from assistant.talk.messages import StillSilent, Waiting
from assistant.talk.reply import Reply

COVER_AFTER_S = 1.2
LOOK_S = 0.3
PHRASES: dict[Waiting, str] = {"looks": "Let me look.", "works": "One moment.", "thinks": "Let me think."}
"""English; only talks in a language that is certain are covered, others than English in the persona's words."""


class SignOfLife:
    """Watches the conversation's reply, and puts one StillSilent into the inbox if it keeps silent."""

    def __init__(self, context: TalkContext) -> None:
        self._context = context
        self._watching: asyncio.Task[None] | None = None

    def watch(self, reply: Callable[[], Reply]) -> None:
        """Begin with a reply. `reply` returns it, or the one that was made in private, once that is released."""
        self.stop()
        order = reply().order
        certain = self._context.known_words is not None or self._context.language is not None
        if order.paced and order.response.modality == "audio" and certain:
            self._watching = self._context.group.create_task(self._watch(reply))

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self, reply: Callable[[], Reply]) -> None:
        clock, begun = self._context.services.clock, self._context.now()
        end = begun
        while True:
            await clock.sleep_until(end + COVER_AFTER_S)
            if reply().lead.play_end > end:  # something sounded meanwhile
                end = reply().lead.play_end
            elif (waiting := reply().waiting) is not None:
                await self._context.inbox.send(StillSilent(reply().id, waiting))
                return
            else:  # a sentence is being made, or the words of the turn are
                await clock.sleep_until(self._context.now() + LOOK_S)
