"""A talk's session in the voice engine, frozen into a capsule and put back: what the engine's lease asks of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from capsules import Capsule
from capsules.errors import CapsuleError
from tts_engine.engine import HiggsTTS
from tts_engine.sampling import VoiceSampling
from tts_engine.voices import Voice


@dataclass(slots=True)
class Said:
    """A piece in the session: its first frame counted through the session, and how many frames of it hold."""

    piece_id: str
    first_frame: int
    frames: int


@dataclass(slots=True)
class SpokenState:
    """What is known of a talk beside the engine's session: in which voice, and what was said."""

    voice: str
    said: list[Said] = field(default_factory=list)
    plays_until: float = 0.0
    """When all that was made will have been played at the earliest."""


class FrozenSessions:
    """Not replaceable: the frames of a reply were sampled with what was said before in the session, rows of which the
    engine lets go in time, so a session that is lost in mid-sentence cannot go on.
    """

    replaceable = False

    def __init__(self, tts: HiggsTTS, voices: Mapping[str, Voice | None], sampling: VoiceSampling | None) -> None:
        self._tts, self._voices, self._sampling = tts, voices, sampling

    def freeze(self, state: SpokenState, name: str) -> Capsule | None:
        return self._tts.snapshot(name) if state.said else None

    def thaw(self, state: SpokenState, capsule: Capsule) -> bool:
        try:
            self._tts.restore(capsule)
        except CapsuleError:
            return False
        self._sample()
        return True

    def clear(self, state: SpokenState) -> None:
        self._tts.open(self._voices[state.voice])
        state.said = []
        self._sample()

    def to_json(self, state: SpokenState) -> dict[str, object]:
        return {"voice": state.voice, "said": [[one.piece_id, one.first_frame, one.frames] for one in state.said]}

    def from_json(self, facts: Mapping[str, Any]) -> SpokenState:
        if facts["voice"] not in self._voices:
            raise ValueError(f"there is no voice {facts['voice']!r} any more")
        return SpokenState(facts["voice"], [Said(*row) for row in facts["said"]])

    def _sample(self) -> None:
        if self._sampling is not None:
            self._tts.set_sampling(self._sampling)
