"""Silero's detectors and transcribers of one kind, lent to talks; what one talk returns serves the next."""

from __future__ import annotations

import threading
from collections.abc import Callable

from assistant.asr.detector import SileroDetector
from assistant.contracts import AsrFacts, Rescorer, SpeechDetector, Transcriber


class LocalASR:
    """Loading a transcriber takes a moment, so there is always one more loaded than in use. A detector loads instantly
    but holds memory that Python does not see: detectors left to the garbage collector would add up to hundreds of MB
    before it runs.

    over  makes the same ears with another second opinion; None: they take none
    """

    def __init__(
        self, facts: AsrFacts, make: Callable[[], Transcriber],
        over: Callable[[Rescorer | None], LocalASR] | None = None,
    ) -> None:  # fmt: skip
        self.facts = facts
        self._make, self._over = make, over
        self._spare: list[Transcriber] = []
        self._detectors: list[SpeechDetector] = []
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.facts.name

    def warm(self) -> None:
        """Load one transcriber now, so the first talk need not wait."""
        ready = self._make()
        with self._lock:
            self._spare.append(ready)

    def advised_by(self, rescorer: Callable[[], Rescorer] | None) -> LocalASR:
        """These ears with another second opinion, or without one; what they loaded is shared."""
        return self if self._over is None else self._over(rescorer and rescorer())

    def detector(self) -> SpeechDetector:
        with self._lock:
            return self._detectors.pop() if self._detectors else SileroDetector()

    def transcriber(self) -> Transcriber:
        with self._lock:
            if self._spare:
                return self._spare.pop()
        return self._make()

    def release(self, transcriber: Transcriber) -> None:
        """Return a transcriber after a talk. The next talk is somebody else's, so it forgets the speaker."""
        transcriber.forget()
        with self._lock:
            self._spare.append(transcriber)

    def release_detector(self, detector: SpeechDetector) -> None:
        detector.reset()
        with self._lock:
            self._detectors.append(detector)
