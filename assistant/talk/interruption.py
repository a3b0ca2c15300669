"""The effect of speech over a reply, and of the front's own cancel, as a table.

A row consists of the reply's phase, the signal, and the manner in which this front is interrupted; it gives the
actions in order. `turn_taking.step` looks rows up, and a test walks through all of them. There is no row for a
cancel while nothing runs: that is an error of the front and is answered before it gets here.

Manners: `stop`, server detection as the protocol has it: the first sign of speech stops the reply. `judge`, semantic
detection: a front with plain protocol semantics learns of speech only with the verdict, because it would drop its
sound. `duck`, a front that can lower, hold and resume the sound. `listen`, interruption switched off: the reply goes
on.
"""

from __future__ import annotations

from enum import Enum, auto

from assistant.events import SemanticVad, ServerVad, Settings


class Phase(Enum):
    """The state of the reply. PRIVATE: being made, nothing audible yet. PLAYED_OUT: made, still sounding. JUDGED:
    speech over it waits for its verdict, whether or not the reply is finished."""

    NONE = auto()
    PRIVATE = auto()
    SOUNDING = auto()
    JUDGED = auto()
    PLAYED_OUT = auto()


class Signal(Enum):
    """An observation. OVERLAP: speech began. LIKELY: it is not a nod so far. INTERRUPTION and BACKCHANNEL: the verdict
    on it. CLEARED: the front took that sound back."""

    OVERLAP = auto()
    LIKELY = auto()
    INTERRUPTION = auto()
    BACKCHANNEL = auto()
    TURN_ENDED = auto()
    CLEARED = auto()
    CLIENT_CANCEL = auto()


class Manner(Enum):
    STOP = auto()
    JUDGE = auto()
    DUCK = auto()
    LISTEN = auto()


class Action(Enum):
    """JUDGE waits for a verdict in this manner. STOP_REPLY ends the reply as cancelled; WITHDRAW_REPLY does too, and
    makes it anew if it was stopped for nothing. STOP_PLAYER instructs a front that can; SET_ASIDE takes the user's
    sound out of the turns and stores its words as a nod."""

    ANNOUNCE_SPEECH = auto()
    JUDGE = auto()
    DUCK = auto()
    HOLD = auto()
    RESUME = auto()
    STOP_REPLY = auto()
    WITHDRAW_REPLY = auto()
    STOP_PLAYER = auto()
    SET_ASIDE = auto()


A = Action
TABLE: dict[tuple[Phase, Signal, Manner], tuple[Action, ...]] = {
    (Phase.NONE, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.JUDGE): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.DUCK): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # Nothing was heard of the reply yet: going on would answer half a question. If speech is judged, the verdict shows
    # whether it was a cough; then the question was whole.
    (Phase.PRIVATE, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.JUDGE): (A.JUDGE, A.WITHDRAW_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.DUCK): (A.JUDGE, A.WITHDRAW_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.JUDGE): (A.JUDGE,),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.DUCK): (A.JUDGE, A.DUCK),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # The reply is made but still plays at the front, which stops its own player and reports how much was heard.
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH,),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.JUDGE): (A.JUDGE,),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.DUCK): (A.JUDGE, A.DUCK),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # Speech is judged in the manner in which its judging began, whatever the settings say by then: otherwise a lowered
    # sound would stay low for ever. New speech, behind some that never ended (detection was switched off and on), is
    # judged like the first.
    (Phase.JUDGED, Signal.OVERLAP, Manner.JUDGE): (),
    (Phase.JUDGED, Signal.OVERLAP, Manner.DUCK): (),
    (Phase.JUDGED, Signal.LIKELY, Manner.JUDGE): (),
    (Phase.JUDGED, Signal.LIKELY, Manner.DUCK): (A.HOLD,),
    (Phase.JUDGED, Signal.INTERRUPTION, Manner.JUDGE): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.JUDGED, Signal.INTERRUPTION, Manner.DUCK): (A.ANNOUNCE_SPEECH, A.STOP_PLAYER, A.STOP_REPLY),
    (Phase.JUDGED, Signal.TURN_ENDED, Manner.JUDGE): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.JUDGED, Signal.TURN_ENDED, Manner.DUCK): (A.ANNOUNCE_SPEECH, A.STOP_PLAYER, A.STOP_REPLY),
    (Phase.JUDGED, Signal.BACKCHANNEL, Manner.JUDGE): (A.SET_ASIDE,),
    (Phase.JUDGED, Signal.BACKCHANNEL, Manner.DUCK): (A.RESUME, A.SET_ASIDE),
    (Phase.JUDGED, Signal.CLEARED, Manner.JUDGE): (),
    (Phase.JUDGED, Signal.CLEARED, Manner.DUCK): (A.RESUME,),
    # A front that cancels stops its own player; only a lowered one must be told how its sound goes on.
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.STOP): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.JUDGE): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.LISTEN): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.STOP): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.JUDGE): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.LISTEN): (A.STOP_REPLY,),
    (Phase.JUDGED, Signal.CLIENT_CANCEL, Manner.JUDGE): (A.STOP_REPLY,),
    (Phase.JUDGED, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_PLAYER, A.STOP_REPLY),
}


def actions(phase: Phase, signal: Signal, manner: Manner) -> tuple[Action, ...]:
    return TABLE.get((phase, signal, manner), ())


def manner_of(settings: Settings) -> Manner:
    """The manner in which this front is interrupted."""
    detection = settings.turn_detection
    if isinstance(detection, ServerVad | SemanticVad) and not detection.interrupt_response:
        return Manner.LISTEN
    if settings.duck:
        return Manner.DUCK
    return Manner.JUDGE if isinstance(detection, SemanticVad) else Manner.STOP
