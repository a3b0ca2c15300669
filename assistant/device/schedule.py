"""Decides whose replay is next on the one thread that talks to the device: which model's, and for which talk.

The rule: sound that somebody waits for comes first, then a voice whose lead is short, then thinking, then everything
else. So the voice never starves while it has less than TARGET_LEAD_MS, and beyond that thinking has the bus. When
several talks speak, one keeps the voice until its lead is long enough and another's is not: a change costs a swap of
state, so there is at most one in TARGET_LEAD_MS of sound. When several talks think, one at its beginning comes first,
because somebody waits for its first words; then they take turns by slices.

All of this applies to work of one urgency: a guess goes on only while nothing is awaited on either engine, so a
sounding voice or another talk's reply never waits for it longer than one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

TARGET_LEAD_MS = 800.0
"""With more sound than this ahead of the player, the voice gives way to thinking."""

SLICE = 16
"""Steps of thinking between two changes of talk: about a phrase, so that the swap of state is small beside it."""


GUESS_STEPS = 48
"""After this many steps a guess waits until it is known to be right: a first sentence, two seconds of sound."""


class Urgency(IntEnum):
    """The urgency of a piece of work, by whether somebody waits for it; the most urgent first."""

    AWAITED = 0
    GUESS = 1
    """It will be awaited if a guess is right."""
    IDLE = 2
    """Nobody waits: work done ahead of time."""


class EngineKind(Enum):
    """The engine that a piece of work needs."""

    LLM = "llm"
    TTS = "tts"


@dataclass(frozen=True, slots=True)
class TTSWork:
    """A talk's next work for the voice, `steps` of it made. `lead_ms`: sound made and not yet played, by the clock."""

    lead_ms: float
    urgency: Urgency = Urgency.AWAITED
    steps: int = 0


@dataclass(frozen=True, slots=True)
class LLMWork:
    """A talk's next work for the language model, `steps` of it made."""

    urgency: Urgency = Urgency.AWAITED
    steps: int = 0


def due(work: Sequence[TTSWork | LLMWork]) -> list[int]:
    """Indices of the work, of both engines, that may step now: the most urgent, except guesses that have made
    enough."""
    able = [index for index, one in enumerate(work) if one.urgency is not Urgency.GUESS or one.steps < GUESS_STEPS]
    most = min((work[index].urgency for index in able), default=Urgency.IDLE)
    return [index for index in able if work[index].urgency is most]


def next_engine(llm: LLMWork, tts: TTSWork) -> EngineKind:
    """The lane whose head makes its next step, if both are due."""
    return EngineKind.LLM if tts.lead_ms >= TARGET_LEAD_MS else EngineKind.TTS


def next_tts(talks: Sequence[TTSWork], current: int | None) -> int:
    """The talk that has the voice next, among these in the order of their requests; `current` has it now."""
    if current is not None and talks[current].lead_ms < TARGET_LEAD_MS:
        return current
    short = (index for index, talk in enumerate(talks) if talk.lead_ms < TARGET_LEAD_MS)
    return next(short, current or 0)


def next_llm(talks: Sequence[LLMWork], current: int | None) -> int:
    """The talk that thinks next, among these in the order of their requests; `current` thought last."""
    for index, talk in enumerate(talks):
        if talk.steps < SLICE:
            return index
    if current is None:
        return 0
    return current if talks[current].steps % SLICE else (current + 1) % len(talks)
