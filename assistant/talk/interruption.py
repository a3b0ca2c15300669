"""What speech over a reply does to it, and what the front's own cancel does, as a table.

A row is the reply's phase, what was noticed, and the manner in which this front is interrupted; it gives the
actions in order. `turn_taking.step` asks it, and every row can be asked: a test walks there. What it may ask and finds
no row for, a cancel where nothing runs, is an error of the front and is answered before.

Manners: `stop`, a front with plain protocol semantics, stops at the first sign of speech. `duck`, a front that can
lower and resume the sound, waits for a verdict. `listen`, interruption switched off, lets the reply go on.
"""

from __future__ import annotations

from enum import Enum, auto

from assistant.events import SemanticVad, ServerVad, Settings


class Phase(Enum):
    """Where the reply is. PRIVATE: being made, nothing audible yet. PLAYED_OUT: made, still sounding. DUCKED: its sound
    is lowered, whether or not it is made by now."""

    NONE = auto()
    PRIVATE = auto()
    SOUNDING = auto()
    DUCKED = auto()
    PLAYED_OUT = auto()


class Signal(Enum):
    """What was noticed. OVERLAP: speech began. INTERRUPTION and BACKCHANNEL: the verdict on it. CLEARED: the front took
    that sound back."""

    OVERLAP = auto()
    INTERRUPTION = auto()
    BACKCHANNEL = auto()
    TURN_ENDED = auto()
    CLEARED = auto()
    CLIENT_CANCEL = auto()


class Manner(Enum):
    STOP = auto()
    DUCK = auto()
    LISTEN = auto()


class Action(Enum):
    """STOP_REPLY ends it as cancelled; STOP_PLAYER tells a front that can; FORGET_OVERLAP drops the user's sound."""

    ANNOUNCE_SPEECH = auto()
    DUCK = auto()
    RESUME = auto()
    STOP_REPLY = auto()
    STOP_PLAYER = auto()
    FORGET_OVERLAP = auto()


A = Action
TABLE: dict[tuple[Phase, Signal, Manner], tuple[Action, ...]] = {
    (Phase.NONE, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.DUCK): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # Nothing was heard of the reply yet: going on would answer half a question.
    (Phase.PRIVATE, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.DUCK): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.DUCK): (A.DUCK,),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # The reply is made but still plays at the front, which stops its own player and reports what was heard.
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH,),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.DUCK): (A.DUCK,),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # Only a front that can duck is ever ducked, and it is judged in that manner to the end of the overlap, whatever its
    # settings say by then: else its sound would stay low for ever. Speech anew, behind some that never ended (detection
    # was switched off and on), is judged like the first.
    (Phase.DUCKED, Signal.OVERLAP, Manner.DUCK): (),
    (Phase.DUCKED, Signal.INTERRUPTION, Manner.DUCK): (A.ANNOUNCE_SPEECH, A.STOP_PLAYER, A.STOP_REPLY),
    (Phase.DUCKED, Signal.TURN_ENDED, Manner.DUCK): (A.ANNOUNCE_SPEECH, A.STOP_PLAYER, A.STOP_REPLY),
    (Phase.DUCKED, Signal.BACKCHANNEL, Manner.DUCK): (A.RESUME, A.FORGET_OVERLAP),
    (Phase.DUCKED, Signal.CLEARED, Manner.DUCK): (A.RESUME,),
    # A front that cancels stops its own player; only a lowered one waits to be told what becomes of its sound.
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.STOP): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.LISTEN): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.STOP): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.LISTEN): (A.STOP_REPLY,),
    (Phase.DUCKED, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_PLAYER, A.STOP_REPLY),
}


def actions(phase: Phase, signal: Signal, manner: Manner) -> tuple[Action, ...]:
    return TABLE.get((phase, signal, manner), ())


def manner_of(settings: Settings) -> Manner:
    """How this front is interrupted."""
    detection = settings.turn_detection
    if isinstance(detection, ServerVad | SemanticVad) and not detection.interrupt_response:
        return Manner.LISTEN
    return Manner.DUCK if settings.duck else Manner.STOP


VERDICT_AFTER_MS = 350
"""Speech that lasts this long over a reply is an interruption, unless its words say otherwise. A nod is over by
then, and of a real question one word is there."""
VERDICT_LIMIT_MS = 500
"""From here on it is one whatever the words: nobody should have to talk against a voice for longer."""
BACKCHANNELS = frozenset(
    ["mhm", "mm", "hm", "hmm", "uh-huh", "uh", "huh", "yeah", "yes", "yep", "okay", "ok", "right", "sure", "aha", "ah",
     "oh", "i", "see", "really", "wow", "nice", "cool"]
)  # fmt: skip


def verdict(speech_ms: float, words: str, over: bool) -> Signal | None:
    """Whether speech over a reply is meant to stop it.

    `speech_ms` since it began, `words` heard so far, `over`: it has stopped again. None: too early to say.
    """
    said = words.lower().replace(",", " ").replace(".", " ").split()
    only_backchannels = all(word in BACKCHANNELS for word in said)
    # A short sound without a word is a cough, or the echo of our own voice: nothing to stop for.
    if over:
        return Signal.BACKCHANNEL if speech_ms < VERDICT_LIMIT_MS and only_backchannels else Signal.INTERRUPTION
    if speech_ms >= VERDICT_LIMIT_MS:
        return Signal.INTERRUPTION
    if speech_ms >= VERDICT_AFTER_MS and said and not only_backchannels:
        return Signal.INTERRUPTION
    return None
