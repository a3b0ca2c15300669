"""New kernels that no card has run yet: each is a switch of the context, and off until a card has shown its worth.

The interpreter shows that such a kernel computes the right thing, the compiler that it fits every card. Whether it is
faster, and repeats its sums, only a card can show: `python -m benchmarks.card` times both sides of every switch in one
run. A switch that is proven moves to PROVEN, and the old side goes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum


class Switch(StrEnum):
    """A part that runs otherwise than in the plain form."""

    PACKED = "packed"  # one row times a packed matrix: scales meet partial sums, no weight is rounded
    JOINED = "joined"  # small operators of a decoded row join their neighbours
    DRAW = "draw"  # what follows the top-k of a draw is one kernel
    CODEC = "codec"  # the published codec's layers are a kernel each
    PDL = "pdl"  # kernels of a decoded step begin while the one before them ends
    SLEEP = "sleep"  # weights lie where they can be let go and come back at the same addresses
    WIDE = "wide"  # state is copied in elements of 16 bytes
    CHUNK = "chunk"  # a prefill's delta rule and attention are a few kernels, and need no buckets


PROVEN: frozenset[Switch] = frozenset()
"""On where nothing else is said. Empty: the kernels of these switches were built after the last card was met."""
ALL = frozenset(Switch)

_on: ContextVar[frozenset[Switch]] = ContextVar("switches", default=PROVEN)


def is_on(switch: Switch) -> bool:
    """Asked by the blocks of a step while it is captured."""
    return switch in _on.get()


@contextmanager
def switched(on: frozenset[Switch]) -> Iterator[None]:
    """Only these are on inside."""
    token = _on.set(on)
    try:
        yield
    finally:
        _on.reset(token)
