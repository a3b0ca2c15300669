"""What an engine will take of a device's memory, from its config alone."""

from math import prod
from pathlib import Path
from typing import cast

import torch

from capsules import ExecContext
from capsules.ledger import Ledger
from llm_engine.config import LLMConfig
from llm_engine.engine import DTYPES
from llm_engine.names import Kind, parts
from llm_engine.schedule import capacity
from llm_engine.state import EngineState


def needed_bytes(path: str | Path, dtype: str, max_positions: int) -> int:
    """Of the model in a directory, with the defaults of `HybridLLM.load`. Raises ConfigError."""
    return model_bytes(LLMConfig.read(path), DTYPES[dtype], max_positions)


def model_bytes(config: LLMConfig, dtype: torch.dtype, max_positions: int, checkpoints: int = 8) -> int:
    """Weights, all buffers, and the checkpoints of one talk. What captured graphs take comes on top."""
    weights = sum(prod(p.shape) * (dtype if p.kind is Kind.MATRIX else torch.float32).itemsize for p in parts(config))
    ledger = Ledger()
    EngineState.declare(cast(ExecContext, ledger), config, dtype, capacity(max_positions))
    return weights + ledger.nbytes + checkpoints * ledger.checkpoint_bytes
