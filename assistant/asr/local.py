"""Silero's detector, and transcribers of one kind, one kept ready for the next talk."""

from __future__ import annotations

import threading
from collections.abc import Callable

from assistant.asr.detector import SileroDetector
from assistant.contracts import AsrFacts, SpeechDetector, Transcriber


class LocalASR:
    """Loading a transcriber takes a moment, so one more than is in use is loaded ahead; one that is released serves
    the next."""

    def __init__(self, facts: AsrFacts, make: Callable[[], Transcriber]) -> None:
        self.facts = facts
        self._make = make
        self._spare: list[Transcriber] = []
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.facts.name

    def warm(self) -> None:
        """Load one transcriber now, so that the first talk need not wait."""
        ready = self._make()
        with self._lock:
            self._spare.append(ready)

    def detector(self) -> SpeechDetector:
        return SileroDetector()

    def transcriber(self) -> Transcriber:
        with self._lock:
            if self._spare:
                return self._spare.pop()
        return self._make()

    def release(self, transcriber: Transcriber) -> None:
        """A talk is over: its transcriber serves the next one, which is somebody else's, so it forgets the speaker."""
        transcriber.forget()
        with self._lock:
            self._spare.append(transcriber)
