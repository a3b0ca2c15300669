"""The shipped voice's front end: phones from `phones.py` behind the same contract as a tokenizer."""

from collections.abc import Mapping
from pathlib import Path

from tts_engine.phones import PhoneEncoder
from tts_engine.prompt import CONTROL_TAGS, Encoded, Word, strip_structure


class PhoneFrontend:
    """Control tags have no phones, so they are dropped; words know which phones speak them."""

    def __init__(self, folder: Path, specials: Mapping[str, int]) -> None:
        self.specials = specials
        self._phones = PhoneEncoder.load(folder)

    def encode(self, text: str) -> Encoded:
        """Raises nothing: text without a single phone gives no ids."""
        text = strip_structure(text)
        for tag in CONTROL_TAGS:
            text = text.replace(tag, " " * len(tag))
        made = self._phones.encode(text)
        return Encoded(tuple(made.ids), tuple(Word(*word) for word in made.words))
