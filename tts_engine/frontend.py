"""What the engine asks of a front end: speech text to ids, and which ids speak which word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Word:
    """Characters [char_start, char_end) of a piece are spoken by its ids [first, end)."""

    char_start: int
    char_end: int
    first: int
    end: int


@dataclass(frozen=True)
class Encoded:
    """`words` is empty where the front end cannot tell which ids speak which word."""

    ids: tuple[int, ...]
    words: tuple[Word, ...] = ()


class Frontend(Protocol):
    """Speech text to ids."""

    @property
    def specials(self) -> Mapping[str, int]: ...

    def text_ids(self, text: str) -> Encoded:
        """Only the control tags of `tts_engine.markup` become special ids; any other structure is dropped."""
