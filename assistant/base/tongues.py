"""Languages by their codes (BCP-47): read, compared and named, and what a talk cannot do in one, in sentences.

An engine whose languages are not known is taken to know all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

ENGLISH_NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip


def is_code(text: str) -> bool:
    """Whether this is written as the code of a language: `de`, `pt-BR`."""
    return re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", text) is not None


def base_of(code: str) -> str:
    """A code without its region."""
    return code.partition("-")[0].lower()


def name_of(code: str) -> str:
    return ENGLISH_NAMES.get(base_of(code), f"the language {code}")


def is_english(code: str | None) -> bool:
    """Whether our own sentences and ways of reading fit; where no language was chosen, they do."""
    return code is None or base_of(code) == "en"


def knows(codes: Sequence[str], code: str) -> bool:
    """Whether an engine of these languages knows this one, as far as that is known."""
    return not codes or base_of(code) in {base_of(one) for one in codes}


def may_be_english(codes: Sequence[str], chosen: str | None) -> bool:
    """Whether words that ears of these languages wrote are read by English rules. `chosen`: the talk's language."""
    return is_english(chosen) and knows(codes, "en")


@dataclass(frozen=True, slots=True)
class Abilities:
    """The languages of the ears, the model and the voice; empty: not known."""

    hears: tuple[str, ...] = ()
    thinks: tuple[str, ...] = ()
    speaks: tuple[str, ...] = ()

    @property
    def possible(self) -> tuple[str, ...] | None:
        """The languages that all three know; None: any may do."""
        known = [{base_of(code) for code in codes} for codes in (self.hears, self.thinks, self.speaks) if codes]
        return tuple(sorted(set.intersection(*known))) if known else None

    def limits(self, code: str, steered: bool) -> tuple[str, ...]:
        """A sentence for each thing that is not done in this language, or only in English. `steered`: there is a list
        of words that steer a talk in it."""
        name, found = name_of(code), []
        for codes, who in (
            (self.hears, "The ears here hear"), (self.thinks, "The language model here knows"),
            (self.speaks, "The voice here speaks"),
        ):  # fmt: skip
            if not knows(codes, code):
                found.append(f"{who} {' and '.join(map(name_of, codes))} only.")
        if not steered:
            found.append(f"Turns in {name} go by time and loudness alone.")
        if not is_english(code):
            found.append(f"Numbers and dates have no reading rules in {name}; timers and lists are told in English.")
        return tuple(found)
