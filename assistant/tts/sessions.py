"""The session in the voice engine: its owner, the facts about it, and the way back to lost parts of it.

A talk whose front has left, or whose process was killed, keeps its session and goes on in the same tone when it is
resumed. Everything here runs on the engines' thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from assistant.base.errors import EngineFailed
from assistant.device.lease import EngineLease
from assistant.device.thread import Work
from assistant.tts.frozen import FrozenSessions, SpokenState
from tts_engine.errors import RetraceFailed

log = logging.getLogger(__name__)

KEPT_EVERY = 256
"""A session's capsule is written to disk again after it has grown or shrunk by this many positions."""


class SpokenSessions:
    """The sessions of one engine.

    guessed  whether the results for a talk may be taken back
    history  positions: a longer session begins anew once all of it was heard; None: length never restarts it
    now      seconds
    """

    def __init__(
        self, frozen: FrozenSessions, lease: EngineLease[SpokenState], guessed: Callable[[str], bool],
        history: int | None, now: Callable[[], float],
    ) -> None:  # fmt: skip
        self.tts, self.voices, self.lease, self.now = frozen.tts, frozen.voices, lease, now
        self._frozen, self._guessed, self._history = frozen, guessed, history

    def own(self, talk: str, voice: str) -> SpokenState:
        """Make the engine's session this talk's, in this voice; another voice begins another session."""
        state = self.lease.find(talk)
        if state is not None and state.voice != voice:
            self.lease.discard(talk)
        state = self.lease.begin(talk, partial(SpokenState, voice))
        self.lease.own(talk)
        return state

    def own_again(self, talk: str) -> None:
        """Go on where this talk was, though another talk may have had the engine since the last step."""
        if (state := self.lease.find(talk)) is None:
            raise EngineFailed("the talk was forgotten in mid-sentence and cannot go on; ask again")
        if self.lease.owner != talk:
            self.lease.own(talk)
            for _ in self.catch_up(talk, state):
                pass
            if not state.said:
                raise EngineFailed("the voice lost its state in mid-sentence and cannot go on; ask again")

    def catch_up(self, talk: str, state: SpokenState) -> Work[None]:
        """If the engine lags behind the facts about the owner's session, make the rest of it again."""
        while state.behind and state.session is not None:
            try:
                for _ in self.tts.retrace(state.session):
                    yield None
                    if self.lease.owner != talk:
                        self.lease.own(talk)
                        break  # begun anew, or from the last capsule: half a session is not stored
                else:
                    state.behind = False
            except RetraceFailed as error:
                log.warning("the voice of talk %s begins anew: %s", talk, error)
                state.said, state.session, state.behind = [], None, False
                self._frozen.clear(state)

    def note(self, talk: str, state: SpokenState, *, midway: bool = False) -> None:
        """Write down the facts about the session after a change. `midway`: the next change follows at once."""
        if self.lease.owner == talk and not state.behind:
            state.session = self.tts.facts()
        self.lease.note(talk, midway=midway)

    def refresh(self, talk: str) -> Work[None]:
        """Make the lost parts of the session again, and reduce the work for the next time. Or begin it anew: every row
        reads all rows before it."""
        if (state := self.lease.find(talk)) is not None and state.said:
            self.lease.own(talk)
            yield from self.catch_up(talk, state)
            if self._has_had_its_time(talk, state):
                self.begin_anew(talk, state)
            elif abs(self.tts.position - state.kept) >= KEPT_EVERY:
                state.kept = self.tts.position
                self.lease.save_owned(talk)

    def _has_had_its_time(self, talk: str, state: SpokenState) -> bool:
        """Whether it is too long to keep, and can no longer be cut to what was heard or taken back with a guess."""
        if self._history is None or self.tts.position <= self._history:
            return False
        return state.plays_until <= self.now() and not self._guessed(talk)

    def begin_anew(self, talk: str, state: SpokenState) -> None:
        """Replace the owner's session by one in the same voice, with nothing said."""
        self.tts.open(self.voices[state.voice])
        state.said, state.kept = [], 0
        self.note(talk, state)
