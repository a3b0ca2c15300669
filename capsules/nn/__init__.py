"""Blocks that both engines share: pure functions over tensors that run inside a captured graph and under autograd.

Axes, once for the whole package:

    ...  any leading batch axes (training uses [B]; a captured step uses none)
    T    rows of this call: 1 in a decode step, up to 64 in a prefill chunk, the sequence length in training
    S    rows of a KV buffer that this call reads (the bucket)
    H    query heads      G  key/value heads, H a multiple of G      D  size of a head
    V    vocabulary (or the size of one codebook)                   Q  codebooks

No function here reads a tensor on the host, draws from torch's hidden random state or has a shape that depends on
data. Nothing writes in place except `write_rows` and `count_token`, which are for captured steps and not for training.

    linear(x [..., T, I], w [O, I])                            -> [..., T, O]
    embed(ids [...], w [V, h])                                 -> [..., h]
    rms_norm(x [..., N], w [N], eps)                           -> [..., N]      weight as it is
    rope_table(positions [...], dims, theta, stretch)          -> cos, sin [..., dims] float32
    turns(positions [..., dims/2], dims, theta, stretch)       -> the same, a position per frequency
    norm_rotate(x [..., T, H, D], w [D], eps, cos, sin)        -> [..., T, H, D]
    rotate(x [..., T, H, D], cos, sin [..., T, dims])          -> [..., T, H, D]   full rope if dims = D
    attend(q [..., T, H, D], k, v [..., S, G, D], positions [..., T])           -> [..., T, H, D]
    write_rows(cache [S, G, D], rows [T, G, D], positions [T])   in place
    gated_mlp(x [..., h], gate_up [2I, h], down [h, I])        -> [..., h]
    sample(logits [..., V], params, seed, position)            -> ids [...] int64

    attention   attend and write_rows, over a static KV buffer
    fp8         matrices of eight bits with a scale per block
    int4        matrices of four bits with a scale per group
    kernels/    Triton and C++ for the functions above
    linear      products with a matrix, packed or plain
    mlp         the gated feed-forward block
    norm        RMS normalisation
    panels      matrices of eight and four bits for a processor
    rope        rotary position embedding
    sampling    draws inside a captured step, and penalties
"""

from capsules.nn.attention import attend, write_rows
from capsules.nn.linear import PackedWeight, Weight, embed, empty_matrix, linear
from capsules.nn.mlp import gated_mlp
from capsules.nn.norm import rms_norm
from capsules.nn.rope import norm_rotate, rope_table, rotate, turns
from capsules.nn.sampling import SamplerBuffers, count_token, penalise, sample

__all__ = [
    "PackedWeight", "SamplerBuffers", "Weight", "attend", "count_token", "embed", "empty_matrix", "gated_mlp", "linear",
    "norm_rotate", "penalise", "rms_norm", "rope_table", "rotate", "sample", "turns",
    "write_rows",
]  # fmt: skip
