"""The user speaks: over a reply, which then yields or goes on, to the end of a turn, and what was said.

What speech does to a reply stands in the table of `assistant.interrupt`; here it is carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from assistant.events import (
    AudioCleared,
    AudioCommitted,
    AudioPart,
    Duck,
    ItemAdded,
    ItemDone,
    Message,
    Resume,
    SpeechStarted,
    SpeechStopped,
    StopPlayback,
    TranscriptCompleted,
    TranscriptDelta,
    TranscriptFailed,
    TranscriptPartial,
)
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry
from assistant.talk.hearing import Cleared, UserBegan, UserEnded, UserProgress, UserWords
from assistant.talk.idle import IdleTimer
from assistant.talk.interruption import Action, Phase, Signal, actions, manner_of, verdict
from assistant.talk.replies import Replies
from assistant.talk.turns import TurnTimes


class PendingTranscripts:
    """Turns that are certain and not yet written down."""

    def __init__(self, shared: TalkContext, turns: TurnTimes) -> None:
        self._shared, self._turns = shared, turns
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def ready(self) -> None:
        """All committed sound has been written down."""
        while self._waiting:
            await asyncio.wait(list(self._waiting.values()))

    async def commit(self, item_id: str, transcript: str | None = None) -> None:
        """The user's turn becomes an item; without a transcript its words are still to come."""
        if transcript is None:
            self._waiting[item_id] = asyncio.get_running_loop().create_future()
        item = Message(item_id, "user", (AudioPart(transcript),))
        previous = self._shared.conversation.add(Entry(item))
        await self._shared.emit(AudioCommitted(item_id, previous))
        await self._shared.emit(ItemAdded(item, previous))
        await self._shared.emit(ItemDone(item, previous))

    async def arrived(self, words: UserWords) -> None:
        """What a committed turn said; its item may have been deleted meanwhile."""
        future = self._waiting.pop(words.item_id, None)
        if future is None:
            return
        self._turns.transcribed()
        conversation, emit = self._shared.conversation, self._shared.emit
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


@dataclass(slots=True)
class _Overlap:
    """The user's speech that is under way."""

    item_id: str
    start_ms: int
    moment: float
    announced: bool = False


class TurnTaking:
    """Who speaks. `drop` makes hearing forget a turn that was a cough or a nod."""

    def __init__(
        self, shared: TalkContext, replies: Replies, turns: TurnTimes, words: PendingTranscripts, idle: IdleTimer,
        drop: Callable[[str], None],
    ) -> None:
        self._shared, self._replies, self._turns, self._words = shared, replies, turns, words
        self._idle, self._drop = idle, drop
        self._overlap: _Overlap | None = None
        self._ducked = False
        self._barged_in = False
        self._yielded_ms: float | None = None

    @property
    def taken(self) -> bool:
        """Whether the user speaks now."""
        return self._overlap is not None

    async def began(self, began: UserBegan) -> None:
        self._idle.stop()
        self._overlap = _Overlap(began.item_id, began.start_ms, began.moment)
        await self._act(Signal.OVERLAP)

    async def progress(self, progress: UserProgress) -> None:
        overlap = self._overlap
        if overlap is None or overlap.item_id != progress.item_id:
            return
        if self._ducked:
            over = progress.silence_ms > 0
            if (signal := verdict(progress.speech_ms, progress.text, over)) is not None:
                await self._act(signal)
        if overlap.announced and progress.text:
            await self._shared.emit(TranscriptPartial(progress.item_id, progress.text))

    async def ended(self, ended: UserEnded) -> None:
        if ended.was_announced and (self._overlap is None or self._overlap.item_id != ended.item_id):
            return
        if self._ducked:
            await self._act(Signal.TURN_ENDED)
        if ended.was_announced:
            await self._announce()
            await self._shared.emit(SpeechStopped(ended.item_id, ended.end_ms))
        self._overlap = None
        self._turns.spoken(ended.moment, after_barge_in=self._barged_in, yielded_ms=self._yielded_ms)
        self._barged_in, self._yielded_ms = False, None
        await self._words.commit(ended.item_id)
        detection = self._shared.settings.turn_detection
        if not ended.by_hand and detection is not None and detection.create_response:
            await self._replies.to_turn()

    async def cleared(self, cleared: Cleared) -> None:
        """The front took back what it had sent."""
        if self._overlap is not None and self._overlap.item_id == cleared.item_id:
            self._overlap = None
            if self._ducked:
                await self._do(Action.RESUME)
            self._quiet_again()
        await self._shared.emit(AudioCleared())

    async def stop_player(self) -> None:
        """The reply is cancelled by the front while its sound is lowered: that sound must not go on."""
        if self._ducked:
            await self._do(Action.STOP_PLAYER)

    @property
    def _phase(self) -> Phase:
        active, last = self._replies.active, self._replies.last
        if active is None:
            if self._ducked:
                return Phase.DUCKED
            playing = last is not None and last.play_end > self._shared.now()
            return Phase.PLAYED_OUT if playing else Phase.NONE
        if active.reply.first_sent is None:
            return Phase.PRIVATE
        return Phase.DUCKED if self._ducked else Phase.SOUNDING

    async def _act(self, signal: Signal) -> None:
        """Do what the table says, in its order."""
        for action in actions(self._phase, signal, manner_of(self._shared.settings)):
            await self._do(action)

    async def _do(self, action: Action) -> None:
        emit = self._shared.emit
        sounding = next(self._replies.latest(), None)
        at = (sounding.id, sounding.item_ids[-1]) if sounding is not None and sounding.item_ids else None
        match action:
            case Action.ANNOUNCE_SPEECH:
                await self._announce()
            case Action.DUCK if at is not None:
                self._ducked = True
                await emit(Duck(*at))
            case Action.RESUME if at is not None:
                self._ducked = False
                await emit(Resume(*at))
            case Action.STOP_PLAYER if at is not None:
                self._ducked = False
                await emit(StopPlayback(*at))
            case Action.STOP_REPLY:
                await self._stop_reply()
            case Action.FORGET_OVERLAP:
                if self._overlap is not None:
                    self._drop(self._overlap.item_id)
                    self._overlap = None
                    self._quiet_again()

    def _quiet_again(self) -> None:
        """Nothing was said after all: the wait for the user goes on behind the last reply."""
        if self._replies.active is None and self._replies.last is not None:
            self._idle.start(self._replies.last.play_end)

    async def _announce(self) -> None:
        overlap = self._overlap
        if overlap is not None and not overlap.announced:
            overlap.announced = True
            self._barged_in = self._phase is not Phase.NONE
            await self._shared.emit(SpeechStarted(overlap.item_id, overlap.start_ms))

    async def _stop_reply(self) -> None:
        active = self._replies.active
        if active is not None and self._overlap is not None and active.reply.last_sent:
            self._yielded_ms = max(0.0, (self._shared.now() - self._overlap.moment) * 1000)
        await self._replies.stop(active, "turn_detected")
