"""Every kind of exchange in a talk, and its shares."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from recipes.texts.scene import Scene
from recipes.texts.scenes_following import chained, corrected, half_said, heard_numbers, shorter, tale
from recipes.texts.scenes_interrupted import interrupted, start_alone
from recipes.texts.scenes_recalled import edited, recalled, unknown
from recipes.texts.scenes_repair import repair
from recipes.texts.scenes_talk import (
    after_me,
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
from recipes.texts.scenes_time import alarm, clock, date, reminder, several, timer, timers, until
from recipes.texts.scenes_told import counting, fun, story
from recipes.texts.scenes_tools import arithmetic, chance_games, conversion, lists, notes, spelling

SCENES: Final[tuple[tuple[Callable[[Scene], None], float, float], ...]] = (
    (clock, 2, 1), (date, 4, 2.5), (until, 2, 1.5), (timer, 8, 10), (timers, 3.5, 4), (alarm, 8, 5), (reminder, 7, 11), (arithmetic, 9, 16),
    (conversion, 4, 8), (spelling, 2.5, 6), (chance_games, 2, 2), (lists, 9, 24), (notes, 5, 9), (counting, 6, 15), (story, 4, 16),
    (fun, 2, 3), (memory, 6, 18), (again, 4, 18), (after_me, 2, 10), (session, 5, 7), (small_talk, 6, 40), (itself, 4, 20),
    (out_of_reach, 5, 46), (knowledge, 7, 34), (unclear, 2, 2), (repair, 1.5, 4), (stopping, 1.5, 8), (failed, 0.5, 1),
    (corrected, 6, 45), (chained, 4, 24), (recalled, 4, 56), (edited, 4, 42), (tale, 2, 16), (shorter, 1, 4), (half_said, 2, 16),
    (heard_numbers, 1, 8), (unknown, 4, 12), (interrupted, 0, 12), (several, 0, 10), (start_alone, 0, 5),
)  # fmt: skip
"""Every kind of exchange, its share in realistic talks, and in practice: more of what is hard to learn.
Those that came last are practised alone, so that the talks that are scored stay the same."""

FOLLOWING: Final = (corrected, corrected, chained, recalled, recalled, edited, half_said, tale, unknown, out_of_reach, knowledge)
"""The exchanges that refer to an earlier turn, and those beyond the model's reach: these are scored separately."""
