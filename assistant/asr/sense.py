"""Was anything sensible said, or is this what a network writes down when it is given noise? Pure.

Moonshine tiny, given silence, noise, hum, clicks, chords and knocks at five levels and three lengths (120 clips),
wrote a lone `You` in 79, notes in 26, thanks for watching in 7, the same few words over and over or a sentence it did
not believe in in the rest. No clear speech is refused: of 531 spoken prompts, most of one word, none was.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.text.languages import talk_words

LEAST_CHANCE = 0.25
"""Mean probability of the tokens. The prompts' lowest 1 % begins at 0.35, one-word prompts over the telephone."""
MOST_REPEATS = {1: 6, 2: 6}
"""In a row, of one token or two: people do say no seven times."""
MOST_LONG_REPEATS = 3
LONGEST_PERIOD = 12


def sensible(text: str, tokens: Sequence[int], chance: float, languages: Sequence[str]) -> bool:
    """The text as written, its tokens, their mean probability, and the languages (BCP-47) that it may be in. The
    language's list names what networks write from noise; Moonshine writes a person's `you` with a mark."""
    if not any(character.isalnum() for character in text):
        return False
    known = talk_words(languages)
    from_noise = known is not None and text in known.from_noise
    return not from_noise and chance >= LEAST_CHANCE and not repeats(tokens)


def repeats(tokens: Sequence[int]) -> bool:
    """Does a run of up to `LONGEST_PERIOD` tokens stand more often in a row than people say it?"""
    for period in range(1, LONGEST_PERIOD + 1):
        same = 0
        for now, before in zip(tokens[period:], tokens, strict=False):
            same = same + 1 if now == before else 0
            if same + (period > 2) >= period * MOST_REPEATS.get(period, MOST_LONG_REPEATS):
                return True  # the last mark of a loop is another one than those within
    return False
