"""The captured steps: prefill of a chunk, one row, one codec window. Tensors in, tensors out, all in declared buffers.

Q codebooks, V codes each, S positions of the bucket, C positions of a chunk, W frames of a window, h hidden.
A row does everything on the device: embedding, trunk, delay pattern, end of codes, sampling, cursor, de-delay.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from capsules.exec.switches import Switch
from capsules.nn import Cache, Heads, SamplerBuffers, Span, attend_cached, kernels, rope_table, sample
from tts_engine.backbone import (
    BackboneWeights,
    CursorTrack,
    CursorWeights,
    advance_logits,
    audio_logits,
    embed_cursor,
    embed_rows,
    trunk,
)
from tts_engine.codec import Codec
from tts_engine.config import FRAME_SAMPLES, CursorConfig, TTSConfig
from tts_engine.sampling import CANDIDATES
from tts_engine.state import ENDLESS, State


@dataclass(frozen=True, eq=False)
class Tables:
    """Constants that the steps read.

    cos, sin      [S, D] float32; rounded to the activation type, as training had it
    allowed       [Q, V] float32, -inf for a code that may never be drawn: BOC, and EOC except in codebook 0
    allowed_early [Q, V] the same for the first Q rows, in which an end is not honoured
    opening       [1, h], the embedding of `<|audio|>`
    """

    cos: Tensor
    sin: Tensor
    allowed: Tensor
    allowed_early: Tensor
    opening: Tensor


def make_tables(
    config: TTSConfig, positions: int, dtype: torch.dtype, device: torch.device, opening: Tensor
) -> Tables:
    audio = config.audio
    cos, sin = rope_table(torch.arange(positions), config.backbone.head_dim, config.backbone.rope_theta)
    never = torch.zeros(audio.codebooks, audio.vocab)
    never[:, audio.boc] = -torch.inf
    never[:, audio.eoc] = -torch.inf
    late = never.clone()
    if config.cursor is None:  # with a cursor the text's end is the end; no end code is ever drawn
        late[0, audio.eoc] = 0.0
    return Tables(*(t.to(device) for t in (cos.to(dtype).float(), sin.to(dtype).float(), late, never, opening)))


@dataclass(frozen=True, eq=False)
class Steps:
    """Each method is one step over the buffers of `state`."""

    config: TTSConfig
    weights: BackboneWeights
    tables: Tables
    codec: Codec
    state: State
    audio_id: int

    def prefill(self, chunk: int, bucket: int) -> None:
        """Feed the first `filled` of C positions; the rest falls on dead positions."""
        s, w = self.state, self.weights
        ids, rows, track = s.ids[:chunk], s.feed[:chunk], s.feed_track[:chunk]
        span = Span(s.position, chunk)
        x = torch.where((ids >= 0)[:, None], s.words[:chunk], embed_rows(w.audio, rows, self.config.audio.vocab))
        if w.cursor is not None and self.config.cursor is not None:
            x = x + self._cursor_input(w.cursor, self.config.cursor, track[:, 0], track[:, 1], track[:, 2] > 0)
        s.rows.index_copy_(0, span.positions, rows)
        s.track.index_copy_(0, span.positions, track[:, :2])
        self._trunk(x, span, bucket)
        s.position.add_(s.filled)

    def decode(self, bucket: int) -> None:
        """Feed `<|audio|>` or the last row, draw the next one."""
        s, w, config = self.state, self.weights, self.config
        audio = config.audio
        x = torch.where(s.count == 0, self.tables.opening, embed_rows(w.audio, s.row[None], audio.vocab))
        s.rows.index_copy_(0, s.position, s.row[None])
        s.track.index_copy_(0, s.position, s.cursor[None])
        if w.cursor is not None and config.cursor is not None:
            active = torch.ones_like(s.count, dtype=torch.bool)
            x = x + self._cursor_input(w.cursor, config.cursor, s.cursor[:1], s.cursor[1:], active)
        hidden = self._trunk(x, Span(s.position, 1), bucket)  # [1, h]
        logits = audio_logits(w, config, hidden[0])  # [Q, V]
        allowed = torch.where(s.count < audio.codebooks, self.tables.allowed_early, self.tables.allowed)
        logits = self._with_advance(logits + allowed, hidden[0])
        params = SamplerBuffers(s.temperature, s.top_k, s.top_p, s.min_p)
        drawn = sample(logits, params, s.seed, s.position, candidates=CANDIDATES)
        if config.cursor is None and kernels.switched_on(hidden, Switch.JOINED):
            from tts_engine.row_end import row_end

            row_end(drawn, hidden, s.cursor, s.row, s.count, s.total, s.position, s.rows, s.track, s.out, audio.size)
        else:
            self._end_row(drawn, hidden)

    def _end_row(self, drawn: Tensor, hidden: Tensor) -> None:
        """Delay pattern and end of codes, the cursor, and what the host reads; drawn [Q], or [Q + 1] with a cursor."""
        s, audio = self.state, self.config.audio
        drawn, step = drawn[: audio.codebooks], drawn[audio.codebooks :]
        total = self._end(drawn, step)
        q = torch.arange(audio.codebooks, device=drawn.device)
        row = torch.where(s.count - q >= total, audio.eoc, drawn)
        row = torch.where(q > s.count, audio.boc, row)
        s.row.copy_(row)
        s.total.copy_(total)
        s.position.add_(1)
        s.count.add_(1)
        s.rows.index_copy_(0, s.position, row[None])
        s.track.index_copy_(0, s.position, s.cursor[None])
        recent = s.rows.index_select(0, (s.position - audio.delay + q).clamp(min=0))  # [Q, Q], the last Q rows
        frame = recent.diagonal()
        frame = torch.where(frame < audio.size, frame, 0)
        finite = torch.isfinite(hidden).all().to(torch.int64)[None]
        s.out.copy_(torch.cat([row, frame, s.count, s.total, s.cursor, finite]))

    def window(self, frames: int) -> None:
        """Decode W frames."""
        s = self.state
        codes = s.codes[: self.config.audio.codebooks * frames].view(-1, frames)
        s.pcm[: FRAME_SAMPLES * frames].copy_(self.codec.decode_window(codes, s.valid))

    def _with_advance(self, logits: Tensor, hidden: Tensor) -> Tensor:
        """[Q, V] -> [Q + 1, V] with a cursor: its advance is drawn with the codes, as one more row."""
        s, cursor, w = self.state, self.config.cursor, self.weights.cursor
        if cursor is None or w is None:
            return logits
        advance = advance_logits(w, hidden)  # [A + 1]
        stay = advance[:1].masked_fill(s.cursor[1:] + 1 >= cursor.max_hold, -torch.inf)
        fill = advance.new_full((logits.shape[1] - advance.shape[0],), -torch.inf)
        return torch.cat([logits, torch.cat([stay, advance[1:], fill])[None]])

    def _end(self, drawn: Tensor, step: Tensor) -> Tensor:
        """Frames of the piece, ENDLESS while it continues; also moves the cursor by `step`. [1]"""
        s = self.state
        if self.config.cursor is None:
            ended = (drawn[:1] == self.config.audio.eoc) & (s.total == ENDLESS)
            return torch.where(ended, s.count, s.total)
        index, spent = s.cursor[:1], s.cursor[1:]
        moved = torch.minimum(index + step, s.length)
        total = torch.where((moved >= s.length) & (s.total == ENDLESS), s.count + 1, s.total)
        spent = torch.where(moved == index, spent + 1, 0)
        s.cursor.copy_(torch.cat([moved, spent]))
        return total

    def _cursor_input(
        self, w: CursorWeights, config: CursorConfig, index: Tensor, spent: Tensor, active: Tensor
    ) -> Tensor:
        """[T, h] for cursor states [T]."""
        track = CursorTrack(self.state.text, index[None], spent[None], active[None])
        return embed_cursor(w, config, self.config.backbone.text_vocab, track)[0]

    def _trunk(self, x: Tensor, span: Span, bucket: int) -> Tensor:
        """x [T, h], the rows of `span`, over the first `bucket` positions of the cache."""
        kv = self.state.kv
        cos, sin = (table.index_select(0, span.positions) for table in (self.tables.cos, self.tables.sin))

        def attention(layer: int, heads: Heads, qkv: Tensor) -> Tensor:
            return attend_cached(qkv, heads, cos, sin, span, Cache(kv[layer, 0], kv[layer, 1], bucket))

        return trunk(self.weights, self.config.backbone, x, attention)
