"""Takes back parts of a talk: turns, its end, all of it, along with what the session's own tools did in it."""

from __future__ import annotations

from assistant.base.errors import PeerError
from assistant.events import ItemDeleted, MemoryChanged
from assistant.talk.context import TalkContext
from assistant.talk.sync import StateSync
from assistant.tools.errors import AnswerError
from assistant.tools.rows import MEMORY

EXCHANGE = 2
"""A spoken "undo that" takes back this many turns: itself, and the one before."""


class TakeBack:
    """No reply of the conversation runs while something is taken back; the caller has seen to that."""

    def __init__(self, context: TalkContext, state_sync: StateSync) -> None:
        self._context, self._state_sync = context, state_sync
        self.gone: set[str] = set()
        """Items that were deleted here and not by the front, so its late reports on them are not errors."""

    async def turns(self, turns: int) -> str:
        """Take back the last turns, question and answer, and what tools did in them; return the latter in words."""
        return await self.back_to(self._context.conversation.turns_back(turns))

    async def back_to(self, item_ids: tuple[str, ...]) -> str:
        changes = self._context.conversation.changes(item_ids)
        kept = self._context.view.kept
        try:
            told = kept.told(changes)
            done = [(old, new) for slot, old, new in kept.put_back(changes) if slot == MEMORY]
        except AnswerError as error:
            raise PeerError("not_stored", str(error)) from error
        await self._drop(item_ids)
        if done:
            back = tuple(new.words for _, new in done if new is not None)
            await self._context.emit(MemoryChanged("", back, tuple(old.words for old, _ in done if old is not None)))
        return told

    async def everything(self) -> None:
        """Take back all that was said; timers and lists that were asked for stay."""
        self._context.view.kept.settle()
        await self._drop(tuple(reversed([item.id for item in self._context.conversation.items])))

    async def _drop(self, item_ids: tuple[str, ...]) -> None:
        """Delete from the end backwards: an undo looks like this to a client that knows only deletions. All items are
        gone before the first deletion is announced, so that the journal never holds half an undo."""
        conversation, gone = self._context.conversation, []
        for item_id in item_ids:
            if item_id in conversation:  # hidden ones go with their last visible neighbour
                conversation.delete(item_id)
                gone.append(item_id)
        self.gone.update(gone)
        for item_id in gone:
            await self._context.emit(ItemDeleted(item_id))
        self._state_sync.soon()
