"""What was said is taken back: turns, the end of a talk, all of it, and what the session's own tools did in it."""

from __future__ import annotations

from assistant.base.errors import PeerError
from assistant.events import ItemDeleted
from assistant.talk.context import TalkContext
from assistant.talk.sync import StateSync
from assistant.tools.errors import AnswerError

EXCHANGE = 2
"""Turns that a spoken "undo that" takes back: itself, and the one before."""


class TakeBack:
    """No reply of the conversation runs while something is taken back; whoever asks for it has seen to that."""

    def __init__(self, context: TalkContext, state_sync: StateSync) -> None:
        self._context, self._state_sync = context, state_sync
        self.gone: set[str] = set()
        """Items that were deleted here and not by the front: its late reports on them are no mistake of its."""

    async def turns(self, turns: int) -> str:
        """The last turns, question and answer, and what tools did in them; in words, if they did something."""
        return await self.back_to(self._context.conversation.turns_back(turns))

    async def back_to(self, item_ids: tuple[str, ...]) -> str:
        changes = self._context.conversation.changes(item_ids)
        kept = self._context.view.kept
        try:
            told = kept.told(changes)
            kept.put_back(changes)
        except AnswerError as error:
            raise PeerError("not_stored", str(error)) from error
        await self._drop(item_ids)
        return told

    async def everything(self) -> None:
        """All that was said; what was asked to be kept, a timer or a list, is kept."""
        await self._drop(tuple(reversed([item.id for item in self._context.conversation.items])))

    async def _drop(self, item_ids: tuple[str, ...]) -> None:
        """From the end backwards: that is what an undo looks like to a client that knows only deletions. All are gone
        before the first is told, so that half an undo is never what is kept."""
        conversation, gone = self._context.conversation, []
        for item_id in item_ids:
            if item_id in conversation:  # hidden ones go with their last visible neighbour
                conversation.delete(item_id)
                gone.append(item_id)
        self.gone.update(gone)
        for item_id in gone:
            await self._context.emit(ItemDeleted(item_id))
        self._state_sync.soon()
