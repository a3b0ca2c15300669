"""Causal attention with grouped heads over a static KV buffer whose valid length only the device knows."""

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.nn import kernels


def attend(q: Tensor, k: Tensor, v: Tensor, positions: Tensor, *, scale: float | None = None) -> Tensor:
    """Row i sees the keys 0 … positions[i] and no others.

    q          [..., T, H, D]
    k, v       [..., S, G, D]: the first S rows of the cache (S bounds what is read), or the sequence itself in training
    positions  [..., T] int64, absolute position of each query row; read on the device
    scale      of the scores; default D^-½
    returns    [..., T, H, D] in q's type. Query head j reads key head j // (H / G). Softmax in float32.
    Rows of k and v beyond a query's position may hold anything finite. T = 1 is the decode form.
    """
    *batch, rows, heads, size = q.shape
    if kernels.fits(q) and not batch and rows == 1 and size >= 16 and size.bit_count() == 1:
        from capsules.nn.kernels.attention import decode_attention

        return decode_attention(q[0].contiguous(), k, v, positions, size**-0.5 if scale is None else scale)[None]
    host = kernels.host(q)
    if host is not None and not batch and k.stride(-1) == v.stride(-1) == 1:
        kernel = host.decode_attention if rows == 1 else host.chunk_attention
        return kernel(q.contiguous(), k, v, positions, size**-0.5 if scale is None else scale)
    groups, seen_rows = k.shape[-2], k.shape[-3]
    share = heads // groups
    # Rows and the heads that share a key are one axis, so that no key is repeated.
    query = q.float().unflatten(-2, (groups, share)).transpose(-4, -3).reshape(-1, groups, rows * share, size)
    keys, values = (x.float().movedim(-2, -3).reshape(-1, groups, seen_rows, size) for x in (k, v))
    seen = torch.arange(seen_rows, device=q.device) <= positions[..., None]  # [..., T, S]
    mask = seen[..., None, :].expand(*seen.shape[:-1], share, seen_rows).reshape(-1, 1, rows * share, seen_rows)
    out = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scale)  # [B, G, T·share, D]
    out = out.unflatten(-2, (rows, share)).transpose(1, 2)  # [B, T, G, share, D]
    return out.reshape(*batch, rows, heads, size).to(q.dtype)


def write_rows(cache: Tensor, rows: Tensor, positions: Tensor) -> None:
    """Put new keys or values where they belong, in place.

    cache      [S, G, D]
    rows       [T, G, D]
    positions  [T] int64, all below S; read on the device
    """
    cache.index_copy_(0, positions, rows.to(cache.dtype))
