"""What the speech recogniser makes of words, from misheard.tsv, which `recipes.misheard` made."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path


@cache
def confusions() -> tuple[tuple[tuple[str, ...], tuple[str, ...], int], ...]:
    """Words that were said, what was heard for them, and how often."""
    rows = Path(__file__).with_name("misheard.tsv").read_text("utf-8").splitlines()
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
