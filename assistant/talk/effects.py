"""The effects of a step of turn-taking, which others carry out.

They stand in one place and are frozen, so that those who carry them out need not know how they are decided. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from assistant.events import AudioCleared, SpeechStarted, SpeechStopped, TranscriptPartial
from assistant.talk.messages import Waiting


class Level(Enum):
    """An order to a front's player about the sound of the latest reply."""

    LOWER = auto()
    HOLD = auto()
    RAISE = auto()
    DROP = auto()


@dataclass(frozen=True, slots=True)
class StopReply:
    """End the running reply as cancelled, if there still is one."""

    reason: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """Hearing drops this turn, which was a cough, or a nod with these words."""

    item_id: str
    words: str


@dataclass(frozen=True, slots=True)
class Reopen:
    """Take back this turn and everything behind it: the one under way holds its words too."""

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
class CoverSilence:
    """Say a short phrase while the reply is silent for this reason."""

    waiting: Waiting


@dataclass(frozen=True, slots=True)
class BeginCandidate:
    """The turn may be over: answer these words in private."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True)
class DropCandidate:
    """Drop the answer that was made in private, without a trace."""


@dataclass(frozen=True, slots=True)
class ReleaseCandidate:
    """Make the answer that was made in private the reply of the turn."""


@dataclass(frozen=True, slots=True)
class FoldWords:
    """Fold in these words, which will not change, while the user still speaks."""

    text: str


@dataclass(frozen=True, slots=True)
class ShowFrame:
    """The newest frame enters the talk, if it shows anything new: for this turn, or else for the reply that is to
    follow. `asked`: it stands before the words that a front asks a reply for. `ahead`: the model looks at it now."""

    turn: str | None
    ahead: bool
    asked: bool = False


@dataclass(frozen=True, slots=True)
class HideFrame:
    """Remove the frame that was shown to speech that was not a turn. `settle`: the models' view of it is taken back
    now, as no reply runs; otherwise the next reply does that."""

    turn: str
    settle: bool


@dataclass(frozen=True, slots=True)
class LookAhead:
    """The model looks at a picture before the words to it have come."""


@dataclass(frozen=True, slots=True)
class SpeakUp:
    """Nobody spoke: add an empty turn of the user, and a reply to it."""


@dataclass(frozen=True, slots=True)
class StopIdle:
    """Somebody speaks: stop waiting for it."""


@dataclass(frozen=True, slots=True)
class StartIdle:
    """Wait for the user again, behind a reply that plays until `play_end`."""

    play_end: float


Told: TypeAlias = SpeechStarted | SpeechStopped | TranscriptPartial | AudioCleared
Guessing: TypeAlias = BeginCandidate | DropCandidate | ReleaseCandidate | FoldWords
Showing: TypeAlias = ShowFrame | HideFrame | LookAhead
Effect: TypeAlias = (
    Told | Level | StopReply | SetAside | Reopen | CommitTurn | StartReply | CoverSilence | Guessing | Showing
    | SpeakUp | StopIdle | StartIdle
)
