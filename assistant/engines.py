"""What a talk asks of its models, said once: local engines, remote servers and test fakes all keep to it.

A talk names its state by a string; a side branch is a talk of its own. Neither contract knows tokens or codec
frames: a talk says which words and which samples are to count as said, and the engine finds the way from the
state it has to the state that is wanted. That is how an undo, a barge-in and a rewind are one operation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from assistant.events import Pcm, ToolSpec

if TYPE_CHECKING:
    from assistant.hearing.transcribe import Transcriber
    from assistant.hearing.vad import SpeechDetector

# ---------------------------------------------------------------------------------------- thinking


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a prompt. `reply_id` names the reply that produced it, so that its tokens are reused."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    reply_id: str | None = None
    call_id: str | None = None
    """Of a tool line: the call it answers."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything a reply depends on. An assistant line that is a beginning of its reply was cut there."""

    system: str
    tools: tuple[ToolSpec, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class ThinkOptions:
    """How to make one reply. None leaves a value to the engine's own default."""

    reply_id: str
    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    tool_choice: str = "auto"


@dataclass(frozen=True, slots=True)
class Cost:
    """Time spent on one named kind of work (`restore`, `rollback`, `prefill`, `tts_rows`, …)."""

    name: str
    ms: float


@dataclass(frozen=True, slots=True)
class PromptReady:
    """First piece of a reply: the state is in place and the prompt folded. A server that counts tokens only at the end
    of its answer sends zeros first, and this once more."""

    input_tokens: int
    cached_tokens: int
    costs: tuple[Cost, ...] = ()


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """Part of a call. The first piece of a call carries its name; `done` says the arguments are whole."""

    call_id: str
    name: str
    arguments: str
    done: bool


@dataclass(frozen=True, slots=True)
class BadCall:
    """The model wrote a call that cannot be read; it is reported and not run."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """Last piece of a reply."""

    reason: Literal["stop", "length", "tool_calls"]
    output_tokens: int
    costs: tuple[Cost, ...] = ()


ThinkPiece: TypeAlias = PromptReady | TextPiece | CallPiece | BadCall | ReplyEnd


@dataclass(frozen=True, slots=True)
class Settled:
    """What it took to bring an engine's state in line with a talk. `what` None: nothing was to be done."""

    what: Literal["rollback", "restore", "snapshot", "rebuild"] | None
    position: int
    ms: float


class Thinker(Protocol):
    """A language model behind a talk. All errors of the engine are raised as EngineFailed."""

    @property
    def name(self) -> str: ...

    @property
    def capsules(self) -> bool:
        """Whether state is kept between turns here; a remote server keeps its own counsel."""
        ...

    @property
    def limited(self) -> bool:
        """Whether it can pass on no other sentences than those it was trained on."""
        ...

    def reply(self, talk: str, prompt: Prompt, options: ThinkOptions) -> AsyncGenerator[ThinkPiece, None]:
        """Make a reply. Closing the generator stops the engine before its next step."""
        ...

    async def settle(self, talk: str, prompt: Prompt) -> Settled:
        """Bring the state in line with the prompt ahead of the next reply: roll back what is no longer so."""
        ...

    async def prepare(self, talk: str, prompt: Prompt) -> None:
        """Nobody waits: fold what the next reply would have to fold before its first word. All other work comes first;
        what is asked for this talk stops it, and the next reply goes on from there."""
        ...

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        """How probable it is that the last line, a user's, is complete. None: this engine cannot say."""
        ...

    async def warm(self, prompt: Prompt) -> Settled:
        """Make the beginning of a prompt (a persona) ready, from disk if it is there."""
        ...

    async def park(self, talk: str) -> None:
        """The talk pauses: keep its state where it outlives the process, if there is room."""
        ...

    async def forget(self, talk: str) -> None:
        """The talk is over: drop all it holds."""
        ...


# ---------------------------------------------------------------------------------------- speaking


@dataclass(frozen=True, slots=True)
class Mark:
    """The text from character `char` on is spoken from sample `sample` on."""

    sample: int
    char: int


@dataclass(frozen=True, slots=True)
class Sound:
    """Some of a piece's sound at 24 kHz, and the marks that are known by now (absolute in the piece)."""

    pcm: Pcm = field(compare=False, repr=False)
    marks: tuple[Mark, ...] = ()
    rows: int = 0
    costs: tuple[Cost, ...] = ()


@dataclass(frozen=True, slots=True)
class Uttered:
    """A piece that was spoken in this talk, and how many of its samples count as heard."""

    piece_id: str
    text: str
    samples: int


class Speaker(Protocol):
    """A voice behind a talk. Each piece is grounded on the pieces before it."""

    @property
    def name(self) -> str: ...

    @property
    def capsules(self) -> bool: ...

    @property
    def paces(self) -> bool:
        """Whether `speed` is followed; a voice that speaks at its own pace only is asked for 1.0."""
        ...

    @property
    def voices(self) -> Sequence[str]: ...

    def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0
    ) -> AsyncGenerator[Sound, None]:
        """Speak a piece, sound as it is made. Closing the generator stops the engine before its next row."""
        ...

    async def settle(self, talk: str, uttered: Sequence[Uttered]) -> Settled:
        """Bring the voice's memory in line with what was heard: later frames and pieces never happened."""
        ...

    async def warm(self, voice: str | None) -> Settled:
        """Make a voice ready, from disk if it is there."""
        ...

    async def park(self, talk: str) -> None: ...

    async def forget(self, talk: str) -> None: ...


# ----------------------------------------------------------------------------------------- hearing


class Ears(Protocol):
    """Makes detectors and transcribers. One per process; what it makes follows one talk each."""

    @property
    def name(self) -> str: ...

    def detector(self) -> SpeechDetector: ...

    def transcriber(self) -> Transcriber:
        """May take a while (it loads models): call it off the event loop."""
        ...
