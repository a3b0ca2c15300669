"""The settings of a front: how turns end, which tools exist, how replies are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Modality: TypeAlias = Literal["audio", "text"]


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
    """The turn ends when it sounds finished: by silence, completeness of the words and the speaker's pace."""

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
    parameters: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Some of a server's tools: these names, and only those that read, or only those that do not. None: any."""

    names: tuple[str, ...] | None = None
    reads: bool | None = None

    def takes(self, name: str, reads: bool) -> bool:
        return (self.names is None or name in self.names) and (self.reads is None or self.reads == reads)


@dataclass(frozen=True, slots=True)
class ServerAsk:
    """An MCP server that a client asked for. `name` is ours, `label` the client's; `given`: its own words."""

    name: str
    label: str
    allowed: ToolFilter | None = None
    always: ToolFilter | None = None
    never: ToolFilter | None = None
    unasked: bool = False
    """Its tools run without an approval."""
    given: Mapping[str, object] = field(default_factory=dict, hash=False)

    def asks(self, name: str, reads: bool) -> bool:
        """Whether a call needs an approval. One that both filters or neither of them takes does."""
        if self.always is not None and self.always.takes(name, reads):
            return True
        return not self.unasked and not (self.never is not None and self.never.takes(name, reads))


NamedServer: TypeAlias = Callable[[str, str | None], str | None]
"""Our name for an MCP server, by a client's label and address; None: clients may not ask for it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The complete effective configuration of a session; an update replaces the whole."""

    instructions: str | None = None
    """None: use the persona's own."""
    persona: str = "ada"
    language: str | None = None
    """The code of the talk's language; None: the persona's own."""
    voice: str | None = None
    """None: use the persona's own."""
    modality: Modality = "audio"
    turn_detection: TurnDetection = SemanticVad()
    tools: tuple[ToolSpec, ...] = ()
    servers: tuple[ServerAsk, ...] = ()
    """MCP servers that the client asked for."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the name of one tool."""
    built_in_tools: bool = True
    max_output_tokens: int | None = None
    speed: float = 1.0
    memory: bool = False
    """The talk begins with what is remembered of its user, and may add to it."""
    wake: bool = False
    """Nothing is listened to until somebody calls the assistant by name."""
    duck: bool = False
    """The front can lower and resume the reply's sound: overlap ducks first, and stops after the verdict."""
    passing: bool = False
    """The front comes for one sentence and is gone when something rings."""
    realm: str = ""
    """Owner of the talk's state: only talks and requests of the same realm can reuse it."""
    paced: bool = True
    """The front plays in real time, so the reply's lead is bounded. False for files: as fast as possible."""
