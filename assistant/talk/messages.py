"""The messages that reach a session's inbox besides commands, and those that turn-taking alone is told.

All of it in one place and frozen, so that the pure parts can be fed it and the others need not know each other. Times
called `moment` or `play_end` are the clock's seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from assistant.base.errors import EngineFailed, PeerError
from assistant.events import Command

# --------------------------------------------------------------------------------- noticed by hearing


@dataclass(frozen=True, slots=True)
class UserBegan:
    """Speech began at `start_ms` of the input; `moment` is when that was. `joins`: the turn that it goes on with, whose
    sound is written down with its own."""

    item_id: str
    start_ms: int
    moment: float
    joins: str | None = None


@dataclass(frozen=True, slots=True)
class UserProgress:
    """Still in the turn: its words so far, speech and current silence in milliseconds. The first `stable` characters of
    the words will not change; `read`: they are all that was said before the silence. `sure`: the mean probability that
    it is speech. `fell`: the voice has, whether or not there is silence yet."""

    item_id: str
    text: str
    speech_ms: float
    silence_ms: float
    stable: int = 0
    read: bool = False
    sure: float = 1.0
    fell: bool = False


@dataclass(frozen=True, slots=True)
class UserMayBeDone:
    """The turn may be over with these words. They serve only to begin a reply: words that were read where the voice
    fell are shown to no front, which would see by them that one is begun.

    complete   probability that they are a whole request; None: unknown
    held       their end wants more
    paused     read at a pause, and not where the voice fell: what is not known yet is known by then
    """

    item_id: str
    text: str
    complete: float | None = None
    held: bool = False
    paused: bool = True


@dataclass(frozen=True, slots=True)
class UserEnded:
    """The turn is certain. `moment`: the last speech sample. `by_hand`: the front committed it. `was_announced`: its
    beginning was noticed, so a UserBegan came before."""

    item_id: str
    end_ms: int
    moment: float
    by_hand: bool
    was_announced: bool


@dataclass(frozen=True, slots=True)
class UserWords:
    """The words of the turn. `failed` holds the reason when the transcriber broke."""

    item_id: str
    text: str
    confidence: float | None
    seconds: float
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class NothingToCommit:
    """A commit by hand of less sound than the protocol takes."""

    cause: str | None
    had_ms: float


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that came in and cannot be done."""

    error: PeerError
    cause: str | None


@dataclass(frozen=True, slots=True)
class Cleared:
    """The uncommitted sound is gone; `item_id` names the turn that was under way, if any."""

    item_id: str | None


# ------------------------------------------------------------------------------- of the session itself


@dataclass(frozen=True, slots=True)
class ReplyOver:
    """A reply's task has ended by itself. One that was stopped in the meantime is known no more."""

    response_id: str
    failure: EngineFailed | PeerError | None


@dataclass(frozen=True, slots=True)
class IdleOver:
    """Nobody spoke for as long as the front allows."""


@dataclass(frozen=True, slots=True)
class SayNow:
    """The talk itself has something to say (a timer went off)."""

    text: str


# ------------------------------------------------------------------------------------ of what is shown


@dataclass(frozen=True, slots=True)
class FrameCame:
    """The newest frame of a camera waits outside the talk. `turn`: the turn that the last one was shown to. `new`: the
    model has none like it. `changed`: it differs much from the last one, and that was shown long enough ago."""

    turn: str | None
    new: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class PictureCame:
    """A picture that is meant is in the talk, and the words to it are still to come."""


Noticed: TypeAlias = UserBegan | UserProgress | UserMayBeDone | UserEnded | UserWords | NothingToCommit | Cleared
Inbox: TypeAlias = Command | Refused | Noticed | ReplyOver | IdleOver | SayNow

# ------------------------------------------------------- what replies tell turn-taking, at the moment itself


@dataclass(frozen=True, slots=True)
class ReplyBegun:
    """A reply of the conversation is being made; nothing of it is audible yet."""


@dataclass(frozen=True, slots=True)
class ReplySounding:
    """Its first sound went out."""


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """Nothing more of it comes; the front will have played what came by `play_end`."""

    play_end: float


@dataclass(frozen=True, slots=True)
class ReplyCut:
    """The front's player stopped inside the last reply: whatever was sent of it, it sounds no more."""


@dataclass(frozen=True, slots=True)
class ReplyOut:
    """The reply came to its own end, and its tools have done to the talk what they wanted: who waits may be
    answered."""


@dataclass(frozen=True, slots=True)
class CandidateChecked:
    """The turn is written down. `fits`: the reply that was made in private did not fail, and an ordinary one would have
    the very prompt that it was made from."""

    fits: bool


@dataclass(frozen=True, slots=True)
class ClientCancel:
    """The front takes the running reply back."""


ReplyFact: TypeAlias = ReplyBegun | ReplySounding | ReplyEnded | ReplyCut
TurnMessage: TypeAlias = Inbox | ReplyFact | ReplyOut | CandidateChecked | ClientCancel | FrameCame | PictureCame
