"""Events about a reply, from its creation to its last sample, and how its time was spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from assistant.events.items import Part, Pcm, ReplyItem
from assistant.events.settings import Modality

ResponseStatus: TypeAlias = Literal["in_progress", "completed", "cancelled", "incomplete", "failed"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one reply. `cached_tokens` were in the state already, so they cost nothing."""

    input_text_tokens: int = 0
    input_audio_tokens: int = 0
    cached_tokens: int = 0
    output_text_tokens: int = 0
    output_audio_tokens: int = 0
    input_image_tokens: int = 0
    cached_image_tokens: int = 0
    """Image tokens among the `cached_tokens`."""

    @property
    def input_tokens(self) -> int:
        return self.input_text_tokens + self.input_audio_tokens + self.input_image_tokens

    @property
    def output_tokens(self) -> int:
        return self.output_text_tokens + self.output_audio_tokens


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """One stretch of a turn. The parts of a timeline follow each other without a gap."""

    name: str
    start_ms: float
    ms: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """How the time of one turn was spent, from the user's last speech sample to the first reply sample.

    `parts` sum to `total_ms`. `figures` holds named measures (`ttfa_ms`, `voice_to_voice_ms`, `yield_ms`,
    `reentry_ms`, `restore_ms`, `rollback_ms`, counts); those that do not apply to the turn are absent.
    `started` is the session's clock in seconds at the start of the first part.
    """

    turn: int
    response_id: str
    started: float
    parts: tuple[TimelinePart, ...]
    figures: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def total_ms(self) -> float:
        return sum(part.ms for part in self.parts)


@dataclass(frozen=True, slots=True)
class Response:
    """A reply as the protocol shows it. `reason`: why it was cancelled or is incomplete; `error_*`: why it failed."""

    id: str
    status: ResponseStatus
    modality: Modality
    voice: str | None = None
    in_conversation: bool = True
    output: tuple[ReplyItem, ...] = ()
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    max_output_tokens: int | None = None
    metadata: Mapping[str, str] | None = field(default=None, hash=False)
    usage: Usage | None = None
    answer: int | None = None
    """Extension: this reply's number, from 0, if several were requested."""


@dataclass(frozen=True, slots=True)
class ResponseCreated:
    response: Response


@dataclass(frozen=True, slots=True)
class ResponseDone:
    """The last event of this response. `timeline` is None when no sound or text was produced."""

    response: Response
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True)
class OutputItemAdded:
    response_id: str
    output_index: int
    item: ReplyItem


@dataclass(frozen=True, slots=True)
class OutputItemDone:
    response_id: str
    output_index: int
    item: ReplyItem


@dataclass(frozen=True, slots=True)
class PartAdded:
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    part: Part


@dataclass(frozen=True, slots=True)
class PartDone:
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    part: Part


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text of a written reply (modality `text`)."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: str


@dataclass(frozen=True, slots=True)
class TextDone:
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    text: str


@dataclass(frozen=True, slots=True)
class SpokenText:
    """Words of the reply's sound; `start_time` is where they begin in the item's sound, in seconds."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    delta: str
    start_time: float


@dataclass(frozen=True, slots=True)
class SpokenTextDone:
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    transcript: str


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """Sound of the reply at REPLY_RATE; `start_sample` is its place in the item's sound."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    start_sample: int
    pcm: Pcm = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AudioDone:
    response_id: str
    item_id: str
    output_index: int
    content_index: int


@dataclass(frozen=True, slots=True)
class CallDelta:
    """Arguments of a function call as the model writes them."""

    response_id: str
    item_id: str
    output_index: int
    call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class CallDone:
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    name: str
    arguments: str
