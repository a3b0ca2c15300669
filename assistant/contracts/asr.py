"""Ears: where speech is in sound, and what was said.

A transcriber gets sound and gives words that become certain from the front, and a transcript at the end. Every engine
keeps to this, from closed-vocabulary ears to a network on a GPU, and one suite of tests holds them to it. Sound is
float32 in ±1 at 16 kHz, any length at a time; what is no number counts as silence. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assistant.base.sound import Pcm

MOST_TERMS = 100
"""More names than this and the bias harms other words more than it helps these."""


@dataclass(frozen=True, slots=True)
class PlayedSound:
    """Sound at 16 kHz that went to the loudspeaker while as much came from the microphone. `anew`: a player began, or
    went on elsewhere, so the way back may take longer or shorter than before."""

    sound: Pcm
    anew: bool = False


@dataclass(frozen=True, slots=True)
class SpeechBlock:
    """One block of sound: its place in the stream, in samples at 16 kHz, how likely it holds speech of the user, and
    the sound itself, without what came back of ours."""

    start_sample: int
    samples: int
    probability: float
    sound: Pcm = field(compare=False)

    @property
    def end_sample(self) -> int:
        return self.start_sample + self.samples


class SpeechDetector(Protocol):
    """Follows one stream of 16 kHz mono sound."""

    def push(self, pcm: Pcm, played: PlayedSound | None = None, raised: bool = False) -> list[SpeechBlock]:
        """float32 in ±1, any length -> the blocks that are now whole, in order. `played`: as much sound, of which some
        may come back through the microphone within half a second; None: nothing. `raised`: whoever speaks may shout,
        so what is speech only in a raised voice counts too; more laughs and hums do then."""

    def reset(self) -> None:
        """Begin a new stream at sample 0; what waited for its block is dropped."""


@dataclass(frozen=True, slots=True)
class AsrFacts:
    """What an engine can do. None of it changes while it runs.

    languages    BCP-47 codes; none: not known
    cased        it writes capitals, marks and digits; False: lower-case words
    cadence_ms   of sound: `partial` decodes at most this often
    bias         `expect` has an effect
    word_times   words carry `start_ms` and `end_ms`
    """

    name: str
    languages: tuple[str, ...]
    cased: bool
    cadence_ms: float
    bias: bool
    word_times: bool


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A word as the engine writes it, marks included. Times count from the utterance's first sample; None: unknown."""

    text: str
    start_ms: float | None = None
    end_ms: float | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """The words so far. `stable` only ever grows within an utterance, and `final` begins with it unless the engine
    finds that nothing sensible was said; `tentative` may change. It brings its own space: `text` is both joined."""

    stable: str = ""
    tentative: str = ""

    @property
    def text(self) -> str:
        return self.stable + self.tentative


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole utterance. `speech` False: nothing sensible was said; the text, if any, is for a log only.

    confidence   0 … 1, None where the engine cannot say; it means what the engine means, compare within one only
    """

    text: str
    words: tuple[HeardWord, ...] = ()
    confidence: float | None = None
    speech: bool = True


class Transcriber(Protocol):
    """Follows one utterance at a time of one talk.

    `push` is cheap and may be called while `partial` or `pause` runs on another thread; those two and `final` wait for
    each other. `final`, `reset` and `forget` are not called beside `push`: they part one utterance from the next.
    The first samples should be what came just before the speech (200 to 300 ms), never silence made up.
    """

    @property
    def facts(self) -> AsrFacts: ...

    def push(self, pcm: Pcm) -> None:
        """Queue sound; never decodes for long."""

    def partial(self, now: bool = False) -> Partial:
        """Decode what is new, if a cadence of it has come or `now`; else what was found last. Call it off the event
        loop."""

    def pause(self) -> Partial:
        """The user has paused: decode all sound so far, as good as final. Off the event loop.

        It stands until more is pushed. So whoever hears silence after a pause holds it back: if the user goes on, it is
        pushed then; if the turn ends, it never need be, and `final` is there at once. After 64 ms of silence Moonshine
        writes as well as after 300 (8.1 and 8.5 % of 556 words wrong), so it may be asked before the turn's own pause.
        """

    def final(self) -> Transcript:
        """End the utterance and begin the next. After `pause` with nothing pushed since: no work, the same words."""

    def expect(self, terms: Sequence[str]) -> None:
        """Words likelier than usual from here on: names, list items, rare words of the last reply, the likeliest first.
        They replace those of before; the first `MOST_TERMS` count. An engine without bias ignores them."""

    def reset(self) -> None:
        """Drop the utterance."""

    def forget(self) -> None:
        """The talk is over: drop the utterance and all that was learnt of the speaker, the expected words too."""


class Rescorer(Protocol):
    """A second opinion on what was said, from whoever answers it. Any thread may ask."""

    def chances(self, texts: Sequence[str]) -> list[list[float]]:
        """For each text the natural logarithms of the probabilities of its parts and its end, as a request."""
        ...


class ASR(Protocol):
    """Makes detectors and transcribers. One per process; what it makes follows one talk at a time."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> AsrFacts:
        """Of every transcriber that is made here."""
        ...

    def detector(self) -> SpeechDetector:
        """Ready at once. Whoever takes one gives it back."""
        ...

    def transcriber(self) -> Transcriber:
        """May take a while (it loads models): call it off the event loop. Whoever takes one gives it back."""
        ...

    def release(self, transcriber: Transcriber) -> None:
        """Nobody uses this one any more and no call of it is under way: it may serve the next talk."""
        ...

    def release_detector(self, detector: SpeechDetector) -> None:
        """The same of a detector."""
        ...
