"""Fixed questions and answers, read from smalltalk.txt: greetings, feelings, the assistant itself, and its limits.

In the file: phrasings separated by `;`, then a line `=> answer | answer`. Under `[knowledge]` the answer is what a
larger model would do. Jokes, facts and poems stand one per line.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from assistant.recipes.texts.phrases import sections, split_phrases

Pairs: TypeAlias = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

_SECTIONS: Final = sections("smalltalk.txt")


def _pairs(section: str) -> Pairs:
    pairs, asked = [], ""
    for line in _SECTIONS[section]:
        if line.startswith("=>"):
            pairs.append((split_phrases(asked), tuple(answer.strip() for answer in line[2:].split("|"))))
            asked = ""
        else:
            asked += f";{line}"
    return tuple(pairs)


SMALL_TALK: Final = _pairs("small talk")
ABOUT: Final = _pairs("about itself")
OUT_OF_REACH: Final = _pairs("out of reach")
KNOWLEDGE: Final = {would[0]: asked for asked, would in _pairs("knowledge")}
JOKES, FACTS, POEMS = (tuple(_SECTIONS[name]) for name in ("jokes", "facts", "poems"))

_ALIKE: Final = (
    (
        "I cannot look up the news, because I do not go online.",
        "I do not know what goes on in the world. I do not go online.",
    ),
    ("That is all right. Take your time.", "Take your time."),
    ("All right.", "All right. What shall I do?"),
    (
        "I can set timers and alarms, tell the time, calculate, keep lists and notes, and tell stories.",
        "I can set timers and alarms, tell the time, calculate, keep lists and notes, and tell stories. Just ask.",
    ),
)
"""Replies of which each is right where another is."""


def as_right(replies: tuple[str, ...]) -> tuple[str, ...]:
    """The replies, and those that are as right."""
    more = [alike for group in _ALIKE if set(group) & set(replies) for alike in group]
    return tuple(dict.fromkeys((*replies, *more)))
