"""The words of the turn under way, written down beside the detector.

A transcriber's pass may take as long as some words, and the sound goes on meanwhile: the detector and the turn's end
must not wait for it. So sound is only queued here, and passes run on another thread, one at a time. At a pause,
everything is read as if the turn were over. The sound that follows is probably silence and is held back, so that the
transcript is ready when the turn is. If the user goes on, it is pushed then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from assistant.base.tongues import may_be_english
from assistant.contracts import ASR, CalledName, Partial, Transcriber, Transcript
from assistant.events import Pcm
from assistant.text.called import without_name
from assistant.text.written import as_written

T = TypeVar("T")
log = logging.getLogger(__name__)


class OffLoop(Protocol):
    """Runs a function off the event loop and returns its result."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


class Scribe:
    """One transcriber of one session. `begin_utterance` and `queue_sound` run off the event loop, the rest on it."""

    def __init__(self, asr: ASR, off_loop: OffLoop, language: Callable[[], str | None] = lambda: None) -> None:
        """`language`: the talk's own, when an utterance begins."""
        self._asr, self._off_loop, self._language = asr, off_loop, language
        self._listens_in: str | None = None
        self._transcriber: Transcriber | None = None
        self._held: list[Pcm] | None = None
        self._reading = self._waiting = self._fails = False
        self._expected: tuple[str, ...] = ()
        self._called = ""
        """A name to be taken from the text, because the ears leave it there."""

    async def open(self) -> None:
        """Get a transcriber. Loading one may take a while."""
        await self._off_loop(self._load)

    def close(self) -> None:
        """Give the transcriber back, if there is one. No thread may be using it any more."""
        if self._transcriber is not None:
            self._asr.release(self._transcriber)
            self._transcriber = None

    def _load(self) -> None:
        # Stored here and not by the caller: if a session ends while a transcriber is being loaded, nobody is waiting
        # any more, but it must still be given back.
        self._transcriber = self._asr.transcriber()

    @property
    def _open(self) -> Transcriber:
        assert self._transcriber is not None, "open comes first"
        return self._transcriber

    # -------------------------------------------------------------------------- off the event loop

    def called(self, sound: Pcm, names: Sequence[str]) -> CalledName | None:
        """The name that this sound begins with, which belongs to no utterance; nothing of it is kept."""
        return self._looked(lambda ears: ears.called(sound, names), None)

    def confirms(self, sound: Pcm, phrase: str) -> bool:
        """Whether the ears hear this phrase, too."""
        return self._looked(lambda ears: ears.confirms(sound, phrase), False)

    def _looked(self, look: Callable[[Transcriber], T], otherwise: T) -> T:
        """Ears that fail have heard nothing. No turn comes that would report it while a name is waited for, so the log
        does, once until they work again."""
        try:
            found = look(self._fresh())
        except Exception as error:
            if not self._fails:
                log.warning("no name can be heard: %s: %s", type(error).__name__, error)
            self._fails = True
            return otherwise
        self._fails = False
        return found

    def _fresh(self) -> Transcriber:
        """The transcriber between two utterances, in the talk's language."""
        self.begin_utterance(())
        return self._open

    def begin_utterance(self, expected: tuple[str, ...], called: str = "") -> None:
        """Begin a new utterance, which is likelier to have these words. Sound held from the previous one is dropped.
        `called`: the name that it begins with, which is never shown."""
        self._held = None
        self._open.reset()
        self._called = "" if called and self._open.leave_out(called) else called
        if (language := self._language()) != self._listens_in:
            self._listens_in = language
            self._open.listen_in(language)
        if expected != self._expected:
            self._expected = expected
            self._open.expect(expected)

    def queue_sound(self, pcm: Pcm) -> None:
        """Queue more sound; it is held back while the user pauses."""
        if self._held is not None:
            self._held.append(pcm)
        else:
            self._open.push(pcm)

    def hold_back(self) -> None:
        """The user pauses: the sound that follows is silence unless `go_on` is called."""
        if self._held is None:
            self._held = []

    def go_on(self) -> None:
        """The pause was not the end: the silence belongs to the utterance."""
        held, self._held = self._held, None
        for pcm in held or ():
            self._open.push(pcm)

    # --------------------------------------------------------------------------- on the event loop

    async def partial(self, now: bool = False) -> Partial | None:
        """The words so far, if a pass is due or `now` is set; None while a pass is already running."""
        if self._reading:
            return None
        self._reading = True
        try:
            return await self._off_loop(self._open.pause if now else self._open.partial)
        finally:
            self._reading = False

    async def fallen(self) -> Partial | None:
        """All words up to here, where the voice fell; None if a caller already waits for these."""
        if self._waiting:
            return None
        self._waiting = True
        try:
            return await self._off_loop(lambda: self._open.partial(now=True))
        finally:
            self._waiting = False

    async def paused(self) -> Partial:
        """All words before the pause, as good as final."""
        return await self._off_loop(self._open.pause)

    async def final(self) -> Transcript:
        """End the utterance and return its words. Raises whatever the transcriber raises."""
        self._held = None
        return await self._off_loop(self._open.final)

    def shown(self, text: str) -> str:
        """The text as a front sees it, with capitals and figures as far as they can be known if the engine has none."""
        facts = self._open.facts
        if not facts.cased and may_be_english(facts.languages, self._listens_in):
            text = as_written(text)
        return without_name(text, self._called)
