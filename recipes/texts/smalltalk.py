"""Fixed questions and answers, read from smalltalk.txt: greetings, feelings, the assistant itself, and its limits.

In the file: phrasings separated by `;`, then a line `=> answer | answer`. There are few answers, each good for many
questions: a model this small cannot tell two hundred of them apart. Jokes, facts and poems stand one per line.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from recipes.texts.phrases import sections, split_phrases

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
KNOWLEDGE: Final = _pairs("knowledge")
ALL: Final = (SMALL_TALK, ABOUT, OUT_OF_REACH, KNOWLEDGE)
JOKES, FACTS, POEMS = (tuple(_SECTIONS[name]) for name in ("jokes", "facts", "poems"))

_INTRODUCED: Final = (
    "I am {me}, a small voice assistant. I run on this machine, and I can help with time, lists, sums and stories."
)
_ALSO: Final = {
    "All right.": ("Okay.", "All right. What shall I do?", "All right. I am here if you need me."),
    "All right. What shall I do?": ("All right.", "Okay."),
    "All right. I am here if you need me.": ("All right.", "Okay."),
    "I am {me}.": (_INTRODUCED,),
    "I am not a person. I am a small language model on this machine.": (_INTRODUCED,),
    "I am too small to know that. A larger model could tell you.": (
        "I am too small to know about {about}. A larger model could tell you.",
        "I cannot look up {about}, because I do not go online.",
        "I cannot look that up, because I do not go online.",
    ),
    "I cannot look that up, because I do not go online.": (
        "I cannot look up {about}, because I do not go online.",
        "I do not know the weather, because I do not go online.",
        "I do not know the news, because I do not go online.",
    ),
}
"""Replies that are also right in place of another; the reverse does not always hold."""


def as_right(replies: tuple[str, ...]) -> tuple[str, ...]:
    """The replies, and those that are equally right."""
    return tuple(dict.fromkeys((*replies, *(also for reply in replies for also in _ALSO.get(reply, ())))))
