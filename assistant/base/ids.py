"""Ids for things made during a talk: each is unique and has a prefix that says what it names."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TypeAlias

Ids: TypeAlias = Callable[[str], str]
"""Takes a prefix (`item`, `resp`, `conv`, …), returns an id that was never returned before."""


def random_ids(prefix: str) -> str:
    """`item_` and 22 hexadecimal digits: within the 32 characters that clients allow."""
    return f"{prefix}_{uuid.uuid4().hex[:22]}"
