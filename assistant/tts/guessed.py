"""A guess at the voice: the session before it, and the way back to that. On the engines' thread."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.base.errors import EngineFailed
from assistant.device.guess import Guess
from assistant.tts.sessions import SpokenSessions


@dataclass(frozen=True, slots=True)
class VoiceBefore:
    """A session before a guess: its frames, its pieces, and when it will have been played. `known`: there was one."""

    known: bool
    frames: int
    said: int
    plays_until: float


def check_way_back(sessions: SpokenSessions, talk: str, voice: str, text: str) -> None:
    """Raises EngineFailed if a guess could not be taken back: another voice ends the session, and a full context would
    lose its oldest pieces."""
    state = sessions.lease.find(talk)
    if state is None:
        return
    if state.voice != voice:
        raise EngineFailed(f"a guess cannot change the voice from {state.voice} to {voice}; the reply itself will")
    sessions.lease.own(talk)
    if not sessions.tts.roomy(text):
        raise EngineFailed("there is no room for a guess in the voice's context; the reply itself will make room")


def undo_speech(sessions: SpokenSessions, talk: str, guess: Guess[VoiceBefore]) -> None:
    """Roll the session back to before the guess."""
    lease = sessions.lease
    lease.show(talk)
    before, state = guess.before, lease.find(talk)
    if before is None or state is None:
        return
    if not before.known:
        lease.discard(talk)
    elif lease.own(talk):
        sessions.tts.cut(before.frames)
        del state.said[before.said :]
        state.plays_until = before.plays_until
        sessions.note(talk, state)
