"""Events about the talk itself: settings, errors, the user's speech, items."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.events.items import Item
from assistant.events.settings import Settings


@dataclass(frozen=True, slots=True)
class SettingsUpdated:
    """`settings` is the configuration that now applies."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Error:
    """The front's mistake, or a failure that the talk survives. `code` is the protocol's."""

    code: str
    message: str
    param: str | None = None
    cause: str | None = None
    kind: str = "invalid_request_error"


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The user began to speak; `item_id` is the user item that the commit will make."""

    item_id: str
    audio_start_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The user has been silent for long enough to end the turn."""

    item_id: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """Nobody spoke for `idle_timeout_ms`; an empty user turn follows."""

    item_id: str
    audio_start_ms: int
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class AudioCommitted:
    """The turn is certain."""

    item_id: str
    previous_item_id: str | None


@dataclass(frozen=True, slots=True)
class AudioCleared:
    pass


@dataclass(frozen=True, slots=True)
class ItemAdded:
    item: Item
    previous_item_id: str | None


@dataclass(frozen=True, slots=True)
class ItemDone:
    item: Item
    previous_item_id: str | None


@dataclass(frozen=True, slots=True)
class ItemRetrieved:
    item: Item


@dataclass(frozen=True, slots=True)
class ItemDeleted:
    item_id: str


@dataclass(frozen=True, slots=True)
class ItemTruncated:
    """`audio_end_ms` after clamping; `transcript` is what was heard."""

    item_id: str
    content_index: int
    audio_end_ms: int
    transcript: str


@dataclass(frozen=True, slots=True)
class TranscriptDelta:
    """New final words of a committed user item."""

    item_id: str
    content_index: int
    delta: str


@dataclass(frozen=True, slots=True)
class TranscriptCompleted:
    item_id: str
    content_index: int
    transcript: str
    audio_seconds: float


@dataclass(frozen=True, slots=True)
class TranscriptFailed:
    item_id: str
    content_index: int
    code: str
    message: str
