"""Causal attention with grouped heads over a static KV buffer whose valid length only the device knows."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.exec.switches import Switch
from capsules.nn import kernels
from capsules.nn.rope import norm_rotate, rotate


@dataclass(frozen=True, eq=False)
class Span:
    """The rows of one call, which follow each other."""

    first: Tensor  # [1] int64, position of the first row; read on the device
    rows: int

    @cached_property
    def positions(self) -> Tensor:
        """[T] int64."""
        return self.first if self.rows == 1 else self.first + torch.arange(self.rows, device=self.first.device)


@dataclass(frozen=True, eq=False)
class Heads:
    """How one projection holds all heads, and what they go through: [..., H D], or [..., H 2D] where a gate follows
    each query, then keys [..., G D] and values [..., G D]."""

    heads: int
    groups: int
    size: int
    q_norm: Tensor | None  # [D]; None where heads are not normalised
    k_norm: Tensor | None  # [D]
    eps: float
    gated: bool = False

    def parts(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """[..., T, (H + 2G) D] to q [..., T, H, D], k and v [..., T, G, D], and the gate [..., T, H, D] if there is."""
        queries = (2 if self.gated else 1) * self.heads * self.size
        q, k, v = qkv.split((queries, self.groups * self.size, self.groups * self.size), -1)
        q = q.unflatten(-1, (self.heads, -1))
        k, v = (x.unflatten(-1, (self.groups, self.size)) for x in (k, v))
        return (*(q[..., : self.size], k, v), q[..., self.size :]) if self.gated else (q, k, v, None)

    @property
    def joinable(self) -> bool:
        """Whether the kernels of a whole attention take these heads."""
        return self.size >= 16 and self.size.bit_count() == 1

    def turned(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys after norm, if there is one, and rotary."""
        if self.q_norm is None or self.k_norm is None:
            return rotate(q, cos, sin), rotate(k, cos, sin)
        return norm_rotate(q, self.q_norm, self.eps, cos, sin), norm_rotate(k, self.k_norm, self.eps, cos, sin)


@dataclass(frozen=True, eq=False)
class Cache:
    """Keys and values [S, G, D] of a layer; at most `bucket` rows of them are read."""

    keys: Tensor
    values: Tensor
    bucket: int


def attend_cached(qkv: Tensor, heads: Heads, cos: Tensor, sin: Tensor, span: Span, cache: Cache) -> Tensor:
    """Attention of new rows over a cache that takes their keys and values first, in place.

    qkv      [T, ...] as `Heads` says, T rows of `span`
    cos, sin [T, R]
    returns  [T, H, D], through the sigmoid of the gate if there is one
    """
    keys, values, first = cache.keys, cache.values, span.first
    q, k, v, gate = heads.parts(qkv)
    if heads.joinable and kernels.switched_on(qkv, Switch.JOINED if span.rows == 1 else Switch.CHUNK):
        from capsules.nn.kernels.attention import decode_attention
        from capsules.nn.kernels.chunk_attention import chunk_attention
        from capsules.nn.kernels.heads import heads as to_heads

        norms = (heads.q_norm, heads.k_norm, heads.eps, cos, sin)
        queries = to_heads(qkv.contiguous(), heads.heads, *norms, first, keys, values)
        keys, values, scale = keys[: cache.bucket], values[: cache.bucket], heads.size**-0.5
        if span.rows > 1:
            return chunk_attention(queries, keys, values, first, scale, gate)
        return decode_attention(queries[0], keys, values, first, scale, None if gate is None else gate[0])[None]
    q, k = heads.turned(q, k, cos, sin)
    write_rows(keys, k, span.positions)
    write_rows(values, v, span.positions)
    out = attend(q, keys[: cache.bucket], values[: cache.bucket], span.positions)
    return out if gate is None else out * gate.sigmoid()


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
