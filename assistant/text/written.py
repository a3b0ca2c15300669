"""A spoken transcript as it would be written, with digits and capital names, for the language model to read."""

from __future__ import annotations

from assistant.text.names import capitals
from assistant.text.numbers import digits


def as_written(spoken: str) -> str:
    """`my name is anna set a timer for five minutes` → `my name is Anna set a timer for 5 minutes`."""
    return capitals(digits(spoken))
