"""What the session decides about a reply: how it is to be, before it begins, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.contracts import Prompt, ReplyOptions
from assistant.events import Response, ResponseStatus
from assistant.talk.conversation import Conversation
from assistant.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class ReplyOrder:
    """What the session decided about a reply before it began."""

    talk: str
    """Whose engine state it goes on from; a side branch has one of its own."""
    response: Response
    voice: str | None
    speed: float
    paced: bool
    options: ReplyOptions
    prompt: Callable[[Conversation], Prompt]
    """Built when the user's words are in, and again after each of the session's own tools."""
    own_tools: ToolRegistry
    say: str | None = None
    """Words that are spoken as they are, without asking the model."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ended. `reason`: why cancelled or incomplete; `error_*`: why failed."""

    status: ResponseStatus
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
