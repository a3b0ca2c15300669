"""What a front asks of a talk. `cause` is the front's own id of the command, given back in the error it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from assistant.events.items import REPLY_RATE, Item, Pcm
from assistant.events.settings import Modality, Settings, ToolSpec


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Answered by SettingsUpdated; while a reply runs it holds for the next one."""

    settings: Settings
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class AppendAudio:
    """User sound. Not acknowledged."""

    pcm: Pcm = field(compare=False, repr=False)
    rate: int = REPLY_RATE
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CommitAudio:
    """Make a user item of what was appended since the last commit or clear. Never starts a reply."""

    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ClearAudio:
    """Forget what was appended since the last commit."""

    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CreateItem:
    """Answered by ItemAdded and ItemDone. `after`: None at the end, "root" at the start, else an id."""

    item: Item
    after: str | None = None
    cause: str | None = None
    unread: str | None = None
    """Why the pictures that were all of it are left out. Who sends frames of a camera is told of no mistake: one of the
    clients ends the call at any."""


@dataclass(frozen=True, slots=True)
class DeleteItem:
    """Answered by ItemDeleted; deleting from the end backwards is an undo."""

    item_id: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class RetrieveItem:
    """Answered by ItemRetrieved, with sound where it is held."""

    item_id: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class TruncateItem:
    """Keep only what was heard of a spoken item. Clamped, never refused for a late or long position."""

    item_id: str
    content_index: int
    audio_end_ms: int
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseParams:
    """What one reply may override. None: the session's."""

    conversation: Literal["auto", "none"] = "auto"
    instructions: str | None = None
    input: tuple[Item | str, ...] | None = None
    """Replaces the context: whole items, or ids of items in the conversation."""
    modality: Modality | None = None
    voice: str | None = None
    tools: tuple[ToolSpec, ...] | None = None
    tool_choice: str | None = None
    max_output_tokens: int | None = None
    metadata: Mapping[str, str] | None = field(default=None, hash=False)
    answers: int = 1
    """Extension: so many replies from the talk's one state. The first is the conversation's, the others are asides."""


@dataclass(frozen=True, slots=True)
class CreateResponse:
    """Answered by ResponseCreated … ResponseDone, or an Error."""

    params: ResponseParams = ResponseParams()
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CancelResponse:
    """`response_id` None: whichever runs in the conversation."""

    response_id: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ReportHeard:
    """Extension: the player rendered this much of an item so far (output latency already taken off).

    Reports that are late, go backwards or name an unknown item are dropped in silence.
    """

    item_id: str
    played_ms: float
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Undo:
    """Extension: take back the last turns, question and answer. Answered by ItemDeleted for each item."""

    turns: int = 1
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Rewind:
    """Extension: drop everything after an item, and of a spoken or written reply all after `words` words."""

    item_id: str
    words: int | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchPersona:
    """Extension: be someone else from the next reply on. Answered by PersonaSwitched."""

    name: str
    cause: str | None = None


Command: TypeAlias = (
    UpdateSettings | AppendAudio | CommitAudio | ClearAudio | CreateItem | DeleteItem | RetrieveItem
    | TruncateItem | CreateResponse | CancelResponse | ReportHeard | Undo | Rewind | SwitchPersona
)  # fmt: skip
