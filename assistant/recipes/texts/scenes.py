"""Every kind of exchange in a talk, and its share."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assistant.recipes.texts.scene import Scene
from assistant.recipes.texts.scenes_talk import (
    again,
    failed,
    itself,
    knowledge,
    memory,
    out_of_reach,
    session,
    small_talk,
    stopping,
    unclear,
)
from assistant.recipes.texts.scenes_time import alarm, clock, date, reminder, timer, timers, until
from assistant.recipes.texts.scenes_told import counting, fun, story
from assistant.recipes.texts.scenes_tools import arithmetic, chance_games, conversion, lists, notes, spelling

SCENES: Final[tuple[tuple[Callable[[Scene], None], float], ...]] = (
    (clock, 2), (date, 4), (until, 2), (timer, 8), (timers, 3.5), (alarm, 8), (reminder, 7), (arithmetic, 9), (conversion, 4),
    (spelling, 2.5), (chance_games, 2), (lists, 9), (notes, 5), (counting, 6), (story, 4), (fun, 2), (memory, 6), (again, 4),
    (session, 5), (small_talk, 6), (itself, 4), (out_of_reach, 4), (knowledge, 7), (unclear, 2), (stopping, 1.5), (failed, 0.3),
)  # fmt: skip
"""Every kind of exchange and its share."""
