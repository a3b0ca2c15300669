"""Commands from a front to a talk. `cause` is the front's own id of the command; an error that it causes repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from assistant.events.items import REPLY_RATE, Item, Pcm
from assistant.events.settings import Modality, Settings, ToolSpec


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Answered by SettingsUpdated; if a reply is running, the change applies from the next one."""

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
    """Make a user item of the sound appended since the last commit or clear. Never starts a reply."""

    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ClearAudio:
    """Discard the sound appended since the last commit."""

    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CreateItem:
    """Answered by ItemAdded and ItemDone. `after`: None appends at the end, "root" at the start, else an item's id."""

    item: Item
    after: str | None = None
    cause: str | None = None
    unread: str | None = None
    """Why this item's pictures are left out, if it holds nothing else. A client that sends camera frames gets no error
    for it: one of the clients ends the call at any error."""


@dataclass(frozen=True, slots=True)
class DeleteItem:
    """Answered by ItemDeleted; deleting from the end backwards is an undo."""

    item_id: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class RetrieveItem:
    """Answered by ItemRetrieved, with sound if it is still held."""

    item_id: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class TruncateItem:
    """Keep only what was heard of a spoken item. Late and long positions are clamped, never refused."""

    item_id: str
    content_index: int
    audio_end_ms: int
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseParams:
    """Overrides for one reply. None means the session's value."""

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
    """Extension: this many replies from the same state. The first joins the conversation, the others are asides."""


@dataclass(frozen=True, slots=True)
class CreateResponse:
    """Answered by ResponseCreated … ResponseDone, or an Error."""

    params: ResponseParams = ResponseParams()
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class CancelResponse:
    """`response_id` None cancels whichever reply is running in the conversation."""

    response_id: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class ReportHeard:
    """Extension: the player has rendered this much of an item so far (output latency already subtracted).

    Reports that are late, go backwards or name an unknown item are ignored.
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
    """Extension: delete everything after an item; of a spoken or written reply keep only the first `words` words."""

    item_id: str
    words: int | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchPersona:
    """Extension: take on another persona from the next reply on. Answered by PersonaSwitched."""

    name: str
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """Allow a call that was asked about, or not. The next reply runs it, or knows that it may not."""

    approval_id: str
    approve: bool
    cause: str | None = None


Command: TypeAlias = (
    UpdateSettings | AppendAudio | CommitAudio | ClearAudio | CreateItem | DeleteItem | RetrieveItem
    | TruncateItem | CreateResponse | CancelResponse | ReportHeard | Undo | Rewind | SwitchPersona
    | AnswerCall
)  # fmt: skip
