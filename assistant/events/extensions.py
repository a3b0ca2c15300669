"""Events beyond the protocol, for a front that can duck, resume and show what the models' state does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assistant.events.reply import Timeline


@dataclass(frozen=True, slots=True)
class TranscriptPartial:
    """Extension: the words so far while the user still speaks; the next one replaces it, but for its first `stable`
    characters."""

    item_id: str
    text: str
    stable: int = 0


@dataclass(frozen=True, slots=True)
class Duck:
    """Extension: lower the reply's sound now. `level` 0: silent, and held at its sample; else it goes on playing."""

    response_id: str
    item_id: str
    level: float = 0.25


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
class Nod:
    """Extension: what the user said over the reply was a nod; its item follows, and nothing answers it."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True)
class PersonaSwitched:
    """Extension: `ms` is the time until both engines were ready in the new persona."""

    name: str
    voice: str | None
    ms: float


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Extension: what a cut, an undo or a switch did to the models' state, and what it cost."""

    what: Literal["rollback", "restore", "rebuild"]
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
class FrameShown:
    """Extension: this frame is before the model now, or (`shown` False) it is no more."""

    item_id: str
    shown: bool


@dataclass(frozen=True, slots=True)
class TimelineReady:
    """Extension: the turn's timeline, right after its first sound."""

    timeline: Timeline


@dataclass(frozen=True, slots=True)
class SightChanged:
    """Extension: whether the model takes pictures, where that is known only now: a server says it when it is shown one,
    and not before."""

    sees: bool


EXTENSIONS: tuple[type, ...] = (
    TranscriptPartial, Duck, Resume, StopPlayback, Nod, PersonaSwitched, StateChanged, ToolUsed, FrameShown,
    TimelineReady, SightChanged,
)  # fmt: skip
"""Events that a front sends on only to a client which asked for them."""
