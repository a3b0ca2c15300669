"""The gate alone: a table of what it sees, and where it then stands."""

import pytest

from assistant.talk.gate import GateIs, Seen, WakeGate, step

WAITS, CALLED, OPEN = WakeGate(), WakeGate(GateIs.CALLED, 18.0), WakeGate(GateIs.OPEN)
LISTENS = WakeGate(GateIs.OPEN, 18.0)


@pytest.mark.parametrize(
    ("gate", "seen", "then"),
    [
        (WAITS, Seen(10.0), WAITS),
        (WAITS, Seen(10.0, asks=True), WAITS),
        (WAITS, Seen(10.0, called=True), CALLED),
        (WAITS, Seen(10.0, busy=True), OPEN),  # a timer rings, or somebody has written
        (CALLED, Seen(10.0, busy=True), OPEN),
        (CALLED, Seen(17.9), CALLED),
        (CALLED, Seen(18.0), WAITS),
        (OPEN, Seen(900.0, busy=True), OPEN),
        (OPEN, Seen(10.0), LISTENS),
        (OPEN, Seen(10.0, asks=True), WakeGate(GateIs.OPEN, 25.0)),
        (LISTENS, Seen(17.9, asks=True), LISTENS),
        (LISTENS, Seen(17.9, busy=True), OPEN),
        (LISTENS, Seen(18.0), WAITS),
        (LISTENS, Seen(900.0, called=True), WAITS),  # a name opens only a gate that waits
    ],
)
def test_where_the_gate_stands(gate: WakeGate, seen: Seen, then: WakeGate) -> None:
    assert step(gate, seen) == then
