"""Corrections that later speech asks for: a nod was not a turn, or a turn was taken too early."""

from __future__ import annotations

from assistant.events import AudioPart, ItemAdded, ItemDone, Message, Nod
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry
from assistant.talk.effects import Reopen, SetAside
from assistant.talk.hearing import Hearing
from assistant.talk.take_back import TakeBack


class Amends:
    """Belongs to the session's one task, like everything that changes the conversation."""

    def __init__(self, context: TalkContext, hearing: Hearing, take_back: TakeBack) -> None:
        self._context, self.hearing, self._take_back = context, hearing, take_back

    async def set_aside(self, effect: SetAside) -> None:
        """Nothing is answered and no model reads it; its words, if any, stand in the transcript."""
        self.hearing.set_turn_aside(effect.item_id)
        if effect.words:
            item = Message(effect.item_id, "user", (AudioPart(effect.words),))
            previous = self._context.conversation.add(Entry(item, nod=True))
            await self._context.emit(Nod(effect.item_id, effect.words))
            await self._context.emit(ItemAdded(item, previous))
            await self._context.emit(ItemDone(item, previous))

    async def reopen(self, effect: Reopen) -> None:
        """Remove the turn and its answer from the conversation, roll the models' state back to before them, and undo
        what tools did. The turn that goes on holds the words of both."""
        talk = self._context.conversation
        if effect.item_id in talk:
            await self._take_back.back_to((*talk.after(effect.item_id), effect.item_id))
