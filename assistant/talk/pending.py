"""Turns that are certain and not yet written down: their items are in the conversation before their words are."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from assistant.events import (
    AudioCommitted,
    AudioPart,
    ItemAdded,
    ItemDone,
    Message,
    TranscriptCompleted,
    TranscriptDelta,
    TranscriptFailed,
)
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry
from assistant.talk.messages import UserWords
from assistant.talk.turns import TurnTimes


class PendingTranscripts:
    """A reply is ordered as soon as its turn is certain; it waits here for the words it is to answer."""

    def __init__(self, context: TalkContext, turns: TurnTimes) -> None:
        self._context, self._turns = context, turns
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def ready(self) -> None:
        """Wait until all committed sound has been written down."""
        while self._waiting:
            await asyncio.wait(list(self._waiting.values()))

    async def commit(self, item_id: str, transcript: str | None = None) -> None:
        """Make the user's turn an item; without a transcript its words are still to come."""
        if transcript is None:
            self._waiting[item_id] = asyncio.get_running_loop().create_future()
        item = Message(item_id, "user", (AudioPart(transcript),))
        previous = self._context.conversation.add(Entry(item))
        await self._context.emit(AudioCommitted(item_id, previous))
        await self._context.emit(ItemAdded(item, previous))
        await self._context.emit(ItemDone(item, previous))

    async def arrived(self, words: UserWords) -> None:
        """Write down the words of a committed turn; its item may have been deleted meanwhile."""
        future = self._waiting.pop(words.item_id, None)
        if future is None:
            return
        self._turns.transcribed()
        conversation, emit = self._context.conversation, self._context.emit
        if words.item_id in conversation:
            entry = conversation.entry(words.item_id)
            assert isinstance(entry.item, Message)
            conversation.put(replace(entry, item=replace(entry.item, content=(AudioPart(words.text),))))
            if words.failed is not None:
                await emit(TranscriptFailed(words.item_id, 0, "transcription_failed", words.failed))
            else:
                if words.text:
                    await emit(TranscriptDelta(words.item_id, 0, words.text))
                await emit(TranscriptCompleted(words.item_id, 0, words.text, words.seconds))
        if not future.done():
            future.set_result(None)
