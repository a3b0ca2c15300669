"""The words that the small model uses of its own accord: those of its replies in the talks it learns from.

Words that appeared before do not count. Besides words it hears, it may write only these:
`assistant/llm/small/words.py`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from recipes.chatml import system_text, turn_text
from recipes.texts import smalltalk
from recipes.texts.scene import Declaration, Talk
from recipes.texts.scenes_declared import declared_talk
from recipes.texts.talks import make_talk
from recipes.texts.tools import PERSONAS


def words_said(talks: int = 24000, seed: int = 0) -> list[str]:
    """Sorted, in lower case; a third of the talks have tools that have to be read."""
    rng, said = random.Random(f"words said {seed}"), {*_words(" ".join(fixed()))}
    for number in range(talks):
        many = rng.choice([2, 5, 9, 20])
        said.update(of_itself(declared_talk(rng) if number % 3 == 0 else make_talk(rng, scenes=many)))
    return sorted(said)


def fixed() -> Iterator[str]:
    """Replies that the texts contain as they are said, without holes."""
    yield from (*smalltalk.JOKES, *smalltalk.FACTS, *smalltalk.POEMS)
    for pairs in smalltalk.ALL:
        for _, replies in pairs:
            yield from (re.sub(r"{[^}]*}", " ", reply) for reply in replies)


def of_itself(talk: Talk) -> Iterator[str]:
    """The words of a talk's replies and calls that appeared nowhere before. The text with which our personas and the
    tools known by heart begin every talk does not count: other talks begin differently."""
    declared = tuple(tool for tool in talk.tools if isinstance(tool, Declaration))
    heard = {*_words(talk.system)} - {*_words(" ".join(PERSONAS.values()))}
    heard |= {*_words(system_text(Talk("", declared)) if declared else "")}
    for turn in talk.turns:
        words = {*_words(turn_text(turn))}
        if turn.role == "assistant":
            yield from words - heard
        heard |= words


def _words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())
