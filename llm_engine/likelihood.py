"""The likelihood of whole texts, many in one pass and without state, for callers that choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file

from llm_engine.config import LLMConfig
from llm_engine.model import assemble, forward_whole
from llm_engine.tokenizer import TextTokenizer


class Likelihood:
    """A model of published, unquantised weights in float32. One for all threads: a pass changes nothing."""

    def __init__(self, folder: Path) -> None:
        self._config = LLMConfig.read(folder)
        held = load_file(folder / "model.safetensors")
        self._weights = assemble(self._config, {name: tensor.float() for name, tensor in held.items()})
        self._tokenizer = TextTokenizer.load(folder)

    def __call__(self, begin: str, texts: Sequence[str]) -> list[list[float]]:
        """For each text, the natural logarithm of the probability of each of its tokens behind `begin`."""
        first = self._tokenizer.encode(begin)
        ids = [[*first, *self._tokenizer.encode(text)] for text in texts]
        longest = max(map(len, ids), default=0)
        padded = torch.tensor([[*one, *[0] * (longest - len(one))] for one in ids])  # nothing looks ahead
        with torch.inference_mode():
            chances = forward_whole(self._weights, self._config, padded[:, :-1]).log_softmax(-1)
            taken = chances.gather(-1, padded[:, 1:, None])[..., 0].tolist()
        return [row[len(first) - 1 : len(one) - 1] for row, one in zip(taken, ids, strict=True)]
