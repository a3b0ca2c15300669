"""The words that a transcriber should lean towards, renewed as the talk goes on."""

from __future__ import annotations

from assistant.events import Message
from assistant.talk.context import TalkContext
from assistant.talk.conversation import item_text
from assistant.talk.expected import RECENT, expected


class Leaning:
    """Follows one talk. The words change with an item, or when a reply ends."""

    def __init__(self, context: TalkContext) -> None:
        self._context = context
        self._key: tuple[int, bool] | None = None
        self.words: tuple[str, ...] = ()

    def renew(self) -> None:
        """Renew the words before an utterance."""
        context = self._context
        key = len(context.conversation), context.turn.replying
        if key == self._key:
            return
        self._key = key
        messages = [item for item in context.conversation.items if isinstance(item, Message)][-RECENT:]
        reply = next((item_text(one) for one in reversed(messages) if one.role == "assistant"), "")
        declared = (tool.name for tool in context.settings.tools)
        self.words = expected(context.view.kept.words, list(map(item_text, messages)), reply, declared)
