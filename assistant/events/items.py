"""Items of a conversation: messages, calls of tools, their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from assistant.base.picture import Picture
from assistant.base.sound import REPLY_RATE, Pcm

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Written words, from either side."""

    text: str


@dataclass(frozen=True, slots=True)
class AudioPart:
    """Spoken words. `transcript` is None until it is known; after a cut it holds what was heard."""

    transcript: str | None = None
    pcm: Pcm | None = field(default=None, compare=False, repr=False)
    rate: int = REPLY_RATE


@dataclass(frozen=True, slots=True)
class PicturePart:
    """A picture that the user shows. Among frames (`frame` set) of a camera or a screen, only the newest counts, and
    none is stored; None: the front does not say. `look`: used to compare pictures; empty until it was looked at."""

    picture: Picture
    frame: bool | None = None
    look: bytes = field(default=b"", compare=False, repr=False)


Part: TypeAlias = TextPart | AudioPart | PicturePart


@dataclass(frozen=True, slots=True)
class Message:
    """One utterance of the user or the assistant, or an instruction (`system`)."""

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
    """A tool's answer."""

    id: str
    call_id: str
    output: str
    status: ItemStatus = "completed"


Item: TypeAlias = Message | FunctionCall | FunctionOutput


@dataclass(frozen=True, slots=True)
class McpCall:
    """A tool of an MCP server that a client asked for, as the client sees it; the talk keeps it as a call and an
    output. `approval_id`: the request that allowed it."""

    id: str
    server: str
    name: str
    arguments: str
    output: str | None = None
    failed: bool = False
    approval_id: str | None = None
    status: ItemStatus = "completed"


@dataclass(frozen=True, slots=True)
class McpApprovalRequest:
    """Whether this call may run; AnswerCall answers it."""

    id: str
    server: str
    name: str
    arguments: str
    status: ItemStatus = "completed"


ReplyItem: TypeAlias = Item | McpCall | McpApprovalRequest
"""The items of a response."""
