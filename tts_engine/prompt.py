"""Text and voice to the ids and rows that the backbone is fed, in such a way that no text can inject structure.

    voice prefix    <|tts|> [ <|ref_text|> transcript ] <|ref_audio|> rows of the reference, delayed
    each piece      <|text|> text <|audio|> rows, delayed
A position holds either a text id or a row of codes. Parts are encoded apart and joined by special tokens, so no merge
crosses a part. `<|audio|>` itself is fed by the first decode step, which predicts row 0.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tts_engine.config import SPECIALS, AudioConfig, TTSConfig
from tts_engine.delay import delay
from tts_engine.errors import CheckpointRefused

ROW = -1  # in place of a text id: this position holds a row of codes

_EMOTIONS = (
    "elation", "amusement", "enthusiasm", "determination", "pride", "contentment", "affection", "relief",
    "contemplation", "confusion", "surprise", "awe", "longing", "arousal", "anger", "fear", "disgust", "bitterness",
    "sadness", "shame", "helplessness",
)  # fmt: skip
_SOUNDS = ("cough", "laughter", "crying", "screaming", "burping", "humming", "sigh", "sniff", "sneeze")
_PROSODY = (
    "speed_very_slow", "speed_slow", "speed_fast", "speed_very_fast", "pitch_low", "pitch_high", "pause",
    "long_pause", "expressive_high", "expressive_low",
)  # fmt: skip
CONTROL_TAGS = frozenset(
    f"<|{kind}:{name}|>"
    for kind, names in (
        ("emotion", _EMOTIONS),
        ("style", ("singing", "shouting", "whispering")),
        ("sfx", _SOUNDS),
        ("prosody", _PROSODY),
    )
    for name in names
)
_CONTROL = re.compile("(" + "|".join(re.escape(tag) for tag in sorted(CONTROL_TAGS)) + ")")
_STRUCTURE = re.compile(r"<\|[^<>|]*\|>")


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

    def encode(self, text: str) -> Encoded:
        """Only the control tags of CONTROL_TAGS become special ids; any other structure is dropped."""


@dataclass(frozen=True, eq=False)
class Prompt:
    """What a prefill feeds. ids [T] int64, ROW where a row stands; rows [T, Q] int64, zeros where a text id stands."""

    ids: Tensor
    rows: Tensor

    def __len__(self) -> int:
        return self.ids.shape[0]


class BpeFrontend:
    """The checkpoint's own tokenizer file. Special tokens are resolved by name: their ids differ from stock Qwen3."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise CheckpointRefused(f"{folder} has no tokenizer.json; use the checkpoint's own, its special ids differ")
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for every fault of the file
            raise CheckpointRefused(f"{path} is not a tokenizer file: {error}") from error
        added = {token.content: i for i, token in self._tokenizer.get_added_tokens_decoder().items()}
        missing = [name for name in SPECIALS if name not in added]
        if missing:
            raise CheckpointRefused(f"{path} has no token {', '.join(missing)}; it is not the tokenizer of this model")
        self._tags = {name: i for name, i in added.items() if name in CONTROL_TAGS}
        self._added = frozenset(added.values())
        self.specials: Mapping[str, int] = {name: i for name, i in added.items() if name not in CONTROL_TAGS}

    def encode(self, text: str) -> Encoded:
        ids: list[int] = []
        for part in _CONTROL.split(strip_structure(text)):
            if part in CONTROL_TAGS:
                ids += [self._tags[part]] if part in self._tags else []
            else:
                plain = self._tokenizer.encode(part, add_special_tokens=False).ids
                ids += [i for i in plain if i not in self._added]
        return Encoded(tuple(ids))


def strip_structure(text: str) -> str:
    """Drop everything that looks like a special token and is no control tag, until nothing is left to drop.

    Repeated, because dropping the inner token of `<|te<|x|>xt|>` would otherwise make one.
    """
    while True:
        kept = _STRUCTURE.sub(lambda m: m.group() if m.group() in CONTROL_TAGS else "", text)
        if kept == text:
            return text
        text = kept


def voice_prompt(frontend: Frontend, audio: AudioConfig, codes: Tensor | None, transcript: str | None) -> Prompt:
    """Everything before the first `<|text|>`; it depends on the voice alone.

    codes  [Q, T] int64 of the reference, or None for no reference. A transcript helps cloning a good deal.
    """
    s = frontend.specials
    ids = [s["<|tts|>"]]
    if codes is None:
        return text_prompt(ids, audio)
    if transcript and "<|ref_text|>" in s:
        ids += [s["<|ref_text|>"], *frontend.encode(transcript).ids]
    ids.append(s["<|ref_audio|>"])
    return join(text_prompt(ids, audio), row_prompt(delay(codes, audio)))


def piece_prompt(frontend: Frontend, audio: AudioConfig, ids: Sequence[int]) -> Prompt:
    """`<|text|>` and the text of one piece, without the `<|audio|>` that the first decode step feeds."""
    return text_prompt([frontend.specials["<|text|>"], *ids], audio)


def text_prompt(ids: Sequence[int], audio: AudioConfig) -> Prompt:
    return Prompt(torch.tensor(ids, dtype=torch.int64), torch.zeros(len(ids), audio.codebooks, dtype=torch.int64))


def row_prompt(rows: Tensor) -> Prompt:
    return Prompt(torch.full((rows.shape[0],), ROW, dtype=torch.int64), rows)


def join(*parts: Prompt) -> Prompt:
    return Prompt(torch.cat([p.ids for p in parts]), torch.cat([p.rows for p in parts]))


def load_frontend(folder: Path, config: TTSConfig) -> Frontend:
    """The front end that the configuration names."""
    if config.frontend == "phones":
        from tts_engine.phone_frontend import PhoneFrontend

        return PhoneFrontend(folder, config.special_tokens)
    return BpeFrontend(folder)
