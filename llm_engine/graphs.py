"""The captured shapes, and the effect of replaying each.

    chunk (rows, kv, head)   fold `count` of `rows` ids, or rows of pictures; with head=1 also compute the logits
    decode (kv)              fold the token buffer, compute the logits
    sample (greedy)          draw the next token from the logits into the token buffer, skipping barred ones

Position, counts and sampler parameters are read on the device, so a growing conversation meets only these variants.
"""

from torch import Tensor

from capsules import ExecContext, ShapeKey
from capsules.exec.switches import Switch
from capsules.nn import allowed_logits, count_token, sample
from llm_engine.config import LLMConfig
from llm_engine.grid import GRID, ROWS, GridChunk, bucket_for, chunk_buckets, step_buckets
from llm_engine.model import ChunkRows, ModelWeights, forward_chunk, forward_step, logits_of
from llm_engine.state import EngineState


class EngineGraphs:
    """The captured steps of one engine."""

    def __init__(
        self, ctx: ExecContext, config: LLMConfig, weights: ModelWeights, state: EngineState, rows: int, scope: str
    ) -> None:
        self._config, self._weights, self._state = config, weights, state
        self._chunk_sizes, self._step_sizes = chunk_buckets(rows), step_buckets(rows)
        if Switch.CHUNK in ctx.switches:  # attention stops at the position by itself
            self._chunk_sizes = self._step_sizes = (rows,)
        pool, shelf = ctx.pool(scope), ctx.shelf(repr(config), "llm_engine")
        self._chunk = ctx.graph(f"{scope}.chunk", pool=pool, shelf=shelf)
        self._decode = ctx.graph(f"{scope}.decode", pool=pool, shelf=shelf)
        self._sample = ctx.graph(f"{scope}.sample", pool=pool, shelf=shelf)

    @property
    def captured(self) -> int:
        """How many variants exist."""
        return len(self._chunk.keys) + len(self._decode.keys) + len(self._sample.keys)

    def capture_all(self) -> None:
        """Capture every variant. The state's bytes are put back by each capture."""
        for kv in self._chunk_sizes:
            for rows in ROWS:
                self._capture_chunk(rows, kv, head=1)
            self._capture_chunk(GRID, kv, head=0)
        for kv in self._step_sizes:
            self._decode.capture(ShapeKey(kv=kv), lambda kv=kv: self._decode_step(kv))  # type: ignore[misc]
        self._sample.capture(ShapeKey(greedy=1), self._greedy_step)
        self._sample.capture(ShapeKey(greedy=0), self._sample_step)

    def chunk(self, chunk: GridChunk, head: bool) -> None:
        """Fold the contents of the ids buffer. `head`: compute logits too; only whole cells can go without."""
        kv = bucket_for(chunk.start + chunk.rows, self._chunk_sizes)
        self._chunk.replay(ShapeKey(rows=chunk.rows, kv=kv, head=int(head or chunk.rows < GRID)))

    def decode(self, position: int) -> None:
        """Fold the token buffer at `position`."""
        self._decode.replay(ShapeKey(kv=bucket_for(position + 1, self._step_sizes)))

    def sample(self, greedy: bool) -> None:
        self._sample.replay(ShapeKey(greedy=int(greedy)))

    def _capture_chunk(self, rows: int, kv: int, head: int) -> None:
        self._chunk.capture(ShapeKey(rows=rows, kv=kv, head=head), lambda: self._chunk_step(rows, kv, bool(head)))

    def _chunk_step(self, rows: int, kv: int, head: bool) -> None:
        s, ids = self._state, self._state.ids[:rows]
        chunk = ChunkRows(ids, s.axes[:, :rows], s.pictured[:rows], s.pictures[:rows])
        x = forward_chunk(self._weights, self._config, s.layers, chunk, s.position, s.count, kv)
        if head:
            self._finish(x.index_select(0, s.count - 1))
        s.seen.index_fill_(0, ids, 1)  # padding repeats a real id
        s.generated.zero_()
        s.position.add_(s.count)
        s.rope_delta.copy_(s.delta_after)

    def _decode_step(self, kv: int) -> None:
        s = self._state
        self._finish(forward_step(self._weights, self._config, s.layers, s.token, s.position, s.rope_delta, kv))
        count_token(s.generated, s.seen, s.token)
        s.position.add_(1)

    def _finish(self, x: Tensor) -> None:
        self._state.logits.copy_(logits_of(self._weights, self._config, x)[0])

    def _greedy_step(self) -> None:
        logits = self._state.logits.masked_fill(self._state.barred, float("-inf"))
        self._state.token.copy_(logits.argmax(-1, keepdim=True))

    def _sample_step(self) -> None:
        s = self._state
        logits = allowed_logits(s.logits, s.barred, s.generated, s.seen, s.presence, s.repetition)
        s.token.copy_(sample(logits, s.sampler, s.seed, s.position))
