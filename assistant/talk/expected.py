"""Words that this user is likelier to say than people in general: a transcriber may lean towards them. Pure.

They are: entries of lists and reminders, names mentioned in this talk, the long words of the last reply, and the tools
that a client declared. The likeliest come first, because an engine takes a limited number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assistant.contracts import MOST_TERMS

RECENT = 6
"""A name counts for this many messages back."""
LONG = 7
"""Words of the last reply with this many letters or more may be ones that the engine does not expect by itself."""
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_WITHIN = re.compile(r"(?<=[\w,;'’] )[^\W\d_][\w'-]+")
"""A word that does not begin a sentence: if it has a capital, it is a name."""


def expected(kept: Iterable[str], messages: Sequence[str], reply: str, declared: Iterable[str]) -> tuple[str, ...]:
    """
    kept      values of the talk's tools: things, labels, notes
    messages  the talk's messages, oldest first, both sides
    reply     the assistant's last reply
    declared  names of the client's tools, for example `set_light`
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
