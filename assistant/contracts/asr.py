"""ASR: where speech is in sound, and what was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from assistant.base.sound import Pcm


@dataclass(frozen=True, slots=True)
class SpeechBlock:
    """One block of sound: its place in the stream, in samples at 16 kHz, and how likely it holds speech."""

    start_sample: int
    samples: int
    probability: float

    @property
    def end_sample(self) -> int:
        return self.start_sample + self.samples


class SpeechDetector(Protocol):
    """Follows one stream of 16 kHz mono sound."""

    def push(self, pcm: Pcm) -> list[SpeechBlock]:
        """float32 in ±1, any length -> the blocks that are now whole, in order."""

    def reset(self) -> None:
        """Begin a new stream at sample 0; what waited for its block is dropped."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said, in lower-case words, numbers spelled out.

    confidence   0 … 1: the mean probability of its words among all that the sound allows
    understood   False: nothing was said, or so unclearly that the words should not be acted upon
    """

    text: str
    confidence: float
    understood: bool


class Transcriber(Protocol):
    """Follows one utterance at a time. Not thread-safe: one thread calls at a time.

    The first samples should be what came just before the speech (200 to 300 ms), never silence made up: the noise
    floor is learnt from them.
    """

    def push(self, pcm: Pcm) -> str:
        """float32 in ±1 at 16 kHz, any length -> the words so far; later words may revise earlier ones."""

    @property
    def partial(self) -> str:
        """The words so far."""

    def final(self) -> Transcript:
        """End the utterance and begin the next."""

    def reset(self) -> None:
        """Drop the utterance."""

    def forget(self) -> None:
        """The talk is over: drop the utterance and what was learnt of the speaker."""


class ASR(Protocol):
    """Makes detectors and transcribers. One per process; what it makes follows one talk at a time."""

    @property
    def name(self) -> str: ...

    def detector(self) -> SpeechDetector: ...

    def transcriber(self) -> Transcriber:
        """May take a while (it loads models): call it off the event loop. Whoever takes one gives it back."""
        ...

    def release(self, transcriber: Transcriber) -> None:
        """Nobody uses this one any more and no call of it is under way: it may serve the next talk."""
        ...
