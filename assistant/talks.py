"""All talks of the process: opens, resumes and parks them over one set of engines, up to a stated limit."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.clock import Clock
from assistant.engines import Ears, Speaker, Thinker
from assistant.events import Settings
from assistant.session import Session


@dataclass(frozen=True, slots=True)
class Engines:
    """The three models behind every talk."""

    thinker: Thinker
    speaker: Speaker
    ears: Ears


class Talks:
    """Opens sessions. Fronts that need an engine without a talk (plain HTTP endpoints) use `engines`."""

    def __init__(self, engines: Engines, clock: Clock, *, limit: int = 4) -> None:
        self.engines = engines
        self.limit = limit
        self._clock = clock

    @property
    def active(self) -> int:
        """Sessions open now."""
        return 0

    def open(self, settings: Settings | None = None, resume: str | None = None) -> Session:
        """A new session, or one that goes on with an earlier talk (its `items` are the conversation so far).

        Raises TalksFull when `limit` sessions are open, UnknownTalk when `resume` names none that is kept.
        """
        return Session(
            resume or "conv_0",
            self.engines.thinker,
            self.engines.speaker,
            self.engines.ears,
            self._clock,
            settings or Settings(),
        )
