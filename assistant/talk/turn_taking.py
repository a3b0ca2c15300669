"""Turn-taking: the user begins, goes on and ends, a reply is made and sounds, and each has consequences.

Pure, one state and one function:

    state, effects = step(state, message, settings, now)

`TurnEffects` carries out all effects, in their order, before the next message of the inbox is handled. Every message
reaches this function first, including those that other parts answer too: any of them may end a reply in private.
Replies report their own events (begun, sounding, ended) at the moment they happen and not through the inbox: if the
user's first sound already waits there, it must find the reply as it is, or it would not stop it. Such events have no
effects.

An overlap is the user's speech that is under way, over a reply or over silence. It is announced to the front at once,
or with the verdict if it is judged, or at its end at the latest, and never twice. The table of `interruption` defines
how speech affects a reply.

A turn that was taken too early is reopened if the user goes on soon and heard little or nothing of the answer. Then the
answer and the turn are taken back, and the new turn holds the words of both. The ear decides at the onset whether
speech joins the last turn; this file decides when that turn is taken back.

A candidate is a reply begun in private when the user may have finished. It is dropped when the user goes on, or when
anything happens that might change it, and released when its turn is written down as it was guessed.

The newest frame of a camera enters the talk when the user begins to speak, types, or asks for a reply. It leaves with
speech that was not a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from assistant.events import (
    AudioCleared,
    CreateItem,
    CreateResponse,
    ReportHeard,
    RetrieveItem,
    SemanticVad,
    Settings,
    SpeechStarted,
    SpeechStopped,
    TranscriptPartial,
)
from assistant.talk import approvals
from assistant.talk.conversation import is_typed
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
    ReleaseCandidate,
    Reopen,
    SetAside,
    ShowFrame,
    SpeakUp,
    StartIdle,
    StartReply,
    StopIdle,
    StopReply,
)
from assistant.talk.interruption import (
    Action,
    Manner,
    Phase,
    Signal,
    actions,
    manner_of,
)
from assistant.talk.messages import (
    CallAsked,
    CandidateChecked,
    Cleared,
    ClientCancel,
    FrameCame,
    IdleOver,
    NothingToCommit,
    PictureCame,
    ReplyBegun,
    ReplyCut,
    ReplyEnded,
    ReplyFact,
    ReplyOut,
    ReplyOver,
    ReplySounding,
    SayNow,
    StillSilent,
    TurnMessage,
    UserBegan,
    UserEnded,
    UserMayBeDone,
    UserProgress,
    UserWords,
)
from assistant.talk.overheard import HUM_MS, Overheard, nod_words, only_nods, only_stops, verdict, words_behind
from assistant.talk.turn_end import question_silence_ms
from assistant.text.talk_words import TalkWords

UNLIKELY = 0.01
"""Up to this probability that the words are complete, no reply to them is begun."""
REOPEN_S = 1.5
"""A user who goes on this soon after the end of a turn had not finished it."""
LITTLE_S = 0.85
"""Sound of a reply that says nothing yet: up to here it can be taken back as if it had never begun. Behind a prepared
reply to a turn that ended after 150 ms, this covers a user who goes on after 900."""

# ------------------------------------------------------------------------------------------------ state


class Making(Enum):
    """The progress of the conversation's reply. NONE: none is being made; the last one may still sound."""

    NONE = auto()
    PRIVATE = auto()
    SOUNDING = auto()


@dataclass(frozen=True, slots=True)
class Overlap:
    """The user's speech that is under way, with facts about the turn it will be. `moment`: its first sample."""

    item_id: str
    start_ms: int
    moment: float
    joins: str | None = None
    """The turn that it continues, if that is reopened."""
    text: str = ""
    read: bool = False
    """It continues a turn, and `text` holds all that was said before the silence."""
    nod: str = ""
    """Its words if it is a nod."""
    nodded: bool = False
    """An earlier reading of it contained only a nod."""
    agrees: bool | None = None
    """A reading of it allowed the call that the reply asks about; None: it does not ask."""
    announced: bool = False
    complete: float | None = None
    """The probability that its words up to the last fall of the voice are a whole request; None: unknown."""
    barged_in: bool = False
    """It was announced over a reply."""
    silent_since: float | None = None
    """When the front was asked to hold the reply's sound for it."""
    yielded_ms: float | None = None
    """Time from its first sample to the moment when the reply fell silent: held, or otherwise stopped."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn that the latest reply answers, the moment of its last sound, its words, and how complete they seemed."""

    item_id: str
    end: float
    text: str = ""
    complete: float | None = None


@dataclass(frozen=True, slots=True)
class Joinable:
    """A turn that may have been taken too early: speech that begins before `until`, clock seconds, joins it."""

    item_id: str
    until: float


@dataclass(frozen=True, slots=True)
class TurnTakingState:
    """`judging` is set only while an overlap waits for its verdict: it is the manner of the interruption. The reply may
    be `lowered`, `held` (silent, at its sample), or `withdrawn` (stopped before it sounded)."""

    making: Making = Making.NONE
    play_end: float | None = None
    """When the sound of the last reply will have been played, clock seconds. None: there was no reply yet."""
    sounds_since: float | None = None
    """When the first sound of the latest reply went out. None: none of it has sounded yet."""
    overlap: Overlap | None = None
    judging: Manner | None = None
    lowered: bool = False
    held: bool = False
    withdrawn: bool = False
    answer_due: bool = False
    """A turn ended behind a reply that it did not stop."""
    answered: Answered | None = None
    guessing: str | None = None
    """The user pauses, and a reply to these words may be begun in private."""
    covered: bool = False
    """A silence within this turn's answer was covered by a phrase."""
    frames: bool = False
    """Frames of a camera have come."""
    asked: CallAsked | None = None
    """The latest reply asks whether a call may run. Words over its question are an answer, and get one."""

    @property
    def replying(self) -> bool:
        """Whether a reply of the conversation is being made."""
        return self.making is not Making.NONE

    def audible(self, now: float) -> bool:
        """Whether a reply sounds, as far as this can be known here."""
        return self.making is Making.SOUNDING or (self.play_end is not None and self.play_end > now)

    @property
    def quiet(self) -> bool:
        """Whether the floor is free: the user does not speak and no reply is being made."""
        return self.overlap is None and not self.replying


Step: TypeAlias = tuple[TurnTakingState, tuple[Effect, ...]]

# ------------------------------------------------------------------------------------------------- step


def step(
    state: TurnTakingState, message: TurnMessage, settings: Settings, now: float, known: TalkWords | None
) -> Step:
    """The next state, and the effects in order. Total: a message that is impossible in this state changes nothing."""
    after, effects = _row(state, message, settings, now, known)
    return after, (*effects, *_shown_to_speech(state, after, effects))


def _row(
    state: TurnTakingState, message: TurnMessage, settings: Settings, now: float, known: TalkWords | None
) -> Step:
    match message:
        case UserProgress():
            return _progress(state, message, settings, now, known)
        case UserMayBeDone():
            return _may_be_done(state, message, settings)
        case UserEnded():
            return _ended(state, message, settings, now, known)
        case CandidateChecked():
            return state, (ReleaseCandidate() if message.fits else DropCandidate(),)
        case FrameCame():
            return _frame_came(state, message)
        case PictureCame():
            return state, () if state.replying else (LookAhead(),)
        case ReplyBegun() | ReplySounding() | ReplyEnded() | ReplyCut() | CallAsked():
            return _of_reply(state, message, now), ()
        case ReplyOut():
            return state, (StartReply(),) if state.answer_due and not state.replying else ()
        case UserWords():
            answered = state.answered
            if answered is not None and answered.item_id == message.item_id and message.text:
                state = replace(state, answered=replace(answered, text=message.text))
            return state, () if message.text.strip() else _hidden(state, message.item_id)
        case StillSilent():
            return _cover(state, message)
        case NothingToCommit() | ReplyOver() | RetrieveItem() | ReportHeard():
            return state, ()
    # Anything else might change a reply that is made in private.
    state, dropped = _drop_guess(state)
    state, effects = _changed(state, message, settings, now)
    return state, (*dropped, *effects)


def _changed(state: TurnTakingState, message: TurnMessage, settings: Settings, now: float) -> Step:
    match message:
        case UserBegan():
            return _began(state, message, settings, now)
        case Cleared():
            return _cleared(state, message, settings, now)
        case ClientCancel():
            return _cancelled(state, settings, now)
        case SayNow():  # dropped, not stored: a timer's words would come minutes after the timer
            return state, (StartReply(message.text),) if state.quiet else ()
        case IdleOver():  # the time may have run out while the user's first word waited in the inbox
            return state, (SpeakUp(),) if state.quiet else ()
        case CreateItem() if is_typed(message):
            shown = (ShowFrame(None, ahead=not state.replying),) if state.frames else ()
            return replace(state, covered=False), shown
        case CreateResponse(params=params) if params.input is None and params.conversation == "auto":
            return state, (ShowFrame(None, ahead=True, asked=True),) if state.frames and not state.replying else ()
        case _:
            return state, ()


def _of_reply(state: TurnTakingState, fact: ReplyFact, now: float) -> TurnTakingState:
    match fact:
        case ReplyBegun():  # it answers the waiting turn, whatever it was asked for
            begun = replace(state, making=Making.PRIVATE, sounds_since=None, answer_due=False, withdrawn=False)
            return replace(begun, asked=None)
        case CallAsked():
            return replace(state, asked=fact)
        case ReplySounding():
            return replace(state, making=Making.SOUNDING, sounds_since=now) if state.replying else state
        case ReplyEnded():
            return replace(state, making=Making.NONE, play_end=fact.play_end)
        case ReplyCut():
            return state if state.play_end is None else replace(state, play_end=min(state.play_end, now))


def joinable(state: TurnTakingState, settings: Settings) -> Joinable | None:
    """The turn that speech may continue. There is one only if we decide when turns are over, and if replies are played
    as they come: a front that takes them faster goes on at once, and counts as having heard everything."""
    detection, answered = settings.turn_detection, state.answered
    if answered is None or not isinstance(detection, SemanticVad) or manner_of(settings) is Manner.LISTEN:
        return None
    if not settings.paced or not detection.create_response:
        return None
    if state.sounds_since is None:
        return Joinable(answered.item_id, answered.end + REOPEN_S) if state.replying else None
    if state.asked is not None:  # a yes or a no belongs to the question
        return None
    return Joinable(answered.item_id, min(answered.end + REOPEN_S, state.sounds_since + LITTLE_S))


def may_sound_at(state: TurnTakingState, asks_back: bool, settings: Settings) -> float:
    """When the first sound of the reply may go out, clock seconds; everything before it is made meanwhile. A reply that
    asks back waits for a user who may be about to go on, if the turn can still be taken back without a trace."""
    detection, answered = settings.turn_detection, state.answered
    if not asks_back or answered is None or not isinstance(detection, SemanticVad) or not joinable(state, settings):
        return 0.0
    return answered.end + question_silence_ms(detection, answered.complete) / 1000


def _cover(state: TurnTakingState, silent: StillSilent) -> Step:
    """Once a turn, and never over the user."""
    if state.covered or not state.replying or state.overlap is not None or state.held:
        return state, ()
    return replace(state, covered=True), (CoverSilence(silent.waiting),)


def _began(state: TurnTakingState, began: UserBegan, settings: Settings, now: float) -> Step:
    overlap = Overlap(began.item_id, began.start_ms, began.moment, began.joins)
    state, effects = _answer(replace(state, overlap=overlap), Signal.OVERLAP, settings, now)
    return state, (StopIdle(), *effects)


def _progress(
    state: TurnTakingState, progress: UserProgress, settings: Settings, now: float, known: TalkWords | None
) -> Step:
    effects: tuple[Effect, ...] = ()
    if state.overlap is None or state.overlap.item_id != progress.item_id:
        return state, effects
    joins = state.overlap.joins is not None
    # A turn that goes on is read from its first sound, so the words of the answered part are not news.
    words = words_behind(progress.text, state.answered.text) if joins and state.answered else progress.text
    agrees = state.overlap.agrees or _agrees(state, state.overlap, words, known)
    heard = Overheard(
        progress.speech_ms, progress.silence_ms, words, progress.read, progress.sure,
        goes_on=joins, nodded=state.overlap.nodded, nothing_new=bool(progress.text) and not words,
        agrees=agrees,
    )  # fmt: skip
    nodded = state.overlap.nodded or only_nods(words, known)
    nod = nod_words(heard, state.overlap.nod, known)
    overlap = replace(
        state.overlap, text=progress.text, read=joins and progress.read, nod=nod, nodded=nodded, agrees=agrees
    )
    state = replace(state, overlap=overlap)
    if state.judging is not None and (signal := verdict(heard, known, holds=state.lowered)) is not None:
        state, effects = _answer(state, signal, settings, now)
    if words and not only_nods(words, known):
        state, again = _reopen(state)
        effects = (*effects, *again)
    pauses = progress.fell or progress.silence_ms > 0
    if not pauses or (progress.read and progress.text != state.guessing):
        state, dropped = _drop_guess(state)
        effects = (*effects, *dropped)
    if state.overlap is not None and _answers(state, settings) and progress.stable and state.guessing is None:
        effects = (*effects, FoldWords(progress.text[: progress.stable]))
    # Words go out only for speech that the front knows of, so after the verdict and not before.
    if state.overlap is not None and state.overlap.announced and progress.text:
        effects = (*effects, TranscriptPartial(progress.item_id, progress.text, progress.stable))
    return state, effects


def _agrees(state: TurnTakingState, overlap: Overlap, words: str, known: TalkWords | None) -> bool | None:
    """Whether these words allow the call that the reply asks about; None: its question did not sound before them."""
    asked, sounds = state.asked, state.sounds_since
    if asked is None or sounds is None or overlap.moment < max(asked.since, sounds):
        return None
    return approvals.agrees(words, known, asked.yes)


def _adds_nothing(overlap: Overlap, last_sound: float, answered: Answered | None, known: TalkWords | None) -> bool:
    """Whether speech that continues an answered turn was read, and has no words of its own, or only those of a nod. If
    it is longer than a hum, it must have been read to its end for that."""
    if overlap.joins is None or answered is None or not overlap.text:
        return False
    if not overlap.read and (last_sound - overlap.moment) * 1000 > HUM_MS:
        return False
    words = words_behind(overlap.text, answered.text)
    return not words or only_nods(words, known)


def _may_be_done(state: TurnTakingState, done: UserMayBeDone, settings: Settings) -> Step:
    if state.overlap is None or state.overlap.item_id != done.item_id:
        return state, ()
    state = replace(state, overlap=replace(state.overlap, complete=done.complete))
    if not _answers(state, settings):
        return state, ()
    unknown, open_end = done.complete is None, done.complete is not None and done.complete <= UNLIKELY
    if not done.text.strip() or done.held or open_end or (unknown and not done.paused):
        return state, ()
    return replace(state, guessing=done.text), (BeginCandidate(done.item_id, done.text),)


def _drop_guess(state: TurnTakingState) -> Step:
    return (state, ()) if state.guessing is None else (replace(state, guessing=None), (DropCandidate(),))


def _answers(state: TurnTakingState, settings: Settings) -> bool:
    """Whether a reply will follow the user's speech that is under way, and the models are free now."""
    detection = settings.turn_detection
    return detection is not None and detection.create_response and not state.replying and state.judging is None


def _ended(
    state: TurnTakingState, ended: UserEnded, settings: Settings, now: float, known: TalkWords | None
) -> Step:
    if ended.was_announced and (state.overlap is None or state.overlap.item_id != ended.item_id):
        return state, ()  # it was taken for a nod while its end was already on the way
    effects: tuple[Effect, ...] = ()
    if state.judging is not None:
        if state.overlap is not None and _adds_nothing(state.overlap, ended.moment, state.answered, known):
            return _answer(state, Signal.BACKCHANNEL, settings, now)
        state, effects = _answer(state, Signal.TURN_ENDED, settings, now)
    state, again = _reopen(state)
    effects = (*effects, *again)
    if ended.was_announced:
        state, announced = _announce(state, now)
        effects = (*effects, *announced, SpeechStopped(ended.item_id, ended.end_ms))
    spoken = state.overlap
    barged_in, yielded_ms = (spoken.barged_in, spoken.yielded_ms) if spoken is not None else (False, None)
    state = replace(state, overlap=None, answered=None, covered=False)
    effects = (*effects, CommitTurn(ended.item_id, ended.moment, barged_in, yielded_ms))
    detection = settings.turn_detection
    state, guess = _drop_guess(state)  # unless it is the reply that begins now
    if ended.by_hand or detection is None or not detection.create_response:
        return state, (*effects, *guess)
    if state.replying:
        return replace(state, answer_due=True), (*effects, *guess)
    if isinstance(detection, SemanticVad):
        # A correction begins like an order to stop ("no, nine"): it is one only if nothing follows.
        halts = spoken is not None and (barged_in or spoken.read) and state.asked is None
        if spoken is not None and halts and only_stops(spoken.text, known):
            return state, (*effects, *guess)  # the reply stopped, and that is the answer
        text, complete = (spoken.text, spoken.complete) if spoken is not None else ("", None)
        state = replace(state, answered=Answered(ended.item_id, ended.moment, text, complete))
    return state, (*effects, StartReply())


def _cleared(state: TurnTakingState, cleared: Cleared, settings: Settings, now: float) -> Step:
    effects: tuple[Effect, ...] = ()
    if state.overlap is not None and state.overlap.item_id == cleared.item_id:
        due = state.withdrawn
        if state.judging is not None:
            state, effects = _answer(state, Signal.CLEARED, settings, now)
        state = replace(state, overlap=None)
        effects += _for_nothing(state, due)
    return state, (*effects, AudioCleared())


def _cancelled(state: TurnTakingState, settings: Settings, now: float) -> Step:
    state, effects = _answer(state, Signal.CLIENT_CANCEL, settings, now)
    # The front took back this reply, not the turn that was waiting behind it.
    return state, (*effects, StartReply()) if state.answer_due and not state.replying else effects


# ------------------------------------------------------------------------------------------- pictures


def _frame_came(state: TurnTakingState, frame: FrameCame) -> Step:
    """Show a frame that comes in the middle of speech, in place of an earlier one if it differs much from that."""
    state, overlap = replace(state, frames=True), state.overlap
    if overlap is None or overlap.joins is not None:
        return state, ()
    if not (frame.changed if frame.turn == overlap.item_id else frame.new):
        return state, ()
    state, dropped = _drop_guess(state)
    return state, (*dropped, ShowFrame(overlap.item_id, ahead=not state.replying))


def _shown_to_speech(
    before: TurnTakingState, after: TurnTakingState, effects: tuple[Effect, ...]
) -> tuple[Effect, ...]:
    """Effects on frames when the user began to speak, or when that was not a turn. Speech that continues a turn already
    has its frame."""
    old, new = before.overlap, after.overlap
    if (old and old.item_id) == (new and new.item_id):
        return ()
    found: tuple[Effect, ...] = ()
    if old is not None and not any(isinstance(one, CommitTurn) and one.item_id == old.item_id for one in effects):
        restarts = any(isinstance(one, StartReply) for one in effects)
        found = _hidden(after, old.item_id, restarts)
    if new is not None and new.joins is None and after.frames:
        found = (*found, ShowFrame(new.item_id, ahead=not after.replying))
    return found


def _hidden(state: TurnTakingState, turn: str, restarts: bool = False) -> tuple[Effect, ...]:
    return (HideFrame(turn, settle=not state.replying and not restarts),) if state.frames else ()


# ---------------------------------------------------------------------------- looking up the table


def phase_of(state: TurnTakingState, now: float) -> Phase:
    """The state of the reply. Judged speech comes first: it waits for its verdict even if another reply has begun."""
    if state.judging is not None:
        return Phase.JUDGED
    if state.making is Making.NONE:
        playing = state.play_end is not None and state.play_end > now
        return Phase.PLAYED_OUT if playing else Phase.NONE
    return Phase.PRIVATE if state.making is Making.PRIVATE else Phase.SOUNDING


def _answer(state: TurnTakingState, signal: Signal, settings: Settings, now: float) -> Step:
    """Carry out the table's actions in its order. A verdict on judged speech other than "perhaps" ends the judging."""
    phase = phase_of(state, now)
    manner = state.judging or manner_of(settings)
    effects: tuple[Effect, ...] = ()
    for action in actions(phase, signal, manner):
        state, more = _do(state, action, signal, manner, now)
        effects += more
    if phase is Phase.JUDGED and signal not in (Signal.OVERLAP, Signal.LIKELY):
        state = replace(state, judging=None, lowered=False, held=False, withdrawn=False)
    return state, effects


def _do(state: TurnTakingState, action: Action, signal: Signal, manner: Manner, now: float) -> Step:
    match action:
        case Action.ANNOUNCE_SPEECH:
            return _announce(state, now)
        case Action.JUDGE:
            return replace(state, judging=manner), ()
        case Action.DUCK:
            return replace(state, lowered=True), (Level.LOWER,)
        case Action.HOLD:
            return _hold(state, now)
        case Action.RESUME:
            return state, (Level.RAISE,) if state.lowered else ()
        case Action.STOP_PLAYER:
            return state, (Level.DROP,) if state.lowered or state.replying else ()
        case Action.STOP_REPLY:
            return _stop(state, signal, now)
        case Action.WITHDRAW_REPLY:
            state, effects = _stop(state, signal, now)
            return replace(state, withdrawn=True), effects
        case Action.SET_ASIDE:
            return _set_aside(state)


def _announce(state: TurnTakingState, now: float) -> Step:
    overlap = state.overlap
    if overlap is None or overlap.announced:
        return state, ()
    over = phase_of(state, now) is not Phase.NONE
    state = replace(state, overlap=replace(overlap, announced=True, barged_in=over and overlap.joins is None))
    return state, (SpeechStarted(overlap.item_id, overlap.start_ms),)


def _hold(state: TurnTakingState, now: float) -> Step:
    held = replace(state, held=True)
    if state.held or not state.lowered:
        return held, ()
    if state.overlap is not None:
        held = replace(held, overlap=replace(state.overlap, silent_since=now))
    return held, (Level.HOLD,)


def _stop(state: TurnTakingState, signal: Signal, now: float) -> Step:
    """Count the reply as gone from here on; ReplyEnded carries the time when its sound would have ended. A turn that is
    continued is reopened behind it."""
    stopped = replace(state, making=Making.NONE)
    effects: tuple[Effect, ...] = ()
    if state.replying:
        effects = (StopReply("client_cancelled" if signal is Signal.CLIENT_CANCEL else "turn_detected"),)
    overlap = state.overlap
    if overlap is None or signal is Signal.CLIENT_CANCEL:
        return stopped, effects
    if state.making is Making.SOUNDING:  # silence cannot yield
        silent = now if overlap.silent_since is None else overlap.silent_since
        yielded_ms = max(0.0, (silent - overlap.moment) * 1000)
        stopped = replace(stopped, overlap=replace(overlap, yielded_ms=yielded_ms))
    if signal is not Signal.OVERLAP:
        stopped, again = _reopen(replace(stopped, judging=None))
        effects = (*effects, *again)
    return stopped, effects


def _reopen(state: TurnTakingState) -> Step:
    """The turn under way continues one that was answered. No answer is still being judged or made, so it can be taken
    back, whether it was stopped for this or had already ended. A guess stands behind that answer and cannot fit
    any more. It goes first, because the models take guesses back only in a talk that is still the same."""
    joins = state.overlap.joins if state.overlap is not None else None
    if joins is None or state.answered is None or state.judging is not None or state.replying:
        return state, ()
    state, dropped = _drop_guess(state)
    return replace(state, answered=None), (*dropped, Reopen(joins))


def _set_aside(state: TurnTakingState) -> Step:
    if state.overlap is None:
        return state, ()
    aside = SetAside(state.overlap.item_id, state.overlap.nod)
    after = replace(state, overlap=None)
    return after, (aside, *_for_nothing(after, state.withdrawn))


def _for_nothing(state: TurnTakingState, due: bool) -> tuple[Effect, ...]:
    """Recover after speech that meant nothing: make a withdrawn reply anew, or wait for the user again."""
    if state.replying:
        return ()
    if due:
        return (StartReply(),)
    return () if state.play_end is None else (StartIdle(state.play_end),)
