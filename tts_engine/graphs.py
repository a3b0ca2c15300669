"""The captured shapes, and the choice among them for a piece of work. The only file that knows graph names.

A prefill chunk and a decode step exist once per KV bucket, a codec window once per length. Bucket and chunk are
functions of position and length alone, so equal work always uses equal shapes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from capsules import ExecContext, ShapeKey
from capsules.exec.switches import Switch
from tts_engine.state import SCOPE
from tts_engine.steps import Steps
from tts_engine.streaming import SIZES

CHUNKS = (16, 64, 256)
FIRST_BUCKET = 256


@dataclass(frozen=True)
class Shapes:
    """capacity: positions in the KV buffers, a bucket itself; chunks: prefill lengths; windows: codec lengths."""

    buckets: tuple[int, ...]
    chunks: tuple[int, ...]
    windows: tuple[int, ...]

    @property
    def capacity(self) -> int:
        return self.buckets[-1]

    def bucket(self, end: int) -> int:
        """The smallest bucket that holds positions below `end`."""
        return next(size for size in self.buckets if size >= end)

    def parts(self, length: int) -> Iterator[tuple[int, int]]:
        """(real positions, chunk) that cover a prefill, wasting at most half of any chunk but the smallest."""
        while length > 0:
            fits = [c for c in self.chunks if c <= length]
            above = next((c for c in self.chunks if length <= c <= 2 * length), None)
            chunk = above or (fits[-1] if fits else self.chunks[0])
            yield min(length, chunk), chunk
            length -= min(length, chunk)


def plan_shapes(max_positions: int, left: int, right: int) -> Shapes:
    """Buckets double up to the capacity, which leaves room for the padding of one prefill chunk."""
    chunks = tuple(c for c in CHUNKS if c <= max(CHUNKS[0], max_positions // 4))
    capacity = -(-(max_positions + chunks[-1]) // FIRST_BUCKET) * FIRST_BUCKET
    buckets = []
    size = FIRST_BUCKET
    while size < capacity:
        buckets.append(size)
        size *= 2
    return Shapes((*buckets, capacity), chunks, tuple(left + n + right for n in SIZES))


class Graphs:
    """All captured steps of the engine."""

    def __init__(self, ctx: ExecContext, steps: Steps, shapes: Shapes, facts: str) -> None:
        """Captures everything; the state is unchanged afterwards. `facts`: all inputs of the steps except
        code and buffers."""
        pool, shelf = ctx.pool(SCOPE), ctx.shelf(facts, "tts_engine")
        if Switch.CHUNK in ctx.switches:  # attention stops at the position by itself
            shapes = replace(shapes, buckets=shapes.buckets[-1:])
        self.shapes = shapes
        self._prefill = ctx.graph(f"{SCOPE}.prefill", pool=pool, shelf=shelf)
        self._decode = ctx.graph(f"{SCOPE}.decode", pool=pool, shelf=shelf)
        self._window = ctx.graph(f"{SCOPE}.window", pool=pool, shelf=shelf)
        for kv in shapes.buckets:
            self._decode.capture(ShapeKey(tokens=1, kv=kv), partial(steps.decode, kv))
            for chunk in shapes.chunks:
                if chunk <= kv:
                    key = ShapeKey(tokens=chunk, kv=kv)
                    self._prefill.capture(key, partial(steps.prefill, chunk, kv))
        for frames in sorted(set(shapes.windows)):
            self._window.capture(ShapeKey(frames=frames), partial(steps.window, frames))

    def prefill(self, position: int, chunk: int) -> None:
        self._prefill.replay(ShapeKey(tokens=chunk, kv=self.shapes.bucket(position + chunk)))

    def decode(self, position: int) -> None:
        """The step also notes its row at position + 1, perhaps beyond the bucket, but within capacity."""
        self._decode.replay(ShapeKey(tokens=1, kv=self.shapes.bucket(position + 1)))

    def window(self, frames: int) -> None:
        self._window.replay(ShapeKey(frames=frames))
