"""What an engine will take of a device's memory, from its config alone."""

from math import prod
from pathlib import Path
from typing import cast

import torch

from capsules import ExecContext
from capsules.ledger import Ledger
from llm_engine.config import LLMConfig
from llm_engine.grid import capacity
from llm_engine.names import Kind, parts
from llm_engine.options import DTYPES
from llm_engine.state import EngineState


def needed_bytes(path: str | Path, dtype: str, max_positions: int, packed: bool = False) -> int:
    """Of the model in a directory, as `HybridLLM.load` takes it. Raises ConfigError.

    Packed weights take at most what their files hold, the parts that are not loaded (vision, drafts) included.
    """
    config = LLMConfig.read(path)
    held = sum(file.stat().st_size for file in Path(path).glob("*.safetensors"))
    most = held if packed and config.quantisation and held else None
    return model_bytes(config, DTYPES[dtype], max_positions, most=most)


def model_bytes(
    config: LLMConfig, dtype: torch.dtype, max_positions: int, checkpoints: int = 8, most: int | None = None
) -> int:
    """Weights (`most` of them, if given), all buffers, and the checkpoints of one talk. Captured graphs come on top."""
    weights = sum(prod(p.shape) * (dtype if p.kind is Kind.MATRIX else torch.float32).itemsize for p in parts(config))
    weights = weights if most is None else min(weights, most)
    ledger = Ledger()
    EngineState.declare(cast(ExecContext, ledger), config, dtype, capacity(max_positions))
    return weights + ledger.nbytes + checkpoints * ledger.checkpoint_bytes
