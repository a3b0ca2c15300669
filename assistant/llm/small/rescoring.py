"""How likely people are to ask something, as the small model finds it: for ears that were unsure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assistant.llm.small.reading import for_small_model
from llm_engine.likelihood import Likelihood

BEGIN, END = "<|im_start|>user\n", "<|im_end|>"
"""The frame around a request. A system turn before it changes no choice, and costs four times as long."""


class RequestChances:
    """One for all talks. See `Rescorer`."""

    def __init__(self, folder: Path) -> None:
        self._model = Likelihood(folder)

    def chances(self, texts: Sequence[str]) -> list[list[float]]:
        asked = [f" {for_small_model(text)}{END}" for text in texts]
        once = list(dict.fromkeys(asked))
        found = dict(zip(once, self._model(BEGIN, once), strict=True))
        return [found[text] for text in asked]
