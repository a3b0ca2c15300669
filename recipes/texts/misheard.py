"""How speech recognisers mishear words: misheard.tsv, which `recipes.misheard` made from pairs, and alike.tsv.

alike.tsv has words that sound alike or are split wrongly, as written by an ear with an open vocabulary. Recognisers and
people alike lose small words and add them.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Final


@cache
def confusions() -> tuple[tuple[tuple[str, ...], tuple[str, ...], int], ...]:
    """Words that were said, the words heard instead, and how often."""
    here = Path(__file__)
    files = (here.with_name(name).read_text("utf-8") for name in ("misheard.tsv", "alike.tsv"))
    rows = [row for text in files for row in text.splitlines()]
    said, heard, times = zip(*(row.split("\t") for row in rows), strict=True)
    return tuple((tuple(a.split()), tuple(b.split()), int(n)) for a, b, n in zip(said, heard, times, strict=True))


def misheard(rng: random.Random, words: list[str], held: set[str]) -> list[str]:
    """The words with one place misheard; unchanged if none of them ever was. `held` stay whole."""
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
    """The words without the beginning of the first or the end of the last one, as when the microphone opens late."""
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


_SMALL: Final = frozenset(
    str.split(
        "a an the my me us our your it is are am was do does did can could would will please to for of at in on that "
        "this there have has i you we just so now then some any and up out again really"
    )
)
"""Words that a request can lose and still be understood."""


def loosened(rng: random.Random, words: list[str], held: set[str]) -> list[str]:
    """The words with one to three small ones lost, added or swapped: a wording that nobody wrote down."""
    words = [*words]
    for _ in range(rng.choice([1, 1, 2, 3])):
        small = [at for at, word in enumerate(words) if word in _SMALL and word not in held]
        if small and len(words) > 2 and rng.random() < 0.6:
            del words[rng.choice(small)]
        elif places := [at for at in range(1, len(words)) if not held.intersection(words[at - 1 : at + 1])]:
            words.insert(rng.choice(places), rng.choice(("the", "please", "just", "now", "then", "so")))
    return words
