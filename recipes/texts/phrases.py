"""How people put a request, by intent, read from phrases.txt.

In the file: a line `[intent]`, then phrasings separated by `;`. `~` at the start of one: a command that may be wrapped
in politeness. `[a|b]`: one of these. `{slot}`: filled by the scene. All in spoken form, as in a transcript.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent


def sections(name: str) -> dict[str, list[str]]:
    """The non-empty lines of a text file beside this one, by their `[section]`."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (_HERE / name).read_text("utf-8").splitlines():
        if header := re.fullmatch(r"\[([\w ]+)\]", line):
            lines = found.setdefault(header[1], [])
        elif line.strip():
            lines.append(line.strip())
    return found


def split_phrases(line: str) -> tuple[str, ...]:
    """Phrasings separated by `;`."""
    return tuple(part.strip() for part in line.split(";") if part.strip())


PHRASES: Final[dict[str, tuple[str, ...]]] = {
    intent: split_phrases(";".join(lines)) for intent, lines in sections("phrases.txt").items()
}
"""Phrasings by intent."""
