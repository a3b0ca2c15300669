"""Whether what was said begins with a name, and the words without it. Pure.

Ears spell a name as they like ("Aida", "Eda" for Ada), so names are compared by how they sound. Only the first word
counts, or the one behind a greeting: a name in the middle of a sentence calls nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

GREETINGS = frozenset({"a", "hey", "hay", "hi", "hello", "ok", "okay", "oh"})
"""Words that people say before a name, and how ears spell them."""
FAR = 0.5
"""Share of a name's sounds that may be different where it is known that the name was said."""
_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*\.?")
_SOUNDS = (
    (r"(?<=[aeiouy])t+(?=[aeiouy])", "d"), ("th", "θ"), ("ph", "f"), ("c?k|c(?![eiyh])|q", "k"), ("h", ""),
    ("(?<=[aeiouy])r$", ""), ("ai|ay|ei|ey|ea|ae|a|e", "e"), ("ie|y|i", "i"), ("oa|o", "o"), ("oo|u", "u"),
    (r"(.)\1+", r"\1"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CalledName:
    """The name that was said, and the words behind it."""

    name: str
    rest: str


def called_name(text: str, names: Iterable[str]) -> CalledName | None:
    """The name that the text begins with, if it is one of these. A name may have several words."""
    words = list(_WORD.finditer(text))
    for name in names:
        parts = name.split()
        wanted = _sound("".join(parts))
        if not wanted:  # "…" is nothing that anybody can say
            continue
        for skipped in (0, 1):
            said = words[skipped : skipped + len(parts)]
            greeted = all(word[0].lower().strip(".") in GREETINGS for word in words[:skipped])
            if greeted and len(said) == len(parts) and _sound("".join(word[0] for word in said)) == wanted:
                return CalledName(name, _behind(text, said[-1].end()))
    return None


def without_name(text: str, name: str) -> str:
    """The text behind the name that it is known to begin with, even if this pass of the ears spells it oddly."""
    if not name or not text:
        return text
    if (found := called_name(text, (name,))) is not None:
        return found.rest
    words = list(_WORD.finditer(text))
    first = 1 if len(words) > 1 and words[0][0].lower() in GREETINGS else 0
    last = min(len(words), first + len(name.split())) - 1
    if last < first:
        return ""
    said, wanted = _sound("".join(word[0] for word in words[first : last + 1])), _sound("".join(name.split()))
    return _behind(text, words[last].end()) if _edits(said, wanted) <= FAR * len(wanted) else text


def sounds_like(text: str, phrase: str) -> bool:
    """Whether the text has words somewhere that may have been this phrase."""
    words = [_sound(word[0]) for word in _WORD.finditer(text)]
    wanted = _sound("".join(phrase.split()))
    spans = (words[at : at + count] for at in range(len(words)) for count in range(1, len(phrase.split()) + 2))
    return any(_edits("".join(span), wanted) <= FAR * len(wanted) for span in spans)


def _behind(text: str, end: int) -> str:
    rest = text[end:].lstrip(" ,.;:!?…–-")
    return rest[:1].upper() + rest[1:] if text[:1].isupper() else rest


def _sound(word: str) -> str:
    """How a word sounds, roughly: vowels that are alike are one, and so are d and t between vowels."""
    sound = re.sub(r"^ok(?!ay)", "okay", re.sub(r"[^\w]|_", "", word.lower()))
    for pattern, written in _SOUNDS:
        sound = re.sub(pattern, written, sound)
    return sound


def _edits(one: str, other: str) -> int:
    """How many sounds must be changed, added or removed."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]
