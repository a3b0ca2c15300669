"""Who replays next on the one thread that talks to the device: the language model or the voice, and for which talk.

The rule: sound that somebody waits for comes first, then a voice whose lead is short, then thinking, then everything
else. So the voice never starves while it has less than TARGET_LEAD_MS, and beyond that thinking has the bus. Of several
talks that speak, one keeps the voice until its lead is long enough and another's is not: a change costs a swap of
state, and so it is made at most once in TARGET_LEAD_MS of sound. Of several that think, one at its beginning comes
first, because somebody waits for its first words; then they take turns by slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

TARGET_LEAD_MS = 800.0
"""Sound ahead of the player from which on the voice gives way to thinking."""

SLICE = 16
"""Steps of thinking between two changes of talk: a phrase; the swap of state is small beside it."""


class EngineKind(Enum):
    """Which engine a piece of work needs."""

    LLM = "llm"
    TTS = "tts"


@dataclass(frozen=True, slots=True)
class TTSWork:
    """A talk's next work for the voice. `lead_ms`: sound made and not yet played, by the clock."""

    lead_ms: float


@dataclass(frozen=True, slots=True)
class LLMWork:
    """A talk's next work for the language model, `steps` of it made. `idle_work`: nobody waits (a fold ahead of
    time)."""

    idle_work: bool = False
    steps: int = 0


def next_engine(llm: LLMWork | None, tts: TTSWork | None) -> EngineKind | None:
    """The lane whose head makes its next step. None: there is nothing to do."""
    if llm is None:
        return None if tts is None else EngineKind.TTS
    if tts is None:
        return EngineKind.LLM
    if tts.lead_ms < TARGET_LEAD_MS or llm.idle_work:
        return EngineKind.TTS
    return EngineKind.LLM


def next_tts(talks: Sequence[TTSWork], current: int | None) -> int:
    """Which of these talks, in the order in which they asked, has the voice next; `current` has it now."""
    if current is not None and talks[current].lead_ms < TARGET_LEAD_MS:
        return current
    short = (index for index, talk in enumerate(talks) if talk.lead_ms < TARGET_LEAD_MS)
    return next(short, current or 0)


def next_llm(talks: Sequence[LLMWork], current: int | None) -> int:
    """Which of these talks, in the order in which they asked, thinks next; `current` thought last."""
    awaited = [index for index, talk in enumerate(talks) if not talk.idle_work] or range(len(talks))
    for index in awaited:
        if talks[index].steps < SLICE:
            return index
    if current is not None and current in awaited and talks[current].steps % SLICE:
        return current
    return next((index for index in awaited if current is not None and index > current), awaited[0])
