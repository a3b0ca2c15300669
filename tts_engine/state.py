"""Every buffer of the voice engine, declared once: state that survives a row, the host's input, the host's output.

S positions, L layers, G key/value heads, D head size, Q codebooks. All host-visible integers are int64.
The rows fed so far and the cursor's track lie beside the KV cache, indexed by position: a step reads the last rows
there and uses no counter on the host.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from capsules import ExecContext, Prefix, Role
from tts_engine.config import FRAME_SAMPLES, TTSConfig
from tts_engine.prompt import ROW

SCOPE = "tts"
ENDLESS = 1 << 40  # `total` while the end of the piece is not known
MAX_PIECE = 1024  # text ids in one piece


@dataclass(frozen=True, eq=False)
class State:
    """Tensors of the declared buffers."""

    # state
    kv: Tensor  # [L, 2, S, G, D]
    rows: Tensor  # [S, Q]: the row fed at a position; zeros for text
    track: Tensor  # [S, 2]: cursor index and rows spent, for the row that a position predicts
    position: Tensor  # [1]: where the next input goes
    row: Tensor  # [Q]: the row sampled last, the next input
    count: Tensor  # [1]: rows sampled of this piece
    total: Tensor  # [1]: frames of this piece, ENDLESS until known
    cursor: Tensor  # [2]: index and rows spent, for the row that comes next
    text: Tensor  # [1, MAX_PIECE + 2]: `<|text|>`, the ids of the piece, `<|audio|>` to the end
    length: Tensor  # [1]: ids of the piece
    temperature: Tensor  # [Q, 1], and a last row for the cursor's advance where there is one
    top_k: Tensor  # as temperature
    top_p: Tensor  # [1]
    min_p: Tensor  # [1]: always 0
    seed: Tensor  # [1]
    # io
    ids: Tensor  # [C]: text ids of a prefill chunk, ROW where a row stands
    words: Tensor  # [C, h]: the embeddings of those ids, looked up where the table lies
    feed: Tensor  # [C, Q]: its rows
    feed_track: Tensor  # [C, 3]: cursor index, rows spent, 1 if the cursor counts
    filled: Tensor  # [1]: how much of the chunk is real
    out: Tensor  # [2Q + 5]: row, newest complete frame, count, total, cursor for the next row, finite
    codes: Tensor  # [Q · W]
    valid: Tensor  # [2]
    pcm: Tensor  # [960 · W]


def declare(ctx: ExecContext, config: TTSConfig, positions: int, dtype: torch.dtype, chunk: int, window: int) -> State:
    """positions: capacity S; chunk: the longest prefill; window: the longest codec window."""
    b, q = config.backbone, config.audio.codebooks
    draws = q + (config.cursor is not None)

    def state(name: str, *shape: int, dtype: torch.dtype = torch.int64, live: Prefix | None = None) -> Tensor:
        return ctx.buffer(f"{SCOPE}.{name}", shape, dtype, role=Role.STATE, live=live).tensor

    def io(name: str, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return ctx.buffer(f"{SCOPE}.{name}", shape, dtype, role=Role.IO).tensor

    made = State(
        kv=state("kv", b.layers, 2, positions, b.kv_heads, b.head_dim, dtype=dtype, live=Prefix(axis=2)),
        rows=state("rows", positions, q, live=Prefix(axis=0)),
        track=state("track", positions, 2, live=Prefix(axis=0)),
        position=state("position", 1),
        row=state("row", q),
        count=state("count", 1),
        total=state("total", 1),
        cursor=state("cursor", 2),
        text=state("text", 1, MAX_PIECE + 2),
        length=state("length", 1),
        temperature=state("temperature", draws, 1, dtype=torch.float32),
        top_k=state("top_k", draws, 1),
        top_p=state("top_p", 1, dtype=torch.float32),
        min_p=state("min_p", 1, dtype=torch.float32),
        seed=state("seed", 1),
        ids=io("ids", chunk),
        words=io("words", chunk, b.hidden, dtype=dtype),
        feed=io("feed", chunk, q),
        feed_track=io("feed_track", chunk, 3),
        filled=io("filled", 1),
        out=io("out", 2 * q + 5),
        codes=io("codes", q * window),
        valid=io("valid", 2),
        pcm=io("pcm", FRAME_SAMPLES * window, dtype=torch.float32),
    )
    made.total.fill_(ENDLESS)
    made.ids.fill_(ROW)
    return made
