"""transformers, eager, with its own cache and one forward call per token (less overhead than its `generate`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch


class TransformersPeer:
    """bfloat16 or float32 as the checkpoint is stored."""

    name = "transformers"

    def __init__(self, path: Path, dtype: torch.dtype, device: str = "cpu") -> None:
        from transformers import AutoModelForCausalLM

        self._model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=dtype).to(device).eval()
        self._cache: Any = None

    def reset(self) -> None:
        self._cache = None

    @torch.inference_mode()
    def append(self, ids: Sequence[int]) -> int:
        tokens = torch.tensor([list(ids)], device=self._model.device)
        out = self._model(tokens, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        self._cache = out.past_key_values
        return int(out.logits[0, -1].argmax())

    def step(self, token: int) -> int:
        return self.append([token])
