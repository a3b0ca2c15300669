"""Each turn's number and the time it takes, from the user's last sound to the reply's first."""

from __future__ import annotations

from assistant.talk.context import TalkContext
from assistant.telemetry.trace import TurnTrace


class TurnTimes:
    """Follows the turn that has no reply yet."""

    def __init__(self, context: TalkContext) -> None:
        self._context = context
        self._count = 0
        self._waiting: TurnTrace | None = None

    def spoken(self, last_sound: float, *, after_barge_in: bool, yielded_ms: float | None) -> None:
        """A spoken turn is certain now; the user fell silent at `last_sound`."""
        now = self._context.now()
        self._count += 1
        self._context.services.metrics.turns.inc()
        self._waiting = TurnTrace(self._count, last_sound, spoken=True, after_barge_in=after_barge_in)
        self._waiting.mark("turn_wait", now)
        self._waiting.committed = now
        if after_barge_in and yielded_ms is not None:
            self._waiting.figure("yield_ms", yielded_ms)

    def silent(self) -> None:
        """A turn without sound begins and is certain now."""
        self._count += 1
        self._waiting = TurnTrace(self._count, self._context.now())

    def asked(self) -> None:
        """The front asks for a reply: it belongs to the spoken turn that waits for one, or is a turn of its own."""
        if self._waiting is None or self._waiting.closed:
            self.silent()

    def transcribed(self) -> None:
        if self._waiting is not None:
            self._waiting.mark("transcribe", self._context.now())

    def trace(self, *, aside: bool) -> TurnTrace:
        """The trace for the times of a reply that begins now."""
        if aside or self._waiting is None or self._waiting.closed:
            return TurnTrace(self._count, self._context.now())
        return self._waiting

    def ended(self, trace: TurnTrace) -> None:
        if self._waiting is trace:
            self._waiting = None
