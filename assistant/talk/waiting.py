"""A talk that waits for its name: three seconds of sound in memory, searched for it; everything else is dropped.

It runs on the ear's thread, block by block. A name is looked for where speech begins behind a silence: the ears read
the sound from there at its first pause, and three times at most while it goes on. A detector for wake words, if there
is one, hears everything. Sound from before the utterance with the name is never handed on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assistant.base.sound import HEARING_RATE
from assistant.contracts import CalledName, NameSpotter, SpeechBlock, WakeWords
from assistant.talk.scribe import Scribe

RING_SAMPLES = 3 * HEARING_RATE
BEGINS, GOES_ON = 0.5, 0.35
"""Probabilities from which a block begins speech, and those that keep it up."""
ONSET_BLOCKS = 2
APART_BLOCKS = 8
"""256 ms of silence end an utterance. A name behind a shorter one is in the middle of what is said."""
BEFORE_BLOCKS, CLEAR_BLOCKS = 9, 3
"""Sound that the ears get before an onset, 288 ms as for any utterance, and what is left of the silence at least: it
holds the end of what was said before."""
READ_AT = (22, 38, 54)
"""Blocks of an utterance at which it is read: 0.7 s hold a name and a word behind it, 1.2 s a greeting as well, and in
noise the ears need more."""
PAUSE_BLOCKS = 4
"""And 128 ms of silence."""
PHRASE_BLOCKS = 44
"""1.4 s hold a wake word."""
SPOTTED_BLOCKS = 3
"""A detector finds a wake word a little behind its end; so much of the sound before that is the request's."""


@dataclass(frozen=True, slots=True)
class Call:
    """A name, or a wake word, and the sound of the request so far. `leads`: that sound begins with the name."""

    name: str
    blocks: tuple[SpeechBlock, ...]
    leads: bool


class Waiting:
    """Sound from before a call is in `_ring` alone. `dropped`: samples that left it and are gone."""

    def __init__(self, scribe: Scribe, words: WakeWords | None) -> None:
        self._scribe, self._words = scribe, words
        self._spotter: NameSpotter | None = None
        self._ring: deque[SpeechBlock] = deque()
        self.dropped = 0
        self._quiet = self._lead = APART_BLOCKS
        """Blocks of silence up to now, and before the speech under way."""
        self._run = 0
        self._length: int | None = None
        """Blocks of the utterance under way, with those before it; None: nobody speaks."""
        self._begun = 0
        """Its length when it was noticed."""
        self._found: CalledName | None = None

    @property
    def speaks(self) -> bool:
        """Whether an utterance is under way, or may have begun in the last block."""
        return self._length is not None or not self._quiet

    def let_go(self) -> None:
        """Drop all sound."""
        self._drop(0)
        self._quiet, self._run, self._length, self._found = APART_BLOCKS, 0, None, None
        if self._spotter is not None:
            self._spotter.start_over()

    def take_dropped(self) -> int:
        """How many samples were dropped since the last time."""
        dropped, self.dropped = self.dropped, 0
        return dropped

    def hear(self, block: SpeechBlock, names: Sequence[str]) -> Call | None:
        """One more block. Behind a call everything is handed on or dropped."""
        self._ring.append(block)
        self._drop(RING_SAMPLES // block.samples)
        spotted = self._spotted(block)
        self._follow(block)
        call = self._looked(names, now=spotted is not None)
        if call is not None or spotted is None or not self._confirmed(spotted):
            return call
        return self._called(spotted, SPOTTED_BLOCKS, leads=False)

    def _confirmed(self, phrase: str) -> bool:
        """Whether the ears hear the wake word too. A detector alone took "when the turn is" for "hey Jarvis"."""
        sound = np.concatenate([one.sound for one in list(self._ring)[-PHRASE_BLOCKS:]])
        return self._scribe.confirms(sound, phrase)

    def _spotted(self, block: SpeechBlock) -> str | None:
        if self._spotter is None and self._words is not None:
            self._spotter = self._words.spotter()  # here, because most talks need none
        return None if self._spotter is None else self._spotter.spot(block.sound)

    def _follow(self, block: SpeechBlock) -> None:
        """Notice the beginning of an utterance."""
        speaks = block.probability >= (BEGINS if self._quiet else GOES_ON)
        if self._length is not None:
            self._length += 1
        before, self._quiet = self._quiet, 0 if speaks else self._quiet + 1
        if not speaks:
            self._run = 0
            return
        self._run += 1
        if self._run == 1:
            self._lead = before
        if self._run == ONSET_BLOCKS and self._lead >= APART_BLOCKS:
            self._length = min(len(self._ring), ONSET_BLOCKS + min(BEFORE_BLOCKS, self._lead - CLEAR_BLOCKS))
            self._begun, self._found = self._length, None

    def _looked(self, names: Sequence[str], now: bool) -> Call | None:
        """`now`: a wake word was found, which may have been mistaken for a name that is like it."""
        if self._length is None:
            return None
        if self._quiet >= APART_BLOCKS:  # over: a name alone calls, and nothing of its sound is needed
            found, self._length = self._found, None
            return self._called(found.name, 0, leads=False) if found is not None else None
        spoken = self._length - self._begun + ONSET_BLOCKS
        due = now or spoken in READ_AT or self._quiet == PAUSE_BLOCKS
        if not due or (spoken > READ_AT[-1] and self._found is None):
            return None
        sound = np.concatenate([one.sound for one in list(self._ring)[-self._length :]])
        before, self._found = self._found, self._scribe.called(sound, names) or self._found
        found = self._found
        # A later pass may not find it again, but whoever still speaks has said more than a name.
        if found is not None and (found.rest or (before is not None and not self._quiet)):
            return self._called(found.name, self._length, leads=True)
        return None

    def _called(self, name: str, blocks: int, leads: bool) -> Call:
        self._drop(blocks)
        handed = tuple(self._ring)
        self._ring.clear()
        self.let_go()
        return Call(name, handed, leads)

    def _drop(self, left: int) -> None:
        while len(self._ring) > left:
            self.dropped += self._ring.popleft().samples
