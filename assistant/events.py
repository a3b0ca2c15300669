"""What travels between a talk and its front: commands go in, events come out, both are frozen.

A *front* is whoever stands between a talk and a person: the realtime protocol, the microphone and
speaker of this machine, or a pair of sound files. It sends commands to a `Session` and reads the
session's events. Nothing here knows JSON, sockets or clocks.

Units: `*_ms` are milliseconds, `*_samples` are samples at the rate stated beside them, input times
count from the first sample that was ever appended to this session. Sound is float32 mono in [-1, 1].
`cause` is the front's own id of the command, given back in the error it leads to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Pcm: TypeAlias = NDArray[np.float32]

REPLY_RATE = 24_000
"""Sample rate of all sound that leaves a session; a front that needs another resamples."""

Modality: TypeAlias = Literal["audio", "text"]
ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]
ResponseStatus: TypeAlias = Literal["in_progress", "completed", "cancelled", "incomplete", "failed"]
CancelReason: TypeAlias = Literal["turn_detected", "client_cancelled"]


# ---------------------------------------------------------------------------- items of a conversation


@dataclass(frozen=True, slots=True)
class TextPart:
    """Written words, of either side."""

    text: str


@dataclass(frozen=True, slots=True)
class AudioPart:
    """Spoken words. `transcript` is None until it is known; after a cut it holds what was heard."""

    transcript: str | None = None
    pcm: Pcm | None = field(default=None, compare=False, repr=False)
    rate: int = REPLY_RATE


Part: TypeAlias = TextPart | AudioPart


@dataclass(frozen=True, slots=True)
class Message:
    """One utterance: of the user, of the assistant, or an instruction (`system`)."""

    id: str
    role: Literal["user", "assistant", "system"]
    content: tuple[Part, ...] = ()
    status: ItemStatus = "completed"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The model asks for a tool. `arguments` is JSON text exactly as the model wrote it."""

    id: str
    call_id: str
    name: str
    arguments: str
    status: ItemStatus = "completed"


@dataclass(frozen=True, slots=True)
class FunctionOutput:
    """What a tool answered."""

    id: str
    call_id: str
    output: str
    status: ItemStatus = "completed"


Item: TypeAlias = Message | FunctionCall | FunctionOutput


# ------------------------------------------------------------------------------------------ settings


@dataclass(frozen=True, slots=True)
class ServerVad:
    """The turn ends after a fixed silence."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    idle_timeout_ms: int | None = None
    create_response: bool = True
    interrupt_response: bool = True


@dataclass(frozen=True, slots=True)
class SemanticVad:
    """The turn ends when it sounds finished: silence, completeness of the words, pace of the speaker."""

    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection: TypeAlias = ServerVad | SemanticVad | None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that the model may call; `parameters` is a JSON schema. The client runs it, unless the
    name is one of the session's own tools and the client did not redefine it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """The complete effective configuration of a session; an update replaces the whole."""

    instructions: str | None = None
    """None: the persona's own."""
    persona: str = "ada"
    voice: str | None = None
    """None: the persona's own."""
    modality: Modality = "audio"
    turn_detection: TurnDetection = ServerVad()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the name of one tool."""
    built_in_tools: bool = True
    max_output_tokens: int | None = None
    speed: float = 1.0
    duck: bool = False
    """The front can lower and resume the reply's sound: overlap ducks first, and stops after the verdict."""
    paced: bool = True
    """The front plays in real time, so the reply's lead is bounded. False for files: as fast as it can."""


# ------------------------------------------------------------------------------------------ commands


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


# -------------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class SettingsUpdated:
    """`settings` is what holds now."""

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
    """The user fell silent for long enough to end the turn."""

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
class TranscriptPartial:
    """Extension: the words so far while the user still speaks; the next one replaces it."""

    item_id: str
    text: str


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


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply. `cached_tokens` were in the state already, so they cost nothing."""

    input_text_tokens: int = 0
    input_audio_tokens: int = 0
    cached_tokens: int = 0
    output_text_tokens: int = 0
    output_audio_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        return self.input_text_tokens + self.input_audio_tokens

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
    """Where the time of one turn went, from the user's last speech sample to the first reply sample.

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
    """A reply as the protocol shows it. `reason`: why cancelled or incomplete; `error_*`: why failed."""

    id: str
    status: ResponseStatus
    modality: Modality
    voice: str | None = None
    in_conversation: bool = True
    output: tuple[Item, ...] = ()
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    max_output_tokens: int | None = None
    metadata: Mapping[str, str] | None = field(default=None, hash=False)
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ResponseCreated:
    response: Response


@dataclass(frozen=True, slots=True)
class ResponseDone:
    """Nothing of this response follows. `timeline` is None when no sound or text was produced."""

    response: Response
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True)
class OutputItemAdded:
    response_id: str
    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class OutputItemDone:
    response_id: str
    output_index: int
    item: Item


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
    """Written reply (modality `text`)."""

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


@dataclass(frozen=True, slots=True)
class Duck:
    """Extension: lower the reply's sound now, keep playing."""

    response_id: str
    item_id: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Extension: it was no interruption; full level again at the same sample."""

    response_id: str
    item_id: str


@dataclass(frozen=True, slots=True)
class StopPlayback:
    """Extension: fade out and drop the rest; report what was heard."""

    response_id: str
    item_id: str


@dataclass(frozen=True, slots=True)
class PersonaSwitched:
    """Extension: `ms` is the time until both engines were ready in the new persona."""

    name: str
    voice: str | None
    ms: float


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Extension: what a cut, an undo or a switch did to the models' state, and what it cost."""

    what: Literal["rollback", "restore", "snapshot", "rebuild"]
    engine: Literal["llm", "tts"]
    position: int
    ms: float


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """Extension: the session ran one of its own tools for a reply; no front has to do anything."""

    response_id: str
    name: str
    arguments: str
    output: str
    ms: float


@dataclass(frozen=True, slots=True)
class TimelineReady:
    """Extension: the turn's timeline, right after its first sound."""

    timeline: Timeline


Event: TypeAlias = (
    SettingsUpdated | Error | SpeechStarted | SpeechStopped | IdleTimeout | AudioCommitted | AudioCleared
    | ItemAdded | ItemDone | ItemRetrieved | ItemDeleted | ItemTruncated
    | TranscriptPartial | TranscriptDelta | TranscriptCompleted | TranscriptFailed
    | ResponseCreated | ResponseDone | OutputItemAdded | OutputItemDone | PartAdded | PartDone
    | TextDelta | TextDone | SpokenText | SpokenTextDone | AudioDelta | AudioDone | CallDelta | CallDone
    | Duck | Resume | StopPlayback | PersonaSwitched | StateChanged | ToolUsed | TimelineReady
)  # fmt: skip

EXTENSIONS: tuple[type, ...] = (
    TranscriptPartial, Duck, Resume, StopPlayback, PersonaSwitched, StateChanged, ToolUsed, TimelineReady,
)  # fmt: skip
"""Events that a front sends on only to a client which asked for them."""
