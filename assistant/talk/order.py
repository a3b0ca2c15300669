"""What the session decides about a reply before it begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from assistant.contracts import Prompt, ReplyOptions
from assistant.events import Event, Response
from assistant.tools.registry import ToolRegistry

Emit: TypeAlias = Callable[[Event], Awaitable[None]]


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
    prompt: Callable[[], Prompt]
    """Built when the user's words are in, and again after each of the session's own tools."""
    own_tools: ToolRegistry
    say: str | None = None
    """Words that are spoken as they are, without asking the model."""
