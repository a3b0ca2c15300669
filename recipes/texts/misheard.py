"""What speech recognisers make of words: misheard.tsv, which `recipes.misheard` made of pairs, and alike.tsv.

alike.tsv has words that sound alike or are split wrongly, as an ear with an open vocabulary writes them.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path


@cache
def confusions() -> tuple[tuple[tuple[str, ...], tuple[str, ...], int], ...]:
    """Words that were said, what was heard for them, and how often."""
    here = Path(__file__)
    files = (here.with_name(name).read_text("utf-8") for name in ("misheard.tsv", "alike.tsv"))
    rows = [row for text in files for row in text.splitlines()]
    said, heard, times = zip(*(row.split("\t") for row in rows), strict=True)
    return tuple((tuple(a.split()), tuple(b.split()), int(n)) for a, b, n in zip(said, heard, times, strict=True))


def misheard(rng: random.Random, words: list[str], held: set[str]) -> list[str]:
    """The words with one place of them misheard; as they are if they hold nothing that ever was. `held` stay whole."""
    found = [
        (at, len(said), heard, times)
        for said, heard, times in confusions()
        for at in range(len(words) - len(said) + 1)
        if tuple(words[at : at + len(said)]) == said and not held.intersection(said)
    ]
    if not found:
        return words
    at, length, heard, _ = rng.choices(found, [times for *_, times in found])[0]
    return [*words[:at], *heard, *words[at + length :]] or words


def cut_off(rng: random.Random, words: list[str], held: set[str]) -> list[str]:
    """The words with the beginning of the first or the end of the last one lost, as when the microphone opens late."""
    at = rng.choice([0, 0, -1])
    if len(words) < 3 or words[at] in held or len(words[at]) < 2:
        return words
    word = words[at]
    kept = word[rng.randint(1, len(word) - 1) :] if at == 0 else word[: rng.randint(1, len(word) - 1)]
    whole = rng.random() < 0.5
    words = [*words]
    if at == 0:
        return words[1:] if whole else [kept, *words[1:]]
    return words[:-1] if whole else [*words[:-1], kept]
