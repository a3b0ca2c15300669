"""The backbone: a Qwen3 decoder over text ids and rows of codes, as pure functions over a bundle of weights.

The same functions serve training (`forward_train`, batched, with autograd) and the captured step (`trunk` with an
`attend` that writes a static cache). Input of a row is the sum of its Q code embeddings; the same matrix is the head.
With a text cursor the input that predicts row r also gets the embeddings of the phones around the cursor of row r and
of the rows spent on that phone; a second head on the same hidden state predicts the advance.

B batch, T positions, h hidden, H heads, G key/value heads, D head size, Q codebooks, V codes per codebook, N phones.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tts_engine.config import BackboneConfig, CursorConfig, TTSConfig

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]  # (layer, q [B,H,T,D], k [B,G,T,D], v) -> [B,T,H·D]


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """One decoder layer; linear weights are [out, in], q, k, v and gate, up stacked along out."""

    input_norm: Tensor  # [h]
    qkv: Tensor  # [(H + 2G)·D, h]
    q_norm: Tensor  # [D]
    k_norm: Tensor  # [D]
    o: Tensor  # [h, H·D]
    post_norm: Tensor  # [h]
    gate_up: Tensor  # [2·intermediate, h]
    down: Tensor  # [h, intermediate]


@dataclass(frozen=True, eq=False)
class CursorWeights:
    phones: Tensor  # [offsets·text_vocab, h]: row j·text_vocab + id for offset j
    rows: Tensor  # [max_rows, h]
    advance: Tensor  # [max_advance + 1, h]


@dataclass(frozen=True, eq=False)
class BackboneWeights:
    text: Tensor  # [text_vocab, h]
    audio: Tensor  # [Q·V, h]: row q·V + code; embedding and head
    layers: tuple[LayerWeights, ...]
    norm: Tensor  # [h]
    cursor: CursorWeights | None = None


@dataclass(frozen=True, eq=False)
class CursorTrack:
    """Where the cursor stands at each position.

    text    [B, N + 2] int64: `<|text|>`, the phones, `<|audio|>`; pad a batch on the right with `<|audio|>`
    index   [B, T] int64: 0..N, the phone of the row that this position predicts; N once all are spoken
    spent   [B, T] int64: rows already spent on that phone (any size; the embedding stops at max_rows - 1)
    active  [B, T] bool: where a row of the piece is predicted; elsewhere the cursor adds nothing
    """

    text: Tensor
    index: Tensor
    spent: Tensor
    active: Tensor


def rope_tables(config: BackboneConfig, positions: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """cos and sin, [positions, D] each, halves repeated. Computed in float32 and rounded to `dtype` once."""
    half = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), 1.0 / config.rope_theta**half)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs (i, i + D/2). x [..., T, D]; cos, sin [T, D] or broadcastable."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-high, low], dim=-1) * sin


def embed_rows(audio: Tensor, rows: Tensor, vocab: int) -> Tensor:
    """Sum of the Q code embeddings. audio [Q·V, h]; rows [..., Q] int64 -> [..., h]."""
    offsets = torch.arange(rows.shape[-1], device=rows.device) * vocab
    return F.embedding(rows + offsets, audio).sum(dim=-2)


def embed_cursor(w: CursorWeights, config: CursorConfig, text_vocab: int, track: CursorTrack) -> Tensor:
    """[B, T, h], zero where the track is not active. Offsets beyond the piece see its first and last marker."""
    last = track.text.shape[1] - 1
    total = F.embedding(track.spent.clamp(max=config.max_rows - 1), w.rows)
    for j, offset in enumerate(config.offsets):
        phone = track.text.gather(1, (track.index + (1 + offset)).clamp(0, last))
        total = total + F.embedding(phone + j * text_vocab, w.phones)
    return torch.where(track.active[..., None], total, torch.zeros((), dtype=total.dtype, device=total.device))


def trunk(w: BackboneWeights, config: BackboneConfig, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
    """All layers and the final norm. x [B, T, h]; cos, sin [T, D] for these positions; returns [B, T, h]."""
    batch, length = x.shape[0], x.shape[1]
    heads, groups, width = config.heads, config.kv_heads, config.head_dim
    for i, layer in enumerate(w.layers):
        y = F.linear(rms_norm(x, layer.input_norm, config.rms_eps), layer.qkv)
        y = y.view(batch, length, heads + 2 * groups, width).transpose(1, 2)  # [B, H + 2G, T, D]
        q, k, v = y.split([heads, groups, groups], dim=1)
        q = rotate(rms_norm(q, layer.q_norm, config.rms_eps), cos, sin)
        k = rotate(rms_norm(k, layer.k_norm, config.rms_eps), cos, sin)
        x = x + F.linear(attend(i, q, k, v), layer.o)
        gate, up = F.linear(rms_norm(x, layer.post_norm, config.rms_eps), layer.gate_up).chunk(2, dim=-1)
        x = x + F.linear(F.silu(gate) * up, layer.down)
    return rms_norm(x, w.norm, config.rms_eps)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Multiplies by the weight itself, not by 1 + weight."""
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def audio_logits(w: BackboneWeights, config: TTSConfig, hidden: Tensor) -> Tensor:
    """hidden [..., h] -> float32 [..., Q, V], not masked."""
    logits = F.linear(hidden, w.audio).float()
    return logits.view(*hidden.shape[:-1], config.audio.codebooks, config.audio.vocab)


def advance_logits(w: CursorWeights, hidden: Tensor) -> Tensor:
    """hidden [..., h] -> float32 [..., max_advance + 1]: how many phones the cursor moves after this row."""
    return F.linear(hidden, w.advance).float()


def forward_train(
    w: BackboneWeights, config: TTSConfig, tokens: Tensor, rows: Tensor, track: CursorTrack | None = None
) -> Tensor:
    """Hidden states of whole sequences, causal, differentiable, autocast-safe.

    tokens   [B, T] int64: a text id, or -1 where a row of codes stands; pad on the right with anything
    rows     [B, T, Q] int64: the row fed at that position; any valid codes where a text id stands
    returns  [B, T, h]. Position t predicts the row fed at t + 1: `<|audio|>` predicts row 0.
    The track's entry at t belongs to the row that t predicts, so `<|audio|>` is the first active position.
    """
    text = F.embedding(tokens.clamp(min=0), w.text)
    x = torch.where((tokens >= 0)[..., None], text, embed_rows(w.audio, rows, config.audio.vocab))
    if w.cursor is not None and config.cursor is not None and track is not None:
        x = x + embed_cursor(w.cursor, config.cursor, config.backbone.text_vocab, track)
    cos, sin = (t.to(x.device) for t in rope_tables(config.backbone, tokens.shape[1]))

    def attend(_: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        dtype = v.dtype
        y = F.scaled_dot_product_attention(q.to(dtype), k.to(dtype), v, is_causal=True, enable_gqa=True)
        return y.transpose(1, 2).flatten(2)

    return trunk(w, config.backbone, x, cos, sin, attend)


def init_weights(config: TTSConfig, seed: int = 0) -> BackboneWeights:
    """Random float32 weights to train from: normal(0.02), outputs of residual branches scaled by 1/sqrt(2·layers)."""
    generator = torch.Generator().manual_seed(seed)
    b = config.backbone
    residual = 0.02 / (2 * b.layers) ** 0.5

    def normal(*shape: int, std: float = 0.02) -> Tensor:
        return torch.randn(*shape, generator=generator) * std

    layers = tuple(
        LayerWeights(
            input_norm=torch.ones(b.hidden),
            qkv=normal((b.heads + 2 * b.kv_heads) * b.head_dim, b.hidden),
            q_norm=torch.ones(b.head_dim),
            k_norm=torch.ones(b.head_dim),
            o=normal(b.hidden, b.heads * b.head_dim, std=residual),
            post_norm=torch.ones(b.hidden),
            gate_up=normal(2 * b.intermediate, b.hidden),
            down=normal(b.hidden, b.intermediate, std=residual),
        )
        for _ in range(b.layers)
    )
    cursor = None
    if config.cursor is not None:
        c = config.cursor
        cursor = CursorWeights(
            phones=normal(len(c.offsets) * b.text_vocab, b.hidden),
            rows=normal(c.max_rows, b.hidden),
            advance=normal(c.max_advance + 1, b.hidden),
        )
    return BackboneWeights(
        normal(b.text_vocab, b.hidden),
        normal(config.audio.codebooks * config.audio.vocab, b.hidden),
        layers,
        torch.ones(b.hidden),
        cursor,
    )
