"""Blocks that both engines share: pure functions over tensors that run inside a captured graph and under autograd.

Axes, once for the whole package:

    ...  any leading batch axes (training uses [B]; a captured step uses none)
    T    rows of this call: 1 in a decode step, up to 64 in a prefill chunk, the sequence length in training
    S    rows of a KV buffer that this call reads (the bucket)
    H    query heads      G  key/value heads, H a multiple of G      D  size of a head
    V    vocabulary (or the size of one codebook)                   Q  codebooks

No function here reads a tensor on the host, draws from torch's hidden random state or has a shape that depends on
data. Nothing writes in place except `write_rows`, `attend_cached` and `count_token`, which are for captured steps and
not for training.

    linear(x [..., T, I], w [O, I])                            -> [..., T, O]
    embed(ids [...], w [V, h])                                 -> [..., h]
    wide_linear(x [..., T, I], w [O, I])                       -> [..., T, O] float32
    rms_norm(x [..., N], w [N], eps)                           -> [..., N]      weight as it is
    add_norm(x [..., N], y [..., N], w [N], eps)               -> x + y, its rms_norm
    rope_table(positions [...], dims, theta, stretch)          -> cos, sin [..., dims] float32
    turns(positions [..., dims/2], dims, theta, stretch)       -> the same, a position per frequency
    norm_rotate(x [..., T, H, D], w [D], eps, cos, sin)        -> [..., T, H, D]
    rotate(x [..., T, H, D], cos, sin [..., T, dims])          -> [..., T, H, D]   full rope if dims = D
    attend(q [..., T, H, D], k, v [..., S, G, D], positions [..., T])           -> [..., T, H, D]
    write_rows(cache [S, G, D], rows [T, G, D], positions [T])   in place
    attend_cached(qkv [T, ...], heads, cos, sin, span, cache)  -> [T, H, D]     both of the above
    gated_mlp(x [..., h], gate_up [2I, h], down [h, I])        -> [..., h]
    sample(logits [..., V], params, seed, position)            -> ids [...] int64

    attention   attend, write_rows, and both from one projection, over a static KV buffer
    drawing     draws inside a captured step, and penalties
    fp8         matrices of eight bits with a scale per block
    groups      scales that published files state
    int4        matrices of four bits with a scale per group
    kernels/    Triton and C++ for the functions above
    linear      products with a matrix, packed or plain
    mlp         the gated feed-forward block
    norm        RMS normalisation
    panels      matrices of eight and four bits for a processor
    rope        rotary position embedding
"""

from capsules.nn.attention import Cache, Heads, Span, attend, attend_cached, write_rows
from capsules.nn.drawing import SamplerBuffers, allowed_logits, count_token, penalise, sample
from capsules.nn.linear import PackedWeight, Weight, embed, empty_matrix, linear, wide_linear
from capsules.nn.mlp import gated_mlp
from capsules.nn.norm import add_norm, rms_norm
from capsules.nn.rope import norm_rotate, rope_row, rope_table, rotate, turns

__all__ = [
    "Cache", "Heads", "PackedWeight", "SamplerBuffers", "Span", "Weight", "add_norm", "allowed_logits", "attend",
    "attend_cached", "count_token", "embed", "empty_matrix", "gated_mlp", "linear", "norm_rotate", "penalise",
    "rms_norm", "rope_row", "rope_table", "rotate", "sample", "turns", "wide_linear", "write_rows",
]  # fmt: skip
