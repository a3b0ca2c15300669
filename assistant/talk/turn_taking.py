"""Who speaks: the user begins, goes on and ends, a reply is made and sounds, and what follows from it.

Pure, one state and one function:

    state, effects = step(state, message, settings, now)

`TurnEffects` carries the effects out in their order, all of them, before the next message of the inbox is taken.
Replies tell their own facts (begun, sounding, ended) at the moment they happen and not by way of the inbox: a user's
first sound that already waits there must find the reply as it is, else it would not stop it. Such facts have no
effects.

An overlap is the user's speech that is under way, over a reply or over silence. It is announced to the front at once,
or with the verdict where the reply is only ducked, or at the latest at its end, and never twice. What speech does to a
reply stands in the table of `interruption`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from assistant.events import AudioCleared, Settings, SpeechStarted, SpeechStopped, TranscriptPartial
from assistant.talk.interruption import Action, Manner, Phase, Signal, actions, manner_of, verdict
from assistant.talk.messages import (
    Cleared,
    ClientCancel,
    IdleOver,
    ReplyBegun,
    ReplyCut,
    ReplyEnded,
    ReplyOut,
    ReplySounding,
    SayNow,
    TurnMessage,
    UserBegan,
    UserEnded,
    UserProgress,
)

# ------------------------------------------------------------------------------------------------ state


class Making(Enum):
    """How far the conversation's reply is. NONE: none is being made; the last one may still sound."""

    NONE = auto()
    PRIVATE = auto()
    SOUNDING = auto()


@dataclass(frozen=True, slots=True)
class Overlap:
    """The user's speech that is under way, and what is known of the turn it will be. `moment`: its first sample."""

    item_id: str
    start_ms: int
    moment: float
    announced: bool = False
    barged_in: bool = False
    """It was announced over a reply."""
    yielded_ms: float | None = None
    """From its first sample to the moment in which the reply was stopped for it."""


@dataclass(frozen=True, slots=True)
class TurnTakingState:
    """`ducked` only while there is an overlap that is to decide about it."""

    making: Making = Making.NONE
    play_end: float | None = None
    """When the sound of the last reply will have been played, clock seconds. None: there was no reply yet."""
    overlap: Overlap | None = None
    ducked: bool = False
    answer_due: bool = False
    """A turn ended behind a reply that it did not stop."""

    @property
    def replying(self) -> bool:
        """A reply of the conversation is being made."""
        return self.making is not Making.NONE

    @property
    def quiet(self) -> bool:
        """Nobody has the word: the user does not speak and no reply is being made."""
        return self.overlap is None and not self.replying


# ---------------------------------------------------------------------------------------------- effects


class Level(Enum):
    """What a front's player is to do with the sound of the latest reply."""

    LOWER = auto()
    RAISE = auto()
    DROP = auto()


@dataclass(frozen=True, slots=True)
class StopReply:
    """End the running reply as cancelled, if there still is one."""

    reason: str


@dataclass(frozen=True, slots=True)
class ForgetTurn:
    """Hearing drops this turn: it was a cough or a nod."""

    item_id: str


@dataclass(frozen=True, slots=True)
class CommitTurn:
    """The turn becomes an item. `last_sound` is the moment of its last speech sample."""

    item_id: str
    last_sound: float
    after_barge_in: bool
    yielded_ms: float | None


@dataclass(frozen=True, slots=True)
class StartReply:
    """Answer the conversation, or speak these words as they are."""

    say: str | None = None


@dataclass(frozen=True, slots=True)
class SpeakUp:
    """Nobody spoke: an empty turn of the user, and a reply to it."""


@dataclass(frozen=True, slots=True)
class StopIdle:
    """Somebody speaks: the wait for it is over."""


@dataclass(frozen=True, slots=True)
class StartIdle:
    """The wait for the user goes on behind a reply that plays until `play_end`."""

    play_end: float


Told: TypeAlias = SpeechStarted | SpeechStopped | TranscriptPartial | AudioCleared
Effect: TypeAlias = Told | Level | StopReply | ForgetTurn | CommitTurn | StartReply | SpeakUp | StopIdle | StartIdle
Step: TypeAlias = tuple[TurnTakingState, tuple[Effect, ...]]

# ------------------------------------------------------------------------------------------------- step


def step(state: TurnTakingState, message: TurnMessage, settings: Settings, now: float) -> Step:
    """The next state, and what is to be done, in this order. Total: what cannot be in this state changes nothing."""
    match message:
        case UserBegan():
            return _began(state, message, settings, now)
        case UserProgress():
            return _progress(state, message, settings, now)
        case UserEnded():
            return _ended(state, message, settings, now)
        case Cleared():
            return _cleared(state, message, settings, now)
        case ClientCancel():
            return _cancelled(state, settings, now)
        case ReplyOut():
            return state, (StartReply(),) if state.answer_due and not state.replying else ()
        case SayNow():  # dropped, not kept: a timer's words would come minutes after the timer
            return state, (StartReply(message.text),) if state.quiet else ()
        case IdleOver():  # the time may have run out while the user's first word waited in the inbox
            return state, (SpeakUp(),) if state.quiet else ()
        case _:
            return _of_reply(state, message, now), ()


def _of_reply(
    state: TurnTakingState, fact: ReplyBegun | ReplySounding | ReplyEnded | ReplyCut, now: float
) -> TurnTakingState:
    match fact:
        case ReplyBegun():  # it answers whoever waited, whatever it was asked for
            return replace(state, making=Making.PRIVATE, answer_due=False)
        case ReplySounding():
            return replace(state, making=Making.SOUNDING) if state.replying else state
        case ReplyEnded():
            return replace(state, making=Making.NONE, play_end=fact.play_end)
        case ReplyCut():
            return state if state.play_end is None else replace(state, play_end=min(state.play_end, now))


def _began(state: TurnTakingState, began: UserBegan, settings: Settings, now: float) -> Step:
    overlap = Overlap(began.item_id, began.start_ms, began.moment)
    state, effects = _answer(replace(state, overlap=overlap), Signal.OVERLAP, settings, now)
    return state, (StopIdle(), *effects)


def _progress(state: TurnTakingState, progress: UserProgress, settings: Settings, now: float) -> Step:
    effects: tuple[Effect, ...] = ()
    if state.overlap is None or state.overlap.item_id != progress.item_id:
        return state, effects
    if state.ducked:
        over = progress.silence_ms > 0
        if (signal := verdict(progress.speech_ms, progress.text, over)) is not None:
            state, effects = _answer(state, signal, settings, now)
    # Words go out only of speech that the front knows of, so after the verdict and not before.
    if state.overlap is not None and state.overlap.announced and progress.text:
        effects = (*effects, TranscriptPartial(progress.item_id, progress.text, progress.stable))
    return state, effects


def _ended(state: TurnTakingState, ended: UserEnded, settings: Settings, now: float) -> Step:
    if ended.was_announced and (state.overlap is None or state.overlap.item_id != ended.item_id):
        return state, ()  # it was taken for a nod while its end was already on the way here
    effects: tuple[Effect, ...] = ()
    if state.ducked:
        state, effects = _answer(state, Signal.TURN_ENDED, settings, now)
    if ended.was_announced:
        state, announced = _announce(state, now)
        effects = (*effects, *announced, SpeechStopped(ended.item_id, ended.end_ms))
    spoken = state.overlap
    barged_in, yielded_ms = (spoken.barged_in, spoken.yielded_ms) if spoken is not None else (False, None)
    state = replace(state, overlap=None)
    effects = (*effects, CommitTurn(ended.item_id, ended.moment, barged_in, yielded_ms))
    detection = settings.turn_detection
    if ended.by_hand or detection is None or not detection.create_response:
        return state, effects
    if state.replying:
        return replace(state, answer_due=True), effects
    return state, (*effects, StartReply())


def _cleared(state: TurnTakingState, cleared: Cleared, settings: Settings, now: float) -> Step:
    effects: tuple[Effect, ...] = ()
    if state.overlap is not None and state.overlap.item_id == cleared.item_id:
        if state.ducked:
            state, effects = _answer(state, Signal.CLEARED, settings, now)
        state = replace(state, overlap=None)
        effects += _quiet_again(state)
    return state, (*effects, AudioCleared())


def _cancelled(state: TurnTakingState, settings: Settings, now: float) -> Step:
    state, effects = _answer(state, Signal.CLIENT_CANCEL, settings, now)
    # The front took back this reply, not the turn that was waiting behind it.
    return state, (*effects, StartReply()) if state.answer_due and not state.replying else effects


# ---------------------------------------------------------------------------------------- the table asked


def phase_of(state: TurnTakingState, now: float) -> Phase:
    """Where the reply is. Ducked sound comes first: it waits for its verdict even if another reply has begun since."""
    if state.ducked:
        return Phase.DUCKED
    if state.making is Making.NONE:
        playing = state.play_end is not None and state.play_end > now
        return Phase.PLAYED_OUT if playing else Phase.NONE
    return Phase.PRIVATE if state.making is Making.PRIVATE else Phase.SOUNDING


def _answer(state: TurnTakingState, signal: Signal, settings: Settings, now: float) -> Step:
    """What the table says, in its order."""
    phase = phase_of(state, now)
    manner = Manner.DUCK if phase is Phase.DUCKED else manner_of(settings)
    effects: tuple[Effect, ...] = ()
    for action in actions(phase, signal, manner):
        state, more = _do(state, action, signal, now)
        effects += more
    return state, effects


def _do(state: TurnTakingState, action: Action, signal: Signal, now: float) -> Step:
    match action:
        case Action.ANNOUNCE_SPEECH:
            return _announce(state, now)
        case Action.DUCK:
            return replace(state, ducked=True), (Level.LOWER,)
        case Action.RESUME:
            return replace(state, ducked=False), (Level.RAISE,)
        case Action.STOP_PLAYER:
            return replace(state, ducked=False), (Level.DROP,)
        case Action.STOP_REPLY:
            return _stop(state, signal, now)
        case Action.FORGET_OVERLAP:
            return _forget(state)


def _announce(state: TurnTakingState, now: float) -> Step:
    overlap = state.overlap
    if overlap is None or overlap.announced:
        return state, ()
    barged_in = phase_of(state, now) is not Phase.NONE
    state = replace(state, overlap=replace(overlap, announced=True, barged_in=barged_in))
    return state, (SpeechStarted(overlap.item_id, overlap.start_ms),)


def _stop(state: TurnTakingState, signal: Signal, now: float) -> Step:
    """The reply counts as gone from here on; when its sound would have ended is told with its end."""
    stopped = replace(state, making=Making.NONE)
    if not state.replying:
        return stopped, ()
    if signal is Signal.CLIENT_CANCEL:
        return stopped, (StopReply("client_cancelled"),)
    if state.overlap is not None and state.making is Making.SOUNDING:  # silence cannot yield
        yielded_ms = max(0.0, (now - state.overlap.moment) * 1000)
        stopped = replace(stopped, overlap=replace(state.overlap, yielded_ms=yielded_ms))
    return stopped, (StopReply("turn_detected"),)


def _forget(state: TurnTakingState) -> Step:
    if state.overlap is None:
        return state, ()
    after = replace(state, overlap=None)
    return after, (ForgetTurn(state.overlap.item_id), *_quiet_again(after))


def _quiet_again(state: TurnTakingState) -> tuple[Effect, ...]:
    """Nothing was said after all: the wait for the user goes on behind the last reply."""
    if state.replying or state.play_end is None:
        return ()
    return (StartIdle(state.play_end),)
