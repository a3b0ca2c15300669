"""Freezes a talk's session in the voice engine into a capsule and puts it back, as the engine's lease requires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from capsules import Capsule
from capsules.errors import CapsuleError
from capsules.journal import JSON, Rows
from tts_engine.engine import HiggsTTS
from tts_engine.generator import SessionFacts
from tts_engine.reference import Voice
from tts_engine.sampling import VoiceSampling


@dataclass(slots=True)
class Said:
    """A piece in the session: its first frame counted through the session, and how many of its frames still hold."""

    piece_id: str
    first_frame: int
    frames: int


@dataclass(slots=True)
class SpokenState:
    """The facts about a talk beside the engine's session: its voice, and what was said."""

    voice: str
    said: list[Said] = field(default_factory=list)
    plays_until: float = 0.0
    """The earliest time by which everything made so far will have been played."""
    session: SessionFacts | None = None
    """The engine's session when it was last at rest, or when a chunk of it was last made; None before that."""
    kept: int = 0
    """The position at which its capsule was last written to disk at leisure."""
    behind: bool = False
    """Whether the engine, while it holds this state, lacks some of that session."""


class FrozenSessions:
    """Not replaceable: a lost session is made again row by row, which takes as long as speaking it did. Until that is
    done the engine lags behind the known facts."""

    replaceable = False

    def __init__(self, tts: HiggsTTS, voices: Mapping[str, Voice], sampling: VoiceSampling | None) -> None:
        self.tts, self.voices, self._sampling = tts, voices, sampling

    def freeze(self, state: SpokenState, name: str) -> Capsule | None:
        if not state.said or state.behind:  # half a session is not a valid state
            return None
        state.session = self.tts.facts()
        return self.tts.snapshot(name)

    def thaw(self, state: SpokenState, capsule: Capsule) -> bool:
        """The capsule may hold this state, or an earlier one of the same session."""
        if state.session is not None and not _begins(state.session.session, capsule):
            return False
        try:
            self.tts.restore(capsule)
        except CapsuleError:
            return False
        self._sample()
        held = capsule.host["session"]
        state.behind = state.session is not None and len(held["pieces"]) < len(state.session.session["pieces"])
        return True

    def clear(self, state: SpokenState) -> None:
        self.tts.open(self.voices[state.voice])
        self._sample()
        state.behind = state.session is not None

    def to_rows(self, state: SpokenState) -> Rows:
        rows: dict[str, JSON] = {"voice": state.voice}
        rows |= {f"said {one.piece_id}": [one.first_frame, one.frames] for one in state.said}
        if state.session is not None:
            facts = vars(state.session)
            session = dict(facts["session"])
            rows |= {f"piece {place}": piece for place, piece in enumerate(session.pop("pieces"))}
            rows["session"] = {**facts, "session": {**session, "voice": {}}}  # the voice's name is enough
        return rows

    def from_rows(self, rows: Rows) -> SpokenState:
        found: Mapping[str, Any] = rows
        if found["voice"] not in self.voices:
            raise ValueError(f"there is no voice {found['voice']!r} any more")
        said = [Said(key.removeprefix("said "), *row) for key, row in found.items() if key.startswith("said ")]
        state = SpokenState(found["voice"], sorted(said, key=lambda one: one.first_frame))
        if "session" in found:
            count = sum(key.startswith("piece ") for key in found)
            pieces = [found[f"piece {place}"] for place in range(count)]
            facts = found["session"]
            state.session = SessionFacts(**{**facts, "session": {**facts["session"], "pieces": pieces}})
        return state

    def _sample(self) -> None:
        if self._sampling is not None:
            self.tts.set_sampling(self._sampling)


def _begins(session: Mapping[str, Any], capsule: Capsule) -> bool:
    """Whether a capsule holds this session, or a beginning of it that ended with a piece."""
    held = capsule.host["session"]
    count = len(held["pieces"])
    same = all(held[name] == session[name] for name in ("dropped", "prefix"))
    if not same or held["pieces"] != session["pieces"][:count]:
        return False
    if count == len(session["pieces"]):
        return bool(held["position"] == session["position"] and held["pending"] == session["pending"])
    return bool(session["pieces"][count]["start"] <= held["position"])
