"""Carries out the decisions of turn-taking, and nothing else: every decision stands in `turn_taking`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from assistant.events import (
    AudioCleared,
    Duck,
    IdleTimeout,
    ResponseParams,
    Resume,
    SpeechStarted,
    SpeechStopped,
    StopPlayback,
    TranscriptPartial,
)
from assistant.talk.amends import Amends
from assistant.talk.context import TalkContext
from assistant.talk.cover import PHRASES
from assistant.talk.effects import (
    BeginCandidate,
    CommitTurn,
    CoverSilence,
    DropCandidate,
    Effect,
    FoldWords,
    HideFrame,
    Level,
    LookAhead,
    Reopen,
    SetAside,
    ShowFrame,
    SpeakUp,
    StartIdle,
    StartReply,
    StopIdle,
    StopReply,
)
from assistant.talk.interruption import Manner, manner_of
from assistant.talk.messages import TurnMessage
from assistant.talk.pending import PendingTranscripts
from assistant.talk.replies import Replies
from assistant.talk.shown import Shown
from assistant.talk.turns import TurnTimes

LEVELS: dict[Level, Callable[[str, str], Duck | Resume | StopPlayback]] = {
    Level.LOWER: Duck, Level.HOLD: partial(Duck, level=0.0), Level.RAISE: Resume, Level.DROP: StopPlayback,
}  # fmt: skip


class TurnEffects:
    """Belongs to the session's one task: all effects of a message are done before the next message is handled."""

    def __init__(
        self, context: TalkContext, replies: Replies, turns: TurnTimes, words: PendingTranscripts, amends: Amends,
        shown: Shown,
    ) -> None:  # fmt: skip
        self._context, self._replies, self._turns, self._words = context, replies, turns, words
        self._amends, self._shown = amends, shown
        self._candidates, self._idle = replies.candidates, replies.idle

    async def react_to(self, message: TurnMessage) -> None:
        """Raises PeerError if a reply that is due cannot be made."""
        # All effects are decided before the first one is carried out. Events that this causes (a stopped reply ends)
        # reach turn-taking in between and have no effects, so nothing comes into the middle of this row.
        for effect in self._context.tell(message):
            await self._do(effect)

    async def _do(self, effect: Effect) -> None:
        match effect:
            case SpeechStarted() | SpeechStopped() | TranscriptPartial() | AudioCleared():
                await self._context.emit(effect)
                if isinstance(effect, SpeechStarted) and manner_of(self._context.settings) is not Manner.LISTEN:
                    await self._replies.hush_asides()
            case Level():
                await self._set_level(effect)
            case StopReply():
                await self._replies.stop(self._replies.active, effect.reason)
            case SetAside():
                await self._amends.set_aside(effect)
            case Reopen():
                await self._amends.reopen(effect)
            case CommitTurn():  # its time begins before its item, and covers the front's reaction to the item
                self._turns.spoken(
                    effect.last_sound, after_barge_in=effect.after_barge_in, yielded_ms=effect.yielded_ms
                )
                await self._words.commit(effect.item_id)
            case BeginCandidate():
                await self._candidates.begin_candidate(effect.item_id, effect.text)
            case DropCandidate():
                await self._candidates.drop_candidate()
            case FoldWords():
                self._candidates.fold_words(effect.text)
            case ShowFrame():
                self._shown.show_frame(effect)
            case HideFrame():
                self._shown.hide_frame(effect)
            case LookAhead():
                self._candidates.look_ahead()
            case StartReply():
                await self._replies.start(ResponseParams(), effect.say)
            case CoverSilence():
                if words := self._context.phrase(effect.waiting, PHRASES[effect.waiting]):
                    self._replies.cover(words)
            case SpeakUp():
                await self._speak_up()
            case StopIdle():
                self._idle.stop()
            case StartIdle():
                self._idle.start(effect.play_end)

    async def _set_level(self, level: Level) -> None:
        """Set the level of the latest message: a reply may have several, and the player is inside the last one."""
        sounding = next(self._replies.latest(), None)
        if sounding is not None and sounding.item_ids:
            await self._context.emit(LEVELS[level](sounding.id, sounding.item_ids[-1]))

    async def _speak_up(self) -> None:
        item_id = self._context.services.ids("item")
        now_ms = self._amends.hearing.input_ms
        await self._context.emit(IdleTimeout(item_id, now_ms, now_ms))
        await self._words.commit(item_id, "")
        self._turns.silent()
        await self._replies.start(ResponseParams())
