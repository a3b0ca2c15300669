"""Items are created, cut to what was heard, deleted and taken back, as the front asks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from assistant.base.errors import PeerError
from assistant.events import (
    REPLY_RATE,
    CreateItem,
    FunctionOutput,
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
from assistant.talk.conversation import item_text
from assistant.talk.keeping import pictures_of
from assistant.talk.messages import FrameCame, PictureCame, ReplyCut
from assistant.talk.replies import Replies
from assistant.talk.shown import Shown
from assistant.talk.sync import StateSync
from assistant.talk.take_back import TakeBack

ALL_HEARD_MS = 100.0
"""A front that reported so little less than there was has played all of it: positions are rounded."""


class Edits:
    """Carries out a front's edits of the conversation. An edit that touches the running reply stops it first."""

    def __init__(
        self, context: TalkContext, replies: Replies, state_sync: StateSync, take_back: TakeBack, shown: Shown
    ) -> None:
        self._context, self._replies, self._state_sync, self._take_back = context, replies, state_sync, take_back
        self._shown = shown
        self._conversation = context.conversation
        self._heard_ms: dict[str, float] = {}
        self.cut = False
        """Whether something was cut when the front had gone: the models do not know it yet."""

    async def create(self, command: CreateItem) -> FrameCame | PictureCame | None:
        """Return what turn-taking must know about pictures in the item."""
        item = command.item
        if isinstance(item, FunctionOutput) and item.call_id not in self._conversation.calls:
            raise PeerError("invalid_value", f"there is no call {item.call_id!r} in this conversation", "item.call_id")
        if isinstance(item, Message) and item.role == "assistant":
            item = replace(item, content=tuple(TextPart(item_text(replace(item, content=(p,)))) for p in item.content))
        entry = self._shown.entry(replace(command, item=item))
        if pictures_of(entry):
            await self._context.services.offload(partial(self._context.keeping.keep, entry))
        previous = self._conversation.add(entry, command.after)
        came = self._shown.item_added(entry)
        item = entry.item
        await self._context.emit(ItemAdded(item, previous))
        await self._context.emit(ItemDone(item, previous))
        return came

    async def delete(self, item_id: str) -> None:
        if item_id in self._shown.let_go:
            await self._context.emit(ItemDeleted(item_id))
            return
        self._conversation.entry(item_id)
        await self._stop_maker(item_id)
        self._context.view.kept.settle()
        self._conversation.delete(item_id)
        await self._context.emit(ItemDeleted(item_id))
        self._sync()

    async def cut_item(self, command: TruncateItem) -> None:
        if command.item_id in self._take_back.gone:  # already cut to nothing; clients wait for the answer
            await self._context.emit(ItemTruncated(command.item_id, command.content_index, 0, ""))
            return
        self._conversation.spoken(command.item_id, command.content_index)  # what is refused stops nothing
        await self._stop_maker(command.item_id)
        cut = self._conversation.truncate(command.item_id, command.content_index, command.audio_end_ms)
        # The player stopped there, so speech from now on is over silence and does not interrupt.
        last = self._replies.last
        if last is not None and command.item_id in last.item_ids:
            self._context.tell(ReplyCut())
        await self._context.emit(ItemTruncated(cut.item_id, command.content_index, cut.audio_end_ms, cut.transcript))
        if cut.changed:
            self._sync()

    async def heard(self, report: ReportHeard) -> None:
        """Record how far the front's player is. Late reports, and those that go backwards, change nothing."""
        if report.played_ms <= self._heard_ms.get(report.item_id, 0.0):
            return
        # A reply's first report shows when its first sample left the loudspeaker: the last part of the turn's time.
        if report.item_id not in self._heard_ms:
            for reply in self._replies.latest():
                if reply.item_ids[:1] == [report.item_id]:
                    reply.trace.played(self._context.now() - report.played_ms / 1000)
        if report.item_id in self._conversation:
            self._heard_ms[report.item_id] = report.played_ms
            keeping = self._context.keeping
            keeping.note(self._conversation)  # a reply under way included
            keeping.heard(report.item_id, report.played_ms)

    def leave(self) -> None:
        """The front is gone: of a reply that it had not played to its end, what it last reported is kept. Nothing is
        known of a front that does not report.
        """
        reply = self._replies.leave()
        if reply is None or not self._heard_ms:
            return
        for item_id in reversed(reply.item_ids):
            if item_id not in self._conversation:
                continue
            heard_ms = self._heard_ms.get(item_id, 0.0)
            sound_ms = sum(piece.samples for piece in self._conversation.entry(item_id).pieces) * 1000 / REPLY_RATE
            if sound_ms - heard_ms > ALL_HEARD_MS:
                self._conversation.truncate(item_id, 0, int(heard_ms))
                self.cut = True
            if heard_ms:  # those before it were played to their end
                return

    async def undo(self, turns: int) -> None:
        if turns < 1:
            raise PeerError("invalid_value", f"undo takes 1 turn or more, not {turns}", "turns")
        # Its turn is among those taken back, so anything it would still say is about words that no longer exist.
        await self._replies.stop(self._replies.active, "client_cancelled")
        told = await self._take_back.turns(turns)
        if told:
            await self._context.emit(ToolUsed("", "undo", "", told, 0.0))

    async def rewind(self, command: Rewind) -> None:
        self._conversation.entry(command.item_id)
        await self._replies.stop(self._replies.active, "client_cancelled")
        text = self._conversation.cut_to_words(command.item_id, command.words)
        await self._take_back.back_to(self._conversation.after(command.item_id))
        pieces = self._conversation.entry(command.item_id).pieces
        if command.words is not None:
            end_ms = sum(piece.samples for piece in pieces) * 1000 // REPLY_RATE
            await self._context.emit(ItemTruncated(command.item_id, 0, end_ms, text))

    async def _stop_maker(self, item_id: str) -> None:
        if self._replies.makes(item_id):
            await self._replies.stop(self._replies.active, "client_cancelled")

    def _sync(self) -> None:
        """Bring the models in line, unless a reply is using them: then the next reply does it."""
        if not self._context.turn.replying:
            self._state_sync.soon()
