"""The gate before a talk that has to be called by name: waiting, called, or open for more. Pure.

    gate = step(gate, seen)

It is stepped once for each slice of sound, by the ear, which was given all that it sees. While it waits, sound is only
searched for a name. It stays open as long as somebody speaks or a reply is made or sounds, and for a while behind that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

CALLED_S = FOLLOW_UP_S = 8.0
"""Time for the first word of a request behind a name that was said alone, and of a follow-up behind a reply."""
QUESTION_S = 15.0
"""The same behind a reply that ends with a question."""


class GateIs(Enum):
    """WAITING for a name; CALLED, and nothing was said yet; OPEN for everything that is said."""

    WAITING = "waiting"
    CALLED = "called"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class WakeGate:
    """`until`: when it closes unless something happens, clock seconds; None: not while somebody speaks or answers."""

    state: GateIs = GateIs.WAITING
    until: float | None = None

    @property
    def waits(self) -> bool:
        return self.state is GateIs.WAITING


@dataclass(frozen=True, slots=True)
class Seen:
    """All that the gate goes by.

    now     clock seconds
    called  a name was found in the sound
    busy    the user speaks, or a reply is made or sounds
    asks    the last reply ends with a question
    """

    now: float
    called: bool = False
    busy: bool = False
    asks: bool = False


def step(gate: WakeGate, seen: Seen) -> WakeGate:
    """The gate behind this."""
    if seen.busy:  # a timer that rings opens it too: "stop" must be enough while anything sounds
        return WakeGate(GateIs.OPEN)
    if gate.waits:
        return WakeGate(GateIs.CALLED, seen.now + CALLED_S) if seen.called else gate
    if gate.until is None:
        return replace(gate, until=seen.now + (QUESTION_S if seen.asks else FOLLOW_UP_S))
    return WakeGate() if seen.now >= gate.until else gate
