"""Events beyond the protocol, for a front that can duck, resume and show what the models' state does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assistant.events.reply import Timeline
from assistant.events.settings import ToolSpec


@dataclass(frozen=True, slots=True)
class TranscriptPartial:
    """Extension: the words so far while the user still speaks. The next one replaces it, except for its first `stable`
    characters."""

    item_id: str
    text: str
    stable: int = 0


@dataclass(frozen=True, slots=True)
class Duck:
    """Extension: lower the reply's volume now. `level` 0 mutes it and pauses at this sample; otherwise it plays on."""

    response_id: str
    item_id: str
    level: float = 0.25


@dataclass(frozen=True, slots=True)
class Resume:
    """Extension: that was not an interruption; return to full volume at the same sample."""

    response_id: str
    item_id: str


@dataclass(frozen=True, slots=True)
class StopPlayback:
    """Extension: fade out and drop the rest; report what was heard."""

    response_id: str
    item_id: str


@dataclass(frozen=True, slots=True)
class Nod:
    """Extension: the user only nodded ("mhm") over the reply; the nod's item follows, and nothing answers it."""

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
    """Extension: what a cut, an undo or a switch did to the models' state, and how long it took."""

    what: Literal["rollback", "restore", "rebuild"]
    engine: Literal["llm", "tts"]
    position: int
    ms: float


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """Extension: the session ran one of its own tools for a reply; the front need not do anything."""

    response_id: str
    name: str
    arguments: str
    output: str
    ms: float


@dataclass(frozen=True, slots=True)
class ToolBegun:
    """Extension: a call that may change something begins at an MCP server."""

    response_id: str
    name: str
    server: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolAsked:
    """Extension: the person is asked whether this call may run. AnswerCall, or a spoken yes, answers it."""

    response_id: str
    approval_id: str
    name: str
    server: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ServersStarting:
    """Extension: these MCP servers are still starting; the tools of the others are there."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    """Extension: a reply added these sentences to the memory, or took them out; an undo has an empty `response_id`."""

    response_id: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WordsForgotten:
    """Extension: these items hold nothing but `text` from now on, and whatever else was shown of these responses, such
    as their tools, is gone: a sentence was forgotten."""

    item_ids: tuple[str, ...]
    response_ids: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class LanguageTold:
    """Extension: the talk is in this language now, and `limits` are what cannot be done in it, in sentences."""

    language: str
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """The tools of an MCP server that a client asked for; `trouble`: why there are none."""

    item_id: str
    server: str
    tools: tuple[ToolSpec, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class FrameShown:
    """Extension: the model now sees this frame, or (`shown` False) no longer does."""

    item_id: str
    shown: bool


@dataclass(frozen=True, slots=True)
class TimelineReady:
    """Extension: the turn's timeline, right after its first sound."""

    timeline: Timeline


@dataclass(frozen=True, slots=True)
class SightChanged:
    """Extension: whether the model takes pictures, sent when that becomes known late: a server shows it only once it is
    sent a picture."""

    sees: bool


@dataclass(frozen=True, slots=True)
class WakeChanged:
    """Extension: whether the talk waits for its name, was called, or is open for more. `called`: the name."""

    state: Literal["waiting", "called", "open"]
    called: str = ""


EXTENSIONS: tuple[type, ...] = (
    TranscriptPartial, Duck, Resume, StopPlayback, Nod, PersonaSwitched, StateChanged, ToolUsed, ToolBegun,
    ToolAsked, ServersStarting, MemoryChanged, WordsForgotten, LanguageTold, FrameShown, TimelineReady, SightChanged,
    WakeChanged,
)  # fmt: skip
"""Events that a front passes on only to clients that asked for them."""
