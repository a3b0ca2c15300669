"""The messages that reach a session's inbox besides commands, and those that only turn-taking gets.

They stand in one place and are frozen, so that the pure parts can be fed with them and the other parts need not know
each other. Times called `moment` or `play_end` are the clock's seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from assistant.base.errors import EngineFailed, PeerError
from assistant.events import Command

# --------------------------------------------------------------------------------------- from hearing


@dataclass(frozen=True, slots=True)
class UserBegan:
    """Speech began at `start_ms` of the input; `moment` is when that was. `joins`: the turn that it continues, whose
    sound is written down with its own."""

    item_id: str
    start_ms: int
    moment: float
    joins: str | None = None


@dataclass(frozen=True, slots=True)
class UserProgress:
    """The turn goes on: its words so far, with speech and current silence in milliseconds. The first `stable`
    characters of the words will not change; `read`: they are all that was said before the silence. `sure`: mean
    probability that this is speech. `fell`: the voice has fallen, whether or not there is silence yet."""

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
    """The turn may be over with these words. They only serve to begin a reply: words that were read where the voice
    fell are not shown to any front, as it would see from them that a reply has begun.

    complete   probability that they are a whole request; None: unknown
    held       their ending wants more
    paused     they were read at a pause, not where the voice fell: everything still missing is known by then
    """

    item_id: str
    text: str
    complete: float | None = None
    held: bool = False
    paused: bool = True


@dataclass(frozen=True, slots=True)
class UserEnded:
    """The turn is certain. `moment`: its last speech sample. `by_hand`: the front committed it. `was_announced`: its
    beginning was noticed, so a UserBegan came before."""

    item_id: str
    end_ms: int
    moment: float
    by_hand: bool
    was_announced: bool


@dataclass(frozen=True, slots=True)
class UserWords:
    """The words of the turn. `failed` holds the reason if the transcriber broke."""

    item_id: str
    text: str
    confidence: float | None
    seconds: float
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class NothingToCommit:
    """A commit by hand of less sound than the protocol accepts."""

    cause: str | None
    had_ms: float


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that arrived and cannot be carried out."""

    error: PeerError
    cause: str | None


@dataclass(frozen=True, slots=True)
class Cleared:
    """The uncommitted sound is gone; `item_id` names the turn that was under way, if any."""

    item_id: str | None


# ------------------------------------------------------------------------------ from the session itself


@dataclass(frozen=True, slots=True)
class ReplyOver:
    """A reply's task has ended by itself. A reply that was stopped in the meantime is no longer known."""

    response_id: str
    failure: EngineFailed | PeerError | None


@dataclass(frozen=True, slots=True)
class IdleOver:
    """Nobody spoke for as long as the front allows."""


Waiting: TypeAlias = Literal["looks", "works", "thinks"]
"""The cause of a silence: a tool that only reads, any other tool, or the model."""


@dataclass(frozen=True, slots=True)
class ToolsCame:
    """An MCP server that was starting is ready, or given up."""


@dataclass(frozen=True, slots=True)
class StillSilent:
    """The conversation's reply has been silent for long."""

    response_id: str
    waiting: Waiting


@dataclass(frozen=True, slots=True)
class SayNow:
    """The talk itself has something to say (a timer went off)."""

    text: str


# --------------------------------------------------------------------------------- about pictures


@dataclass(frozen=True, slots=True)
class FrameCame:
    """The newest frame of a camera waits outside the talk. `turn`: the turn that the last one was shown to. `new`: the
    model has none like it. `changed`: it differs much from the last one, which was shown long enough ago."""

    turn: str | None
    new: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class PictureCame:
    """A picture that was meant is in the talk, and the words to it are still to come."""


Noticed: TypeAlias = UserBegan | UserProgress | UserMayBeDone | UserEnded | UserWords | NothingToCommit | Cleared
Inbox: TypeAlias = Command | Refused | Noticed | ReplyOver | IdleOver | StillSilent | SayNow | ToolsCame

# ------------------------------------------------------- from replies to turn-taking, without delay


@dataclass(frozen=True, slots=True)
class ReplyBegun:
    """A reply of the conversation is being made; none of it is audible yet."""


@dataclass(frozen=True, slots=True)
class ReplySounding:
    """Its first sound went out."""


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The reply is complete; the front will have played all of its sound by `play_end`."""

    play_end: float


@dataclass(frozen=True, slots=True)
class ReplyCut:
    """The front's player stopped inside the last reply: however much of it was sent, it no longer sounds."""


@dataclass(frozen=True, slots=True)
class CallAsked:
    """The reply asks whether a call may run; its question sounds from `since` on. `yes`: the persona's words."""

    since: float
    yes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyOut:
    """The reply came to its own end, and its tools have made their changes to the talk: a waiting turn may be
    answered."""


@dataclass(frozen=True, slots=True)
class CandidateChecked:
    """The turn is written down. `fits`: the reply that was made in private did not fail, and an ordinary reply would
    get the very prompt that it was made from."""

    fits: bool


@dataclass(frozen=True, slots=True)
class ClientCancel:
    """The front takes the running reply back."""


ReplyFact: TypeAlias = ReplyBegun | ReplySounding | ReplyEnded | ReplyCut | CallAsked
TurnMessage: TypeAlias = Inbox | ReplyFact | ReplyOut | CandidateChecked | ClientCancel | FrameCame | PictureCame
