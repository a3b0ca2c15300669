"""Ids and text: the checkpoint's own tokenizer, and a stream of text that never breaks a character in two."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from llm_engine.endings import ENDS, declared
from llm_engine.errors import TextError
from llm_engine.gguf.container import is_gguf, open_gguf
from llm_engine.gguf.tokens import tokenizer_of

_BROKEN = "�"  # the decoder's output for bytes that are not a whole character
_LONGEST_HOLD = 16  # tokens; a character has at most 4 bytes, so more than this will never become one


class TextTokenizer:
    """A checkpoint's tokenizer. It adds no token before or after the text.

    ends  ids that end a reply, beside those that are known by their text
    """

    def __init__(self, tokenizer: Tokenizer, ends: Iterable[int] = ()) -> None:
        self._tokenizer, self._ends = tokenizer, frozenset(ends)

    @classmethod
    def load(cls, path: str | Path) -> "TextTokenizer":
        """From a checkpoint directory, a tokenizer.json or a GGUF file. Raises TextError, CheckpointError."""
        file = Path(path)
        if is_gguf(file):
            return cls(tokenizer_of(open_gguf(file)), declared(file))
        folder = file if file.is_dir() else file.parent
        file = file / "tokenizer.json" if file.is_dir() else file
        if not file.is_file():
            raise TextError(f"{file}: not there; the checkpoint needs its tokenizer.json to turn text into ids")
        try:
            return cls(Tokenizer.from_file(str(file)), declared(folder))
        except Exception as error:  # the library raises nothing narrower
            raise TextError(f"{file}: not a tokenizer ({error})") from error

    @property
    def size(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Markup such as <|im_end|> inside the text becomes its one token: clean people's input beforehand."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=skip_special)
        return text

    def pieces(self) -> list[bytes]:
        """The bytes of each token, by its id; none for a part of a character that no character begins with."""
        texts = [self.decode([token], skip_special=False) for token in range(self.size)]
        found = [b"" if _BROKEN in text else text.encode() for text in texts]
        for code in (*range(0x80, 0x800), *range(0x800, 0xD000, 0x800), *range(0x10000, 0x110000, 0x1000)):
            whole, ids = chr(code).encode(), self.encode(chr(code))
            if len(ids) == len(whole):  # one token for each byte
                for token, byte in zip(ids, whole, strict=True):
                    found[token] = bytes([byte])
        return found

    def stops(self) -> frozenset[int]:
        """The ids that end a reply: those that the checkpoint declares, and the usual ones that exist."""
        found = map(self._tokenizer.token_to_id, ENDS)
        return self._ends | {int(i) for i in found if i is not None}

    def stream(self, skip_special: bool = True) -> "TextStream":
        return TextStream(self, skip_special)


class TextStream:
    """Ids in, text out, as soon as it is certain. The outputs joined equal `decode` of all ids at once."""

    def __init__(self, tokenizer: TextTokenizer, skip_special: bool = True) -> None:
        self._tokenizer, self._skip = tokenizer, skip_special
        self._ids: list[int] = []  # those that can still change the meaning of a later one
        self._shown = 0  # how many of them are complete in the text given out so far
        self._before = ""  # their text

    def push(self, token: int) -> str:
        """The text that this token completes; empty while a character is incomplete."""
        self._ids.append(token)
        text = self._tokenizer.decode(self._ids, self._skip)
        if text.endswith(_BROKEN) and len(self._ids) - self._shown <= _LONGEST_HOLD:
            return ""
        fresh = text[len(self._before) :]
        # One given-out token stays as context, because a decoder may treat the first of a text differently.
        self._ids = self._ids[-1:]
        self._shown, self._before = 1, self._tokenizer.decode(self._ids, self._skip)
        if self._before.endswith(_BROKEN):
            self._ids, self._shown, self._before = [], 0, ""
        return fresh

    def finish(self) -> str:
        """The remaining text at the end; bytes that never became a character are shown as U+FFFD."""
        text = self._tokenizer.decode(self._ids, self._skip)[len(self._before) :]
        self._ids, self._shown, self._before = [], 0, ""
        return text
