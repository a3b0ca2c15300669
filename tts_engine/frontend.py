"""The engine's contract with a front end: speech text to ids, with the ids that speak each word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Word:
    """The ids [first, end) speak the characters [char_start, char_end) of a piece."""

    char_start: int
    char_end: int
    first: int
    end: int


@dataclass(frozen=True)
class Encoded:
    """`words` is empty if the front end does not know which ids speak which word."""

    ids: tuple[int, ...]
    words: tuple[Word, ...] = ()


class Frontend(Protocol):
    """Speech text to ids."""

    @property
    def specials(self) -> Mapping[str, int]: ...

    def text_ids(self, text: str) -> Encoded:
        """Only the control tags of `tts_engine.markup` become special ids; any other structure is removed."""
