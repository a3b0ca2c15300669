"""Qwen3.5-family hybrid language models over static buffers, with exact capsules. See README.md.

    chat            messages to text through the checkpoint's template
    config          config.json as a frozen type
    delta_kernel    one token through the delta-net mixer, on a GPU
    delta_row       the same over the whole card, gates included
    delta_rows      up to 64 tokens through it in four kernels
    engine          the face: load, append, decode, snapshot, restore, rollback
    errors          every error of the package
    eyes            pictures through the tower, step by step
    footprint       what an engine will take of a device
    gated_delta     the gated delta rule, its definition and in chunks
    graphs          which shapes are captured
    grid            how tokens are cut into calls, and the log of them
    layers          the blocks that only this family has
    likelihood      how likely whole texts are, many at once
    model           the network, from embedding to logits
    names           published tensors and what they become
    options         what is decided when an engine is loaded
    pictures        which rows of a sequence are pictures, and their rotary positions
    pixels          pictures at the size that the tower sees, and as patches
    rowstore        encoded pictures, kept by content
    sampling        how the next token is chosen
    state           every live buffer, declared once
    textcut         stop strings in text that arrives in pieces
    tiny/           our own small model, with its card
    tokenizer       ids and text, whole and streamed
    toolcalls       calls out of a text stream
    callguide       which tokens may come next inside a call
    tower           the vision tower, from patches to rows
    vision_config   a tower's part of config.json
    vision_weights  and of the files
    weights         published checkpoints in and out
    wordguide       which tokens may come next in a small model's reply
"""

from llm_engine.config import LLMConfig
from llm_engine.engine import HybridLLM
from llm_engine.errors import Cancelled, CheckpointError, ConfigError, LLMError, PictureError, StateError, TextError
from llm_engine.sampling import Sampling

__all__ = [
    "Cancelled", "CheckpointError", "ConfigError", "HybridLLM", "LLMConfig", "LLMError", "PictureError", "Sampling",
    "StateError", "TextError",
]  # fmt: skip
