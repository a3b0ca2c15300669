"""The language model's judgement of how complete the user's words sound so far."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from assistant.base.errors import EngineFailed
from assistant.talk.context import TalkContext


class Completeness:
    """Judges one text at a time, and remembers the last answer."""

    def __init__(self, context: TalkContext) -> None:
        self._context = context
        self._asking = asyncio.Lock()
        self._asked: tuple[str, str] | None = None
        self._complete: float | None = None

    async def judge_words(self, item_id: str, text: str) -> float | None:
        """Return the probability that these words are the whole next turn; None if it is unknown.

        The model is not asked while it makes a reply: folding these words would roll that reply back.
        """
        context = self._context
        async with self._asking:
            if context.turn.replying:
                return None
            if self._asked != (item_id, text) or self._complete is None:
                # Ask only once: by now the model may be making a reply to these words.
                prompt = context.view.said(context.settings, text)
                self._asked, self._complete = (item_id, text), None
                if (llm := context.services.llm.state) is not None:
                    with suppress(EngineFailed):
                        self._complete = await llm.turn_end_probability(context.talk, prompt)
            return self._complete
