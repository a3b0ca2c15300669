"""Choices a caller makes when an engine is loaded."""

from dataclasses import dataclass
from typing import Any

import torch

from capsules.arguments import shown, whole
from capsules.nn.panels import BITS
from llm_engine.errors import StateError

MADE = {"float8": "fp8", "int4": "int4"}
"""Forms that matrices are given at load time, on a GPU. Matrices published in packed form stay as they are."""
PACKED = ("float8", *BITS)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16} | dict.fromkeys(PACKED, torch.bfloat16)
"""Types of activations and cache, and of matrices that are not packed."""

EYES = ("auto", "off")
"""auto: with the vision tower, if the checkpoint has one."""


@dataclass(frozen=True)
class LLMOptions:
    """`HybridLLM.load` explains them. Raises StateError for meaningless values."""

    dtype: str = "float32"
    max_positions: int = 4096
    checkpoints: int = 8
    checkpoint_every: int = 16
    scope: str = "llm"
    eyes: str = "auto"

    def __post_init__(self) -> None:
        allowed: Any = tuple(DTYPES)  # callers may pass a dtype of any type, above all a torch.dtype
        if self.dtype not in allowed:
            raise StateError(f"dtype is {shown(self.dtype)}; {', '.join(DTYPES)}, by name, are implemented")
        for name in ("max_positions", "checkpoints", "checkpoint_every"):
            whole(StateError, name, getattr(self, name), least=1)
        known: Any = EYES
        if self.eyes not in known:
            raise StateError(f"eyes is {shown(self.eyes)}; {' and '.join(EYES)} are implemented")
        if not isinstance(self.scope, str) or not self.scope or "." in self.scope:
            raise StateError(f"scope is {shown(self.scope)}; a name without a dot is needed, as its buffers carry it")

    @property
    def tensor_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]

    def forms_on(self, device: torch.device) -> tuple[int | None, str | None]:
        """The forms of matrices on that device: `bits` and `made` of `load_weights`. Raises StateError."""
        if device.type != "cpu" and self.dtype == "int8":
            raise StateError(f"dtype is int8 on {device}; it is for a processor: take float8, which are eight bits too")
        if device.type == "cpu" and self.dtype in BITS:
            return BITS[self.dtype], None
        return None, MADE.get(self.dtype)
