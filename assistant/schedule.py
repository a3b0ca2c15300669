"""Who replays next on the one thread that talks to the device: thinking or speaking.

The rule: sound that somebody waits for comes first, then a voice whose lead is short, then thinking, then everything
else. So the voice never starves while it has less than TARGET_LEAD_MS, and beyond that thinking has the bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

TARGET_LEAD_MS = 800.0
"""Sound ahead of the player from which on the voice gives way to thinking."""


class Lane(Enum):
    """Which engine a piece of work needs. Work on one lane is done in order: an engine has one state."""

    THINK = "think"
    SPEAK = "speak"


@dataclass(frozen=True, slots=True)
class Speaking:
    """The voice's work at the head of its lane. `lead_ms`: sound made and not yet played, by the clock."""

    lead_ms: float


@dataclass(frozen=True, slots=True)
class Thinking:
    """The mind's work at the head of its lane. `idle_work`: nobody waits for it (a rollback ahead of time)."""

    idle_work: bool = False


def next_lane(thinking: Thinking | None, speaking: Speaking | None) -> Lane | None:
    """The lane whose head makes its next step. None: there is nothing to do."""
    if thinking is None:
        return None if speaking is None else Lane.SPEAK
    if speaking is None:
        return Lane.THINK
    if speaking.lead_ms < TARGET_LEAD_MS or thinking.idle_work:
        return Lane.SPEAK
    return Lane.THINK
