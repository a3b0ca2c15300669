"""Makes the changes to the talk that the session's own tools asked for in a reply, once the reply is out.

They must wait: an undo that the person asked for takes back its own turn too, and its answer must be said by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from assistant.base.errors import PeerError
from assistant.talk.context import TalkContext
from assistant.talk.preferences import Preferences
from assistant.talk.take_back import EXCHANGE, TakeBack
from assistant.tools.registry import ToolResult


class ToolEffects:
    """Called after a reply of the conversation has ended, and before the next may begin."""

    def __init__(self, context: TalkContext, take_back: TakeBack, preferences: Preferences) -> None:
        self._context, self._take_back, self._preferences = context, take_back, preferences

    async def do(self, results: Sequence[ToolResult]) -> None:
        for result in results:
            match result.effect:
                case "undo":
                    await self._take_back.turns(EXCHANGE)
                case "start_over":
                    await self._take_back.everything()
                case "forget" if (forget := self._context.services.forget) is not None:
                    await forget(result.argument)
                case "switch_persona":
                    with suppress(PeerError):  # the model named it, so no front waits for an error
                        settings = self._preferences.as_persona(result.argument)
                        await self._preferences.become(settings, self._context.now())
