"""Hybrid language models of the Qwen3.5 family and plain decoders over static buffers, with exact capsules. See
README.md.

    chat            messages to text through the checkpoint's template
    checkpoints     chooses the boundaries of a sequence that have a checkpoint
    config          config.json as a frozen type
    delta_kernel    one token through the delta-net mixer, on a GPU
    delta_row       the same over the whole card, gates included
    delta_rows      up to 64 tokens through it in four kernels
    endings         which tokens end a turn or a text
    engine          the public face: load, append, decode, snapshot, restore, rollback
    errors          every error of the package
    experts         the experts of a mixture: which are asked, and their answers
    experts_kernel  the same on a GPU
    eyes            pictures through the tower, step by step
    firstlook       whether a loaded model speaks sense
    footprint       how much device memory an engine will need
    gated_delta     the gated delta rule, its definition and in chunks
    gguf/           GGUF files, read as the published checkpoint that they were made from
    graphs          the captured shapes
    grid            cuts tokens into calls, and logs the calls
    jsoncalls       calls of models that write JSON or Python
    layers          the mixers: gated delta-net, gated attention, plain attention
    likelihood      the likelihood of whole texts, many at once
    model           the network, from embedding to logits
    names           published tensors and what they become
    options         choices made when an engine is loaded
    pictures        the rows of a sequence that are pictures, and their rotary positions
    pixels          pictures resized for the tower, and as patches
    published       a checkpoint, whichever way it is stored
    quantisation    the quantised formats that a config.json describes
    quantised       matrices in FP8 and int4, as folders store them
    repacked        matrices of GPTQ and AWQ
    rope_config     the rotary positions that a config.json describes
    rowstore        encoded pictures, stored by content
    sampling        the choice of the next token
    sequence        the folded tokens, the calls that folded them, and folding again
    state           every live buffer, declared once
    textcut         stop strings in text that arrives in pieces
    tiny/           our own small model, with its card
    tokenizer       ids and text, whole and streamed
    toolcalls       extracts calls from a text stream
    callguide       the tokens that may come next inside a call
    tower           the vision tower, from patches to rows
    vision_config   the tower's part of config.json
    vision_weights  the tower's part of the files
    weights         published checkpoints in and out
    widened         tensors that are widened while they are read
"""

from typing import TYPE_CHECKING

from capsules.exec.lazy import lazy_names

if TYPE_CHECKING:
    from llm_engine.config import LLMConfig
    from llm_engine.engine import HybridLLM
    from llm_engine.errors import Cancelled, CheckpointError, ConfigError, LLMError, PictureError, StateError, TextError
    from llm_engine.sampling import Sampling

__all__ = [
    "Cancelled", "CheckpointError", "ConfigError", "HybridLLM", "LLMConfig", "LLMError", "PictureError", "Sampling",
    "StateError", "TextError",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__,
    {
        "config": "LLMConfig",
        "engine": "HybridLLM",
        "errors": "Cancelled CheckpointError ConfigError LLMError PictureError StateError TextError",
        "sampling": "Sampling",
    },
)
