"""The part of the contract that all engines share: the queue, the cadence, what remains to be done after a pause.

An engine is a `Follower`: it takes sound and reports what it heard. `Paced` turns it into a `Transcriber`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import MOST_TERMS, AsrFacts, CalledName, Partial, Transcript
from assistant.text.called import called_name, sounds_like

SHARE = 0.25
"""Share of real time that interim words may cost. Slower decoding runs less often, so it never takes time that the
voice needs, least of all on a busy machine: wall time counts, not processor time."""
LONGEST_CADENCE_MS = 2000.0


class Follower(Protocol):
    """An engine at work on one utterance. Called by one thread at a time."""

    @property
    def facts(self) -> AsrFacts: ...

    def hear(self, pcm: Pcm) -> None:
        """Accept some sound, cut in any way. Must not do noticeable work."""

    def read(self, whole: bool) -> Partial:
        """Decode all sound so far. `whole`: the utterance may be over, so decode as well as possible."""

    def end(self) -> Transcript:
        """The full result of the last `read(True)`. The next utterance begins."""

    def drop(self) -> None:
        """Begin the next utterance and discard this one."""

    def expect(self, terms: Sequence[str]) -> None: ...

    def forget(self) -> None:
        """Forget what was learnt about the speaker."""


@runtime_checkable
class Multilingual(Protocol):
    """A follower that writes better if it knows the language. None: it finds out by itself."""

    def listen_in(self, language: str | None) -> None: ...


@runtime_checkable
class NameReader(Protocol):
    """A follower that can be asked for a name, which is surer than to look for it in the text. See `called`, `confirms`
    and `leave_out` of `Transcriber`."""

    def named(self, sound: Pcm, names: Sequence[str]) -> CalledName | None: ...

    def may_hold(self, sound: Pcm, phrase: str) -> bool: ...

    def leave_out(self, name: str) -> bool: ...


class Paced:
    """Implements `Transcriber` for any follower. `clock`: seconds, to time each pass."""

    def __init__(self, follower: Follower, clock: Callable[[], float] = time.perf_counter) -> None:
        self._follower, self._clock = follower, clock
        self._decoding = threading.Lock()
        self._waiting: deque[Pcm] = deque()
        self._cadence_ms = follower.facts.cadence_ms
        self._latest = Partial()
        self._whole = False

    @property
    def facts(self) -> AsrFacts:
        return self._follower.facts

    @property
    def follower(self) -> Follower:
        """The engine itself, for another pace over the same one."""
        return self._follower

    @property
    def cadence_ms(self) -> float:
        """Sound between two passes at the current speed of this machine."""
        return self._cadence_ms

    def push(self, pcm: Pcm) -> None:
        sound = np.nan_to_num(np.asarray(pcm, np.float32).ravel(), nan=0.0, posinf=1.0, neginf=-1.0)
        if sound.size:
            self._waiting.append(np.clip(sound, -1.0, 1.0))

    def partial(self, now: bool = False) -> Partial:
        with self._decoding:
            new = sum(part.size for part in tuple(self._waiting))
            if not now and new * 1000 / HEARING_RATE < self._cadence_ms:
                return self._latest
            return self._read(whole=False)

    def pause(self) -> Partial:
        with self._decoding:
            return self._read(whole=True)

    def final(self) -> Transcript:
        with self._decoding:
            try:
                self._read(whole=True)
                return self._follower.end()
            except BaseException:
                self._follower.drop()  # a failure costs this utterance, never the next
                raise
            finally:
                self._begin()

    def expect(self, terms: Sequence[str]) -> None:
        with self._decoding:
            self._follower.expect(tuple(terms)[:MOST_TERMS])

    def called(self, sound: Pcm, names: Sequence[str]) -> CalledName | None:
        if isinstance(self._follower, NameReader):
            with self._decoding:
                return self._follower.named(sound, names)
        found = called_name(self._text_of(sound, names), names)
        return None if found is None else CalledName(*found)

    def confirms(self, sound: Pcm, phrase: str) -> bool:
        if not isinstance(self._follower, NameReader):
            return sounds_like(self._text_of(sound, (phrase,)), phrase)
        with self._decoding:
            return self._follower.may_hold(sound, phrase)

    def leave_out(self, name: str) -> bool:
        if not isinstance(self._follower, NameReader):
            return False
        with self._decoding:
            return self._follower.leave_out(name)

    def _text_of(self, sound: Pcm, expected: Sequence[str] = ()) -> str:
        """The text of a sound that belongs to no utterance."""
        self.reset()
        self.expect(expected)
        self.push(sound)
        try:
            return self.pause().text
        finally:
            self.reset()
            self.expect(())

    def listen_in(self, language: str | None) -> None:
        with self._decoding:
            if isinstance(self._follower, Multilingual):
                self._follower.listen_in(language)

    def reset(self) -> None:
        with self._decoding:
            self._waiting.clear()
            self._follower.drop()
            self._begin()

    def forget(self) -> None:
        self.reset()
        self.listen_in(None)
        with self._decoding:
            self._follower.expect(())
            self._follower.forget()
            self._cadence_ms = self.facts.cadence_ms

    def _begin(self) -> None:
        self._latest, self._whole = Partial(), False

    def _read(self, whole: bool) -> Partial:
        if not self._waiting and (self._whole or not whole):
            return self._latest
        while self._waiting:
            self._follower.hear(self._waiting.popleft())
        began = self._clock()
        self._latest, self._whole = self._follower.read(whole), whole
        if not whole:
            cost_ms = (self._clock() - began) * 1000
            self._cadence_ms = min(LONGEST_CADENCE_MS, max(self.facts.cadence_ms, cost_ms / SHARE))
        return self._latest
