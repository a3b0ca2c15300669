"""Turns text and voice into the ids and rows fed to the backbone, so that no text can inject structure.

    voice prefix    <|tts|> [ <|ref_text|> transcript ] <|ref_audio|> rows of the reference, delayed
    each piece      <|text|> text <|audio|> rows, delayed
A position holds either a text id or a row of codes. Parts are encoded separately and joined by special tokens, so no
merge crosses a part. `<|audio|>` itself is fed by the first decode step, which predicts row 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tts_engine.config import AudioConfig
from tts_engine.delay import delay
from tts_engine.frontend import Frontend

ROW = -1  # in place of a text id: this position holds a row of codes


@dataclass(frozen=True, eq=False)
class SpeechPrompt:
    """The input of a prefill. ids [T] int64, ROW at rows of codes; rows [T, Q] int64, zeros at text ids."""

    ids: Tensor
    rows: Tensor

    def __len__(self) -> int:
        return self.ids.shape[0]


def voice_prompt(frontend: Frontend, audio: AudioConfig, codes: Tensor | None, transcript: str | None) -> SpeechPrompt:
    """Everything before the first `<|text|>`; it depends on the voice alone.

    codes  [Q, T] int64 of the reference, or None for no reference. A transcript improves cloning considerably.
    """
    s = frontend.specials
    ids = [s["<|tts|>"]]
    if codes is None:
        return text_prompt(ids, audio)
    if transcript and "<|ref_text|>" in s:
        ids += [s["<|ref_text|>"], *frontend.text_ids(transcript).ids]
    ids.append(s["<|ref_audio|>"])
    return join(text_prompt(ids, audio), row_prompt(delay(codes, audio)))


def text_prompt(ids: Sequence[int], audio: AudioConfig) -> SpeechPrompt:
    return SpeechPrompt(torch.tensor(ids, dtype=torch.int64), torch.zeros(len(ids), audio.codebooks, dtype=torch.int64))


def row_prompt(rows: Tensor) -> SpeechPrompt:
    return SpeechPrompt(torch.full((rows.shape[0],), ROW, dtype=torch.int64), rows)


def join(*parts: SpeechPrompt) -> SpeechPrompt:
    return SpeechPrompt(torch.cat([p.ids for p in parts]), torch.cat([p.rows for p in parts]))
