"""Whether what was said begins with a name, and the words without it. Pure.

Ears spell a name as they like ("Aida", "Eda" for Ada), so names are compared by how they sound. A name calls as the
first word or behind one word, a greeting in whatever language; later in a sentence it calls nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

FAR = 0.5
"""Share of a name's sounds that may be different where it is known that the name was said."""
_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*\.?")
_SOUNDS = (
    (r"(?<=[aeiouy])t+(?=[aeiouy])", "d"), ("th", "θ"), ("ph", "f"), ("c?k|c(?![eiyh])|q", "k"), ("h", ""),
    ("(?<=[aeiouy])r$", ""), ("ai|ay|ei|ey|ea|ae|a|e", "e"), ("ie|y|i", "i"), ("oa|o", "o"), ("oo|u", "u"),
    (r"(.)\1+", r"\1"),
)  # fmt: skip


def called_name(text: str, names: Iterable[str]) -> tuple[str, str] | None:
    """The name that the text begins with, if it is one of these, and the words behind it. A name may have several."""
    words = list(_WORD.finditer(text))
    for name in names:
        parts = name.split()
        wanted = _sound("".join(parts))
        if not wanted:  # "…" is nothing that anybody can say
            continue
        for skipped in (0, 1):
            said = words[skipped : skipped + len(parts)]
            if len(said) == len(parts) and _sound("".join(word[0] for word in said)) == wanted:
                return name, _behind(text, said[-1].end())
    return None


def without_name(text: str, name: str) -> str:
    """The text behind the name that it is known to begin with, even if this pass of the ears spells it oddly."""
    if not name or not text:
        return text
    if (found := called_name(text, (name,))) is not None:
        return found[1]
    words, count, wanted = list(_WORD.finditer(text)), len(name.split()), _sound("".join(name.split()))
    spans = [words[first : first + count] for first in (0, 1) if words[first : first + count]]
    far = [_edits(_sound("".join(word[0] for word in span)), wanted) for span in spans]
    if not far or min(far) > FAR * len(wanted):
        return text
    return _behind(text, spans[far.index(min(far))][-1].end())


def sounds_like(text: str, phrase: str) -> bool:
    """Whether the text has words somewhere that may have been this phrase."""
    words = [_sound(word[0]) for word in _WORD.finditer(text)]
    wanted = _sound("".join(phrase.split()))
    spans = (words[at : at + count] for at in range(len(words)) for count in range(1, len(phrase.split()) + 2))
    return any(_edits("".join(span), wanted) <= FAR * len(wanted) for span in spans)


def rest_of(text: str) -> str:
    """The words behind a name, without the mark there."""
    return text.lstrip(" ,.;:!?…–-")


def _behind(text: str, end: int) -> str:
    rest = rest_of(text[end:])
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
