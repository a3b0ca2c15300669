"""Words that the user is likelier to say than people in general: what a transcriber may lean towards. Pure.

What is kept on lists and in reminders, names that fell in this talk, the long words of the last reply, the tools that a
client declared. The likeliest come first, because an engine takes a limited number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assistant.contracts import MOST_TERMS

RECENT = 6
"""Messages back to which a name is still in the air."""
LONG = 7
"""Letters from which on a word of the last reply may be one that the engine does not expect by itself."""
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_WITHIN = re.compile(r"(?<=[\w,;'’] )[^\W\d_][\w'-]+")
"""A word that no sentence begins with: if it has a capital, it is a name."""


def expected(kept: Iterable[str], messages: Sequence[str], reply: str, declared: Iterable[str]) -> tuple[str, ...]:
    """
    kept      what the talk's tools keep: things, labels, notes
    messages  of the talk, oldest first, both sides
    reply     the last of the assistant
    declared  names of the client's tools, as `set_light`
    """
    terms: dict[str, str] = {}
    for term in _terms(kept, messages, reply, declared):
        terms.setdefault(term.lower(), term)
    return tuple(terms.values())[:MOST_TERMS]


def _terms(kept: Iterable[str], messages: Sequence[str], reply: str, declared: Iterable[str]) -> Iterator[str]:
    for text in kept:
        yield from _WORD.findall(text)
    for message in reversed(messages[-RECENT:]):
        yield from (word for word in _WITHIN.findall(message) if word[0].isupper())
    yield from (word for word in _WORD.findall(reply) if len(word) >= LONG)
    for name in declared:
        yield from (word for word in name.split("_") if len(word) > 2)
