"""Ears: they find speech in sound and write it down.

A transcriber gets sound and returns words that become certain from the front, and a transcript at the end. Every engine
keeps to this, from closed-vocabulary ears to a network on a GPU, and one suite of tests checks them all. Sound is
float32 in ±1 at 16 kHz, any length at a time; samples that are not numbers count as silence. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assistant.base.sound import Pcm

MOST_TERMS = 100
"""With more names than this, the bias harms other words more than it helps these."""


@dataclass(frozen=True, slots=True)
class PlayedSound:
    """Sound at 16 kHz that went to the loudspeaker while as much came from the microphone. `anew`: a player began, or
    went on elsewhere, so the way back may take longer or shorter than before."""

    sound: Pcm
    anew: bool = False


@dataclass(frozen=True, slots=True)
class SpeechBlock:
    """One block of sound: its place in the stream, in samples at 16 kHz, the probability that it holds the user's
    speech, and the sound itself, without the echo of ours."""

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
        """float32 in ±1, any length -> the blocks that are now complete, in order. `played`: the same length of sound,
        some of which may come back through the microphone within half a second; None: nothing. `raised`: the speaker
        may shout, so sound that counts as speech only for a raised voice counts too; more laughs and hums then do as
        well."""

    def reset(self) -> None:
        """Begin a new stream at sample 0; an incomplete block is dropped."""


@dataclass(frozen=True, slots=True)
class AsrFacts:
    """The abilities of an engine. They do not change while it runs.

    languages    BCP-47 codes; none: not known
    cased        it writes capitals, marks and digits; False: lower-case words
    cadence_ms   sound per pass: `partial` decodes at most this often
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
    """The words so far. `stable` only grows within an utterance, and `final` begins with it unless the engine finds
    that nothing sensible was said; `tentative` may change. It brings its own space: `text` is both joined."""

    stable: str = ""
    tentative: str = ""

    @property
    def text(self) -> str:
        return self.stable + self.tentative


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole utterance. `speech` False: nothing sensible was said; the text, if any, is for a log only.

    confidence   0 … 1, None if the engine reports none; its meaning is the engine's own, so compare within one only
    """

    text: str
    words: tuple[HeardWord, ...] = ()
    confidence: float | None = None
    speech: bool = True


@dataclass(frozen=True, slots=True)
class CalledName:
    """A name that was said, and the words behind it so far."""

    name: str
    rest: str


class Transcriber(Protocol):
    """Follows one utterance at a time of one talk.

    `push` is cheap and may be called while `partial` or `pause` runs on another thread; those two and `final` wait for
    each other. Do not call `final`, `reset` and `forget` beside `push`: they separate one utterance from the next. The
    first samples should be the sound just before the speech (200 to 300 ms), never artificial silence.
    """

    @property
    def facts(self) -> AsrFacts: ...

    def push(self, pcm: Pcm) -> None:
        """Queue sound; never decodes for long."""

    def partial(self, now: bool = False) -> Partial:
        """Decode new sound, if a cadence of it has come or `now` is set; otherwise return the last result. Call it off
        the event loop."""

    def pause(self) -> Partial:
        """Decode all sound so far, as good as final: the user has paused. Call it off the event loop.

        The result holds until more is pushed. So the caller holds back the silence after a pause: it is pushed if the
        user goes on, and never if the turn ends, so that `final` is ready at once. After 64 ms of silence Moonshine
        writes as well as after 300 (8.1 and 8.5 % of 556 words wrong), so this may be called before the turn's own
        pause.
        """

    def final(self) -> Transcript:
        """End the utterance and begin the next. After `pause` with nothing pushed since: no work, the same words."""

    def expect(self, terms: Sequence[str]) -> None:
        """Set words that are likelier than usual from here on: names, list items, rare words of the last reply, the
        likeliest first. They replace the previous ones; the first `MOST_TERMS` count. An engine without bias ignores
        them."""

    def listen_in(self, language: str | None) -> None:
        """Set the language of what is said from here on, by its code; None: find out. Ears that do not know it, or that
        know only one, ignore it."""

    def called(self, sound: Pcm, names: Sequence[str]) -> CalledName | None:
        """Which of these names, of one word or more, this sound begins with, or has behind its first word. The sound
        belongs to no utterance; the one under way is dropped, and so are the expected words. Call it off the event
        loop."""

    def confirms(self, sound: Pcm, phrase: str) -> bool:
        """Whether this sound may hold the phrase, which a wake word's own network believes to have heard. Drops the
        same."""

    def leave_out(self, name: str) -> bool:
        """The utterance that begins has this name first, or behind its first word, as `called` found last. Whether they
        are left out of its text; False: they stand there, however they are spelt."""
        ...

    def reset(self) -> None:
        """Drop the utterance."""

    def forget(self) -> None:
        """End the talk: drop the utterance and everything learnt of the speaker, including the expected words."""


class NameSpotter(Protocol):
    """Listens for wake words in one stream of sound."""

    def spot(self, sound: Pcm) -> str | None:
        """More sound, any length -> the wake word whose end was just heard."""

    def start_over(self) -> None:
        """Forget all sound so far."""


class WakeWords(Protocol):
    """The wake words that this machine knows."""

    @property
    def words(self) -> tuple[str, ...]: ...

    def spotter(self) -> NameSpotter:
        """Load a listener of one's own; takes a few milliseconds."""
        ...


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
        """The facts about every transcriber made here."""
        ...

    def detector(self) -> SpeechDetector:
        """Return a detector at once. The caller must give it back."""
        ...

    def transcriber(self) -> Transcriber:
        """Return a transcriber, to be given back. It may take a while to load models: call this off the event loop."""
        ...

    def release(self, transcriber: Transcriber) -> None:
        """Give a transcriber back for the next talk. Nobody may use it any more, and no call of it may be under way."""
        ...

    def release_detector(self, detector: SpeechDetector) -> None:
        """Give a detector back in the same way."""
        ...
