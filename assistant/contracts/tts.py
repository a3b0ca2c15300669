"""A voice behind a talk: pieces of text in, sound out, its memory cut to what was heard."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from assistant.base.sound import Pcm
from assistant.contracts.work import Cost, Stateful, Synced


@dataclass(frozen=True, slots=True)
class Mark:
    """The text from character `char` on is spoken from sample `sample` on."""

    sample: int
    char: int


@dataclass(frozen=True, slots=True)
class SpeechChunk:
    """Some of a piece's sound at 24 kHz, and the marks known by now (absolute in the piece)."""

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


@dataclass(frozen=True, slots=True)
class KeptVoice:
    """`origin`: "own" (the model's), "designed" (once, from a seed), "given" (a recording). `made_at`: wall seconds."""

    name: str
    origin: str
    seconds: float = 0.0
    transcript: str = ""
    made_at: float = 0.0


class VoiceKeeper(Protocol):
    """A store of voices. A refusal is a PeerError, and then nothing has changed."""

    @property
    def refusal(self) -> str:
        """Why recordings cannot become voices here; empty if they can."""
        ...

    def listing(self) -> Sequence[KeptVoice]: ...

    def add(self, name: str, sound: Path | bytes, transcript: str | None = None, *, replace: bool = False) -> KeptVoice:
        """Make a recording a voice; without a transcript the ears write it down. Takes seconds, on any thread."""
        ...

    def remove(self, name: str, *, anyway: bool = False) -> None:
        """Remove a voice. `anyway`: even if somebody speaks with it."""
        ...


class TTS(Protocol):
    """A voice behind a talk. Each piece is grounded on the pieces before it."""

    @property
    def name(self) -> str: ...

    @property
    def paces(self) -> bool:
        """Whether it follows `speed`; a voice with only its own pace is always asked for 1.0."""
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """Their codes (BCP-47); empty: not known."""
        ...

    @property
    def voices(self) -> Sequence[str]: ...

    @property
    def state(self) -> StatefulTTS | None:
        """The voice itself, if it stores the state of talks here. For a server each piece stands alone."""
        ...

    def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0,
        language: str | None = None,
    ) -> AsyncGenerator[SpeechChunk, None]:  # fmt: skip
        """Speak a piece, sound as it is made. Closing the generator stops the engine before its next row. `language`:
        its code, if it was chosen; numbers and dates are read by English rules only in English."""
        ...

    async def warm(self, voice: str | None) -> Synced:
        """Make a voice ready, from disk if it is there."""
        ...


class StatefulTTS(TTS, Stateful, Protocol):
    """A voice that remembers what it said in a talk."""

    async def sync(self, talk: str, uttered: Sequence[Uttered]) -> Synced:
        """Bring the voice's memory in line with what was heard, as if later frames and pieces had never happened."""
        ...

    async def prepare(self, talk: str) -> None:
        """Prepare what the talk's next words would have to wait for, behind all other work: nobody waits for this."""
        ...
