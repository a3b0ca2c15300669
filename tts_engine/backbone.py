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

from capsules.nn import Heads, add_norm, embed, gated_mlp, linear, rope_table, wide_linear
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.nn.panels import PanelWeight
from tts_engine.config import BackboneConfig, CursorConfig, TTSConfig

Matrix = Tensor | Fp8Weight | Int4Weight | PanelWeight
Table = Tensor | PanelWeight  # rows are looked up in it
Attend = Callable[[int, Heads, Tensor], Tensor]  # (layer, layout, qkv [..., T, (H + 2G) D]) -> [..., T, H, D]


@dataclass(frozen=True, eq=False)
class BackboneLayer:
    """One decoder layer; linear weights are [out, in], q, k, v and gate, up stacked along out."""

    input_norm: Tensor  # [h]
    qkv: Matrix  # [(H + 2G)·D, h]
    q_norm: Tensor  # [D]
    k_norm: Tensor  # [D]
    o: Matrix  # [h, H·D]
    post_norm: Tensor  # [h]
    gate_up: Matrix  # [2·intermediate, h]
    down: Matrix  # [h, intermediate]


@dataclass(frozen=True, eq=False)
class CursorWeights:
    phones: Tensor  # [offsets·text_vocab, h]: row j·text_vocab + id for offset j
    rows: Tensor  # [max_rows, h]
    advance: Tensor  # [max_advance + 1, h]


@dataclass(frozen=True, eq=False)
class BackboneWeights:
    text: Table  # [text_vocab, h]
    audio: Table  # [Q·V, h]: row q·V + code; embedding and head
    layers: tuple[BackboneLayer, ...]
    norm: Tensor  # [h]
    cursor: CursorWeights | None = None


@dataclass(frozen=True, eq=False)
class CursorTrack:
    """The position of the cursor at each step.

    text    [B, N + 2] int64: `<|text|>`, the phones, `<|audio|>`; pad a batch on the right with `<|audio|>`
    index   [B, T] int64: 0..N, the phone of the row that this position predicts; N once all are spoken
    spent   [B, T] int64: rows already spent on that phone (any size; the embedding stops at max_rows - 1)
    active  [B, T] bool: True where a row of the piece is predicted; elsewhere the cursor adds nothing
    """

    text: Tensor
    index: Tensor
    spent: Tensor
    active: Tensor


def embed_rows(audio: Table, rows: Tensor, vocab: int) -> Tensor:
    """Sum of the Q code embeddings. audio [Q·V, h]; rows [..., Q] int64 -> [..., h]."""
    offsets = torch.arange(rows.shape[-1], device=rows.device) * vocab
    return embed(rows + offsets, audio).sum(dim=-2)


def embed_cursor(w: CursorWeights, config: CursorConfig, text_vocab: int, track: CursorTrack) -> Tensor:
    """[B, T, h], zero where the track is not active. Offsets beyond the piece see its first and last marker."""
    count, text = len(config.offsets), track.text
    offsets = torch.arange(count, device=text.device)
    seen = (track.index[..., None] + (offsets + (1 + config.offsets[0]))).clamp(0, text.shape[1] - 1)  # [B, T, offsets]
    phones = text.gather(1, seen.flatten(1)).view(seen.shape) + offsets * text_vocab
    total = F.embedding(phones, w.phones).sum(dim=-2) + F.embedding(track.spent.clamp(max=config.max_rows - 1), w.rows)
    return torch.where(track.active[..., None], total, torch.zeros((), dtype=total.dtype, device=total.device))


def trunk(w: BackboneWeights, config: BackboneConfig, x: Tensor, attend: Attend) -> Tensor:
    """All layers and the final norm: [..., T, h] to [..., T, h]."""
    eps, y = config.rms_eps, None
    for i, layer in enumerate(w.layers):
        heads = Heads(config.heads, config.kv_heads, config.head_dim, layer.q_norm, layer.k_norm, eps)
        x, normed = add_norm(x, y, layer.input_norm, eps)
        y = linear(attend(i, heads, linear(normed, layer.qkv)).flatten(-2), layer.o)
        x, normed = add_norm(x, y, layer.post_norm, eps)
        y = gated_mlp(normed, layer.gate_up, layer.down)
    return add_norm(x, y, w.norm, eps)[1]


def audio_logits(w: BackboneWeights, config: TTSConfig, hidden: Tensor) -> Tensor:
    """hidden [..., h] -> float32 [..., Q, V], not masked."""
    logits = wide_linear(hidden, w.audio)
    return logits.view(*hidden.shape[:-1], config.audio.codebooks, config.audio.vocab)


def advance_logits(w: CursorWeights, hidden: Tensor) -> Tensor:
    """hidden [..., h] -> float32 [..., max_advance + 1]: how many phones the cursor moves after this row."""
    return linear(hidden, w.advance).float()


def forward_train(
    w: BackboneWeights, config: TTSConfig, tokens: Tensor, rows: Tensor, track: CursorTrack | None = None
) -> Tensor:
    """Hidden states of whole sequences, causal, differentiable, autocast-safe.

    tokens   [B, T] int64: a text id, or -1 for a row of codes; pad on the right with anything
    rows     [B, T, Q] int64: the row fed at that position; any valid codes beside a text id
    returns  [B, T, h]. Position t predicts the row fed at t + 1: `<|audio|>` predicts row 0.
    The track's entry at t belongs to the row that t predicts, so `<|audio|>` is the first active position.
    """
    text = embed(tokens.clamp(min=0), w.text)
    x = torch.where((tokens >= 0)[..., None], text, embed_rows(w.audio, rows, config.audio.vocab))
    if w.cursor is not None and config.cursor is not None and track is not None:
        x = x + embed_cursor(w.cursor, config.cursor, config.backbone.text_vocab, track)
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    cos, sin = rope_table(positions, config.backbone.head_dim, config.backbone.rope_theta)

    def attend(_: int, heads: Heads, qkv: Tensor) -> Tensor:
        q, k, v, _gate = heads.parts(qkv)
        q, k, v = (y.to(v.dtype).transpose(-2, -3) for y in (*heads.turned(q, k, cos, sin), v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(-2, -3)

    return trunk(w, config.backbone, x, attend)


def init_weights(config: TTSConfig, seed: int = 0) -> BackboneWeights:
    """Random float32 weights to train from: normal(0.02), outputs of residual branches scaled by 1/sqrt(2·layers)."""
    generator = torch.Generator().manual_seed(seed)
    b = config.backbone
    residual = 0.02 / (2 * b.layers) ** 0.5

    def normal(*shape: int, std: float = 0.02) -> Tensor:
        return torch.randn(*shape, generator=generator) * std

    layers = tuple(
        BackboneLayer(
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
