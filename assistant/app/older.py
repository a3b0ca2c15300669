"""What the version before kept of parked talks, taken over or let go with a sentence. May go with the next version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from capsules.registry import Registry


def take_over(talks: Path, registry: Registry, report: Callable[[str], None]) -> None:
    """Of a language model's state the words that find it again are named anew; a voice's had no such file."""
    for old in talks.glob("*.tape"):
        old.replace(old.with_suffix(".llm"))
    voices = [one.key for one in registry.listing() if one.name.startswith("talk/") and one.name.endswith("/voice")]
    for key in voices:
        registry.remove(key)
    if voices:
        report(f"{len(voices)} parked voices are of an older form: their talks go on in words, the tone begins anew")
