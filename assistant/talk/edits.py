"""Items made, cut to what was heard, deleted, taken back."""

from __future__ import annotations

from dataclasses import replace

from assistant.base.errors import PeerError
from assistant.events import (
    REPLY_RATE,
    CreateItem,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemTruncated,
    Message,
    ReportHeard,
    Rewind,
    TextPart,
    ToolUsed,
    TruncateItem,
)
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry, item_text
from assistant.talk.replies import Replies
from assistant.talk.sync import StateSync
from assistant.tools.kept import Kept


class Edits:
    """What a front does to the conversation. Whatever touches the running reply stops it first."""

    def __init__(self, shared: TalkContext, replies: Replies, state_sync: StateSync, kept: Kept) -> None:
        self._shared, self._replies, self._state_sync, self._kept = shared, replies, state_sync, kept
        self._conversation = shared.conversation
        self._heard_ms: dict[str, float] = {}
        self._cut_here: set[str] = set()

    async def create(self, command: CreateItem) -> None:
        item = command.item
        if isinstance(item, Message) and item.role == "assistant":
            item = replace(item, content=tuple(TextPart(item_text(replace(item, content=(p,)))) for p in item.content))
        previous = self._conversation.add(Entry(item), command.after)
        await self._shared.emit(ItemAdded(item, previous))
        await self._shared.emit(ItemDone(item, previous))

    async def delete(self, item_id: str) -> None:
        self._conversation.entry(item_id)
        await self._stop_maker(item_id)
        self._conversation.delete(item_id)
        await self._shared.emit(ItemDeleted(item_id))
        self._sync()

    async def truncate(self, command: TruncateItem) -> None:
        if command.item_id in self._cut_here:
            await self._shared.emit(ItemTruncated(command.item_id, command.content_index, 0, ""))
            return
        self._conversation.entry(command.item_id)
        await self._stop_maker(command.item_id)
        cut = self._conversation.truncate(command.item_id, command.content_index, command.audio_end_ms)
        last = self._replies.last
        if last is not None and command.item_id in last.item_ids:
            last.play_end = min(last.play_end, self._shared.now())
        await self._shared.emit(ItemTruncated(cut.item_id, command.content_index, cut.audio_end_ms, cut.transcript))
        if cut.changed:
            self._sync()

    def heard(self, report: ReportHeard) -> None:
        """The front's player is so far; late reports and those that go backwards say nothing."""
        if report.played_ms <= self._heard_ms.get(report.item_id, 0.0):
            return
        if report.item_id not in self._heard_ms:
            for reply in self._replies.latest():
                if reply.item_ids[:1] == [report.item_id]:
                    reply.trace.played(self._shared.now() - report.played_ms / 1000)
        if report.item_id in self._conversation:
            self._heard_ms[report.item_id] = report.played_ms

    async def undo(self, turns: int) -> None:
        if turns < 1:
            raise PeerError("invalid_value", f"undo takes 1 turn or more, not {turns}", "turns")
        await self._replies.stop(self._replies.active, "client_cancelled")
        told = await self.take_back(turns)
        if told:
            await self._shared.emit(ToolUsed("", "undo", "", told, 0.0))

    async def rewind(self, command: Rewind) -> None:
        self._conversation.entry(command.item_id)
        await self._replies.stop(self._replies.active, "client_cancelled")
        text = self._conversation.cut_to_words(command.item_id, command.words)
        await self._back_to(self._conversation.after(command.item_id))
        pieces = self._conversation.entry(command.item_id).pieces
        if command.words is not None:
            end_ms = sum(piece.samples for piece in pieces) * 1000 // REPLY_RATE
            await self._shared.emit(ItemTruncated(command.item_id, 0, end_ms, text))

    async def take_back(self, turns: int) -> str:
        """The last turns, question and answer, and what tools did in them; in words, if they did something."""
        return await self._back_to(self._conversation.turns_back(turns))

    async def _back_to(self, item_ids: tuple[str, ...]) -> str:
        before = self._conversation.before(item_ids)
        told = self._kept.told(before)
        self._kept.put_back(before)
        await self._drop(item_ids)
        return told

    async def take_back_all(self) -> None:
        """All that was said; what was asked to be kept, a timer or a list, is kept."""
        await self._drop(tuple(reversed([item.id for item in self._conversation.items])))

    async def _drop(self, item_ids: tuple[str, ...]) -> None:
        """Take items out from the end backwards; a front may still report on them, which is no mistake of its."""
        for item_id in item_ids:
            if item_id in self._conversation:
                self._conversation.delete(item_id)
                self._cut_here.add(item_id)
                self._heard_ms.pop(item_id, None)
                await self._shared.emit(ItemDeleted(item_id))
        self._state_sync.soon()

    async def _stop_maker(self, item_id: str) -> None:
        if self._replies.makes(item_id):
            await self._replies.stop(self._replies.active, "client_cancelled")

    def _sync(self) -> None:
        """While a reply runs the models are its; the next reply settles them."""
        if self._replies.active is None:
            self._state_sync.soon()
