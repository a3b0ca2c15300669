"""Hybrid language models of the Qwen3.5 family and plain decoders over static buffers, with exact capsules. See
README.md.

    chat            messages to text through the checkpoint's template
    checkpoints     which boundaries of a sequence have a checkpoint
    config          config.json as a frozen type
    delta_kernel    one token through the delta-net mixer, on a GPU
    endings         which tokens end a turn or a text
    engine          the public face: load, append, decode, snapshot, restore, rollback
    errors          every error of the package
    eyes            pictures through the tower, step by step
    footprint       how much device memory an engine will need
    gated_delta     the gated delta rule, its definition and in chunks
    gguf/           GGUF files, read as the published checkpoint that they were made from
    graphs          which shapes are captured
    grid            how tokens are cut into calls, and the log of them
    jsoncalls       calls of models that write JSON or Python
    layers          the mixers: gated delta-net, gated attention, plain attention
    likelihood      the likelihood of whole texts, many at once
    model           the network, from embedding to logits
    names           published tensors and what they become
    options         choices made when an engine is loaded
    pictures        which rows of a sequence are pictures, and their rotary positions
    pixels          pictures resized for the tower, and as patches
    published       a checkpoint, whichever way it is stored
    rope_config     the rotary positions that a config.json describes
    rowstore        encoded pictures, stored by content
    sampling        how the next token is chosen
    sequence        the tokens that are folded, by which calls, and how that is done again
    state           every live buffer, declared once
    textcut         stop strings in text that arrives in pieces
    tiny/           our own small model, with its card
    tokenizer       ids and text, whole and streamed
    toolcalls       extracts calls from a text stream
    callguide       which tokens may come next inside a call
    tower           the vision tower, from patches to rows
    vision_config   the tower's part of config.json
    vision_weights  the tower's part of the files
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
