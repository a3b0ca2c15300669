"""The gated delta rule: a matrix memory per head that forgets, corrects itself and is read by the query.

    S ← exp(g) S;   S ← S + k ⊗ β (v - Sᵀk);   o = Sᵀq                     (Yang, Kautz & Hatamizadeh 2024)

Three forms of one function: `recurrence` is the definition, token by token; `chunked` does up to 64 tokens with a
handful of matrix products; `step` is one token in place, for decoding. All arithmetic is float32.

Axes: ... batch, T tokens, Hk key heads, Hv value heads (a multiple of Hk; neighbours share a key head),
K and N the sizes of a key and a value head.

    q, k   [..., T, Hk, K]   already through `unit` (and q scaled)
    v      [..., T, Hv, N]
    g      [..., T, Hv]      log of the decay, ≤ 0
    beta   [..., T, Hv]      write strength in [0, 1]
    state  [..., Hv, K, N]

A token with beta = 0 and g = 0 leaves the state unchanged: short chunks are padded that way.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 64


def unit(x: Tensor) -> Tensor:
    """Scale the last axis to length 1; 1e-6 is added to the sum of squares, not to the mean."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def recurrence(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The definition, slow and obvious. Returns out [..., T, Hv, N] and the new state."""
    share = v.shape[-2] // k.shape[-2]
    q, k = q.repeat_interleave(share, -2), k.repeat_interleave(share, -2)
    out = []
    for t in range(q.shape[-3]):
        key, query = k[..., t, :, :, None], q[..., t, :, :, None]  # [..., Hv, K, 1]
        state = state * g[..., t, :, None, None].exp()
        predicted = (state * key).sum(-2)
        correction = (v[..., t, :, :] - predicted) * beta[..., t, :, None]
        state = state + key * correction[..., None, :]
        out.append((state * query).sum(-2))
    return torch.stack(out, -3), state


def chunked(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The same for any T, 64 tokens at a time. Returns out [..., T, Hv, N] and the new state, a new tensor.

    Within a chunk the corrections of all tokens come from one unit-triangular system (Yang et al. 2024, section 3.3).
    """
    rows = q.shape[-3]
    size = min(CHUNK, rows)
    pad = -rows % size
    if pad:
        q, k, v = (F.pad(x, (0, 0, 0, 0, 0, pad)) for x in (q, k, v))
        g, beta = (F.pad(x, (0, 0, 0, pad)) for x in (g, beta))
    share = v.shape[-2] // k.shape[-2]

    def heads_first(x: Tensor) -> Tensor:  # [..., T, H, D] -> [..., chunk, H, size, D]
        return x.unflatten(-3, (-1, size)).transpose(-2, -3)

    q, k = (_spread(heads_first(x), share, -3) for x in (q, k))
    v = heads_first(v)
    g, beta = (x.unflatten(-2, (-1, size)).transpose(-1, -2) for x in (g, beta))  # [..., chunk, Hv, size]

    total = g.cumsum(-1)  # G_i
    lower = torch.ones(size, size, dtype=torch.bool, device=q.device).tril()
    # Masked before the exponential, which would overflow above the diagonal.
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(~lower, float("-inf")).exp()
    weighted = k * beta[..., None]
    system = (weighted @ k.transpose(-1, -2)) * decay  # only the part below the diagonal is read
    known = torch.cat((v * beta[..., None], weighted * total.exp()[..., None]), -1)
    solved = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)
    fresh, reach = solved.split((v.shape[-1], k.shape[-1]), -1)  # U, W
    scores = (q @ k.transpose(-1, -2)) * decay
    reading = q * total.exp()[..., None]
    last = total[..., -1:]
    writing = (k * (last - total).exp()[..., None]).transpose(-1, -2)

    out = []
    # Unbound rather than indexed: the gradient of an index is a whole tensor of zeros for every chunk.
    parts = (part.unbind(-4) for part in (fresh, reach, reading, scores, last[..., None].exp(), writing))
    for values, keys, queries, weights, kept, written in zip(*parts, strict=True):
        corrections = values - keys @ state
        out.append(queries @ state + weights @ corrections)
        state = state * kept + written @ corrections
    joined = torch.stack(out, -4).transpose(-2, -3).flatten(-4, -3)  # [..., T + pad, Hv, N]
    return joined.narrow(-3, 0, rows), state


def step(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """One token, with `state` [Hv, K, N] updated in place. q, k [Hk, K], v [Hv, N], g, beta [Hv]; returns [Hv, N].

    The old state is read once, for key and query together: Sᵀq after the update is exp(g) Sᵀq + (k·q) correction.
    """
    share = v.shape[-2] // k.shape[-2]
    pair = _spread(torch.stack((k, q), -2), share, 0)  # [Hv, 2, K]
    decay = g.exp()[:, None]
    predicted, read = torch.bmm(pair, state).unbind(1)  # [Hv, N]
    correction = (v - decay * predicted) * beta[:, None]
    agreement = _spread((k * q).sum(-1), share, 0)[:, None]
    state.mul_(decay[:, :, None]).addcmul_(pair[:, 0, :, None], correction[:, None, :])
    return decay * read + agreement * correction


def _spread(x: Tensor, share: int, axis: int) -> Tensor:
    """Every key head once for each value head that shares it."""
    return x if share == 1 else x.repeat_interleave(share, axis)
