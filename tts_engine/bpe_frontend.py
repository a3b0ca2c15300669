"""The published checkpoint's front end: its own tokenizer file, with control tags as their special ids."""

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer

from tts_engine.config import SPECIALS
from tts_engine.errors import CheckpointRefused
from tts_engine.frontend import Encoded
from tts_engine.markup import CONTROL, CONTROL_TAGS, strip_structure


class BpeFrontend:
    """The checkpoint's own tokenizer file. Special tokens are resolved by name: their ids differ from stock Qwen3."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise CheckpointRefused(f"{folder} has no tokenizer.json; use the checkpoint's own, its special ids differ")
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for any fault of the file
            raise CheckpointRefused(f"{path} is not a tokenizer file: {error}") from error
        added = {token.content: i for i, token in self._tokenizer.get_added_tokens_decoder().items()}
        missing = [name for name in SPECIALS if name not in added]
        if missing:
            raise CheckpointRefused(f"{path} has no token {', '.join(missing)}; it is not the tokenizer of this model")
        self._tags = {name: i for name, i in added.items() if name in CONTROL_TAGS}
        self._added = frozenset(added.values())
        self.specials: Mapping[str, int] = {name: i for name, i in added.items() if name not in CONTROL_TAGS}

    def text_ids(self, text: str) -> Encoded:
        ids: list[int] = []
        for part in CONTROL.split(strip_structure(text)):
            if part in CONTROL_TAGS:
                ids += [self._tags[part]] if part in self._tags else []
            else:
                plain = self._tokenizer.encode(part, add_special_tokens=False).ids
                ids += [i for i in plain if i not in self._added]
        return Encoded(tuple(ids))
