"""Qwen3.5-family hybrid language models over static buffers, with exact capsules. See README.md.

    chat          messages to text through the checkpoint's template
    config        config.json as a frozen type
    delta_kernel  one token through the delta-net mixer, on a GPU
    engine        the face: load, append, decode, snapshot, restore, rollback
    errors        every error of the package
    footprint     what an engine will take of a device
    gated_delta   the gated delta rule, its definition and in chunks
    graphs        which shapes are captured
    grid          how tokens are cut into calls, and the log of them
    layers        the blocks that only this family has
    model         the network, from embedding to logits
    names         published tensors and what they become
    options       what is decided when an engine is loaded
    pictures      which rows of a sequence are pictures, and their rotary positions
    rowstore      encoded pictures, kept by content
    sampling      how the next token is chosen
    state         every live buffer, declared once
    textcut       stop strings in text that arrives in pieces
    tiny/         our own small model, with its card
    tokenizer     ids and text, whole and streamed
    toolcalls     calls out of a text stream
    weights       published checkpoints in and out
"""

from llm_engine.config import LLMConfig
from llm_engine.engine import HybridLLM
from llm_engine.errors import Cancelled, CheckpointError, ConfigError, LLMError, StateError, TextError
from llm_engine.sampling import Sampling

__all__ = [
    "Cancelled", "CheckpointError", "ConfigError", "HybridLLM", "LLMConfig", "LLMError", "Sampling", "StateError",
    "TextError",
]  # fmt: skip
