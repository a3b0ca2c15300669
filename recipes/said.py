"""The words that the small model says of itself: those of its replies in the talks that it learns from.

Words that stood before do not count. With what it hears they are all that it may write: `llm_engine/wordguide.py`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from recipes.chatml import system_text, turn_text
from recipes.texts.scene import Talk
from recipes.texts.scenes_declared import declared_talk
from recipes.texts.talks import make_talk

_WORD = re.compile(r"[a-z]+")


def words_said(talks: int = 6000, seed: int = 0) -> list[str]:
    """Sorted, in small letters; a third of the talks have tools that have to be read."""
    rng, said = random.Random(f"words said {seed}"), set[str]()
    for number in range(talks):
        many = rng.choice([2, 5, 9, 20])
        said.update(of_itself(declared_talk(rng) if number % 3 == 0 else make_talk(rng, scenes=many)))
    return sorted(said)


def of_itself(talk: Talk) -> Iterator[str]:
    """The words of a talk's replies and calls that stood nowhere before."""
    heard = set(_WORD.findall(system_text(talk).lower()))
    for turn in talk.turns:
        words = set(_WORD.findall(turn_text(turn).lower()))
        if turn.role == "assistant":
            yield from words - heard
        heard |= words
