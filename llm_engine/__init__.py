"""Qwen3.5-family hybrid language models over static buffers, with exact capsules."""

from llm_engine.config import LLMConfig
from llm_engine.engine import HybridLLM
from llm_engine.errors import Cancelled, CheckpointError, ConfigError, LLMError, StateError, TextError
from llm_engine.sampling import Sampling

__all__ = [
    "Cancelled", "CheckpointError", "ConfigError", "HybridLLM", "LLMConfig", "LLMError", "Sampling", "StateError",
    "TextError",
]  # fmt: skip
