"""The shipped voice's front end: phones from `phones.py` behind the same contract as a tokenizer."""

from collections.abc import Mapping
from pathlib import Path

from tts_engine.frontend import Encoded, Word
from tts_engine.markup import CONTROL, strip_structure
from tts_engine.phones import PhoneEncoder


class PhoneFrontend:
    """Control tags have no phones, so they are removed; words know which phones speak them."""

    def __init__(self, folder: Path, specials: Mapping[str, int]) -> None:
        self.specials = specials
        self._phones = PhoneEncoder.load(folder)

    def text_ids(self, text: str) -> Encoded:
        """Never raises: text without a single phone gives no ids."""
        made = self._phones.phones_of(CONTROL.sub(lambda tag: " " * len(tag.group()), strip_structure(text)))
        return Encoded(tuple(made.ids), tuple(Word(*word) for word in made.words))
