"""Parts that stay while the language model is switched: voice and ears, if nothing that they are made of changed.

Only what was loaded stays. Everything around it (talks, capsules, journals, the models' thread) begins anew as at any
start, so what follows is equal to a fresh start with the same settings.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from assistant.asr.local import LocalASR
    from assistant.llm.small import SmallMind
    from capsules import ExecContext
    from tts_engine.engine import HiggsTTS

T = TypeVar("T")


@dataclass(frozen=True)
class StandingVoice:
    """The voice in its context. The language model may have been in the same one, and has left it."""

    ctx: ExecContext
    engine: HiggsTTS
    row_ms: float
    """The time that a row of 40 ms of sound takes, measured when it was loaded."""

    @property
    def gpu_bytes(self) -> int:
        on_gpu = self.ctx.device.type != "cpu"
        return sum(buffer.nbytes for buffer in self.ctx.buffers()) if on_gpu else 0


@dataclass(frozen=True)
class StandingEars:
    """Ears, and the small mind that gives them a second opinion; None: nobody does."""

    asr: LocalASR
    mind: SmallMind | None


class PartSlot(Generic[T]):
    """Room for one part."""

    def __init__(self) -> None:
        self.part: T | None = None
        self._facts: Hashable = None

    def made_of(self, facts: Hashable) -> T | None:
        """The part, if it was made of this. Any other is let go, before there are two in memory."""
        if self._facts != facts:
            self.empty()
        return self.part

    def fill(self, facts: Hashable, part: T) -> None:
        self._facts, self.part = facts, part

    def empty(self) -> None:
        self._facts = self.part = None


@dataclass
class Standing:
    """Handed from one opening to the next; one at a time uses it."""

    voice: PartSlot[StandingVoice] = field(default_factory=PartSlot)
    ears: PartSlot[StandingEars] = field(default_factory=PartSlot)


def stamps(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of a model's files: another file of the same name is another model. Raises OSError."""
    found = [path] if path.is_file() else sorted(path.iterdir())
    return tuple((one.name, (seen := one.stat()).st_size, seen.st_mtime_ns) for one in found)
