"""A talk that waits for its name: three seconds of sound in memory, searched for it; everything else is dropped.

It runs on the ear's thread, block by block. A name is looked for where speech begins behind a silence: the ears read
the sound from there while it goes on, at its pauses and at its end. Two readings must find it: what is mistaken for a
name rarely is so twice. A detector for wake words, if there is one, hears all speech and a second on either side. Sound
from before the utterance with the name is never handed on.
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
AGAIN_BLOCKS = 2
"""A name that was found once is read again 64 ms later, so that the request need not wait for the next of these. After
160 ms it is found in others' talk as often, and the first sound comes 35 ms later."""
PAUSE_BLOCKS = 4
"""And 128 ms of silence."""
PHRASE_BLOCKS = 44
"""1.4 s hold a wake word."""
NEAR_BLOCKS = 31
"""The detector for wake words hears a second before speech, to know the room, and a second behind it. In silence it
would cost more than everything else."""
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
        self._far = 0
        """Blocks since the last one that may be speech."""
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
        self._agreed = False
        """Whether two readings found it."""
        self._again = 0
        """Blocks of the utterance at which it is read again."""

    @property
    def speaks(self) -> bool:
        """Whether an utterance is under way, or may have begun in the last block."""
        return self._length is not None or not self._quiet

    def let_go(self) -> None:
        """Drop all sound."""
        self._drop(0)
        self._quiet, self._run, self._length, self._found, self._agreed = APART_BLOCKS, 0, None, None, False
        self._far = 0
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
        """The wake word that the detector finds, up to this block."""
        if self._words is None:
            return None
        far = self._far + 1
        self._far = 0 if block.probability >= GOES_ON else far
        if self._far > NEAR_BLOCKS:
            return None
        if self._spotter is None:
            self._spotter = self._words.spotter()  # here, because most talks need none
        unheard = max(1, far - NEAR_BLOCKS)
        if unheard > NEAR_BLOCKS:  # some are lost to it
            self._spotter.start_over()
        heard = list(self._ring)[-min(unheard, NEAR_BLOCKS) :]
        found = [phrase for one in heard if (phrase := self._spotter.spot(one.sound)) is not None]
        return found[-1] if found else None

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
            self._begun, self._found, self._agreed = self._length, None, False

    def _looked(self, names: Sequence[str], now: bool) -> Call | None:
        """`now`: a wake word was found, which may have been mistaken for a name that is like it."""
        if self._length is None:
            return None
        over = self._quiet >= APART_BLOCKS
        spoken = self._length - self._begun + ONSET_BLOCKS
        again = self._found is not None and self._length == self._again
        due = now or over or again or spoken in READ_AT or self._quiet == PAUSE_BLOCKS
        call = None
        if due and (spoken <= READ_AT[-1] or self._found is not None):
            call = self._asked(self._length, names, now, over)
        if over:
            self._length = None
        return call

    def _asked(self, length: int, names: Sequence[str], now: bool, over: bool) -> Call | None:
        sound = np.concatenate([one.sound for one in list(self._ring)[-length:]])
        if (found := self._scribe.called(sound, names)) is not None:
            before, self._found, self._again = self._found, found, length + AGAIN_BLOCKS
            self._agreed = self._agreed or now or (before is not None and before.name == found.name)
        if not self._agreed or self._found is None:
            return None
        # A later reading may not find it again, but whoever still speaks has said more than a name.
        if self._found.rest or not self._quiet:
            return self._called(self._found.name, length, leads=True)
        return self._called(self._found.name, 0, leads=False) if over else None  # nothing of a name alone is needed

    def _called(self, name: str, blocks: int, leads: bool) -> Call:
        self._drop(blocks)
        handed = tuple(self._ring)
        self._ring.clear()
        self.let_go()
        return Call(name, handed, leads)

    def _drop(self, left: int) -> None:
        while len(self._ring) > left:
            self.dropped += self._ring.popleft().samples
