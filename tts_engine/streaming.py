"""Decides which frames are decoded when: chunk sizes, and the look-ahead that each chunk waits for.

A frame's samples depend on `left` frames before and `right` frames after it. With both in the window, streamed audio
equals one-shot audio. Under the `exact` policy every chunk waits for all of its right context. Under `fast` the first
chunks wait for less: following frames whose first codebooks are already known stand in for it (codebook q lags by q
rows, so Q - 1 such frames come for free). Chunks grow, and each lasts longer than the next one takes to make.
Pure: frame counts in, frame counts out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tts_engine.errors import EngineMisuse

POLICIES = ("exact", "fast", "steady")
SIZES = (1, 2, 4, 8, 16, 25)  # frames in a chunk; each is one captured window shape
FRAME_MS = 40.0
LONGEST_RISE = 48  # chunks; a start that climbs more slowly is replaced by a larger one


@dataclass(frozen=True)
class AudioChunk:
    """Give out `frames` once `ahead` complete frames after them are known."""

    frames: int
    ahead: int


@dataclass(frozen=True)
class Schedule:
    """First chunks, then `last` forever."""

    first: tuple[AudioChunk, ...]
    last: AudioChunk

    def at(self, emitted: int) -> AudioChunk:
        """The next chunk when `emitted` frames are out; a cut inside a chunk continues with the next one."""
        covered = 0
        for chunk in self.first:
            if emitted <= covered:
                return chunk
            covered += chunk.frames
        return self.last

@dataclass(frozen=True)
class Costs:
    """The cost on this machine of one row of the backbone, and of one frame of a codec window, in ms."""

    row_ms: float
    frame_ms: float


@dataclass(frozen=True)
class Window:
    """Frames [start, end) go out. Column 0 of the captured shape is frame `origin`, which may be negative.

    size   columns in the captured shape
    known  frames from here on do not exist, or are not known at all
    """

    start: int
    end: int
    origin: int
    size: int
    known: int

    @property
    def valid(self) -> tuple[int, int]:
        """Columns that exist."""
        return max(0, -self.origin), min(self.size, self.known - self.origin)


def growth(costs: Costs, left: int, right: int, ramp: tuple[int, ...], margin: float = 1.5) -> tuple[AudioChunk, ...]:
    """The shortest first chunk and its successors for which playback never waits.

    A chunk of n frames plays for 40·n ms. Making the next, of m frames, costs m rows, the rows by which its look-ahead
    is longer, and a window of left + m + right frames; the machine may be `margin` times slower than measured. If the
    lead allows it, look-ahead grows first, then the chunk. ramp: look-aheads in rising order.
    If nothing is safe (slower than real time), the largest chunk is the best choice.
    """

    def cost(frames: int, rows: int) -> float:
        return (rows * costs.row_ms + (left + frames + right) * costs.frame_ms) * margin

    if cost(SIZES[-1], SIZES[-1]) <= SIZES[-1] * FRAME_MS:
        for first in SIZES:
            chunks = _grow(first, ramp, cost)
            if chunks is not None:
                return chunks
    return (AudioChunk(SIZES[-1], right),)


def _grow(first: int, ramp: tuple[int, ...], cost: Callable[[int, int], float]) -> tuple[AudioChunk, ...] | None:
    """The chunks from `first` to the largest, or None if playback would have to wait or never get there."""
    chunks, lead, level = [AudioChunk(first, ramp[0])], first * FRAME_MS, 0
    while chunks[-1] != AudioChunk(SIZES[-1], ramp[-1]):
        choices = (
            (at, frames)
            for at in range(len(ramp) - 1, level - 1, -1)
            for frames in reversed(SIZES)
            if chunks[-1].frames <= frames and cost(frames, frames + ramp[at] - ramp[level]) <= lead
        )
        found = next(choices, None)
        if found is None or len(chunks) == LONGEST_RISE:
            return None
        lead += found[1] * FRAME_MS - cost(found[1], found[1] + ramp[found[0]] - ramp[level])
        level = found[0]
        chunks.append(AudioChunk(found[1], ramp[level]))
    return tuple(chunks)


def schedule_for(policy: str, left: int, right: int, costs: Costs | None = None) -> Schedule:
    """The chunks of a policy for a codec that looks `right` frames ahead.

    exact   first sound as early as possible while equal to one-shot decoding
    fast    first sound earlier still; the first chunks differ from one-shot audio
    steady  for pieces that follow another one: the largest chunks after two steps
    costs   of this machine; None: doubling from 2 frames
    Raises EngineMisuse for any other name.
    """
    if policy not in POLICIES:
        raise EngineMisuse(f"first_chunk is {policy!r}; {', '.join(POLICIES)} are known")
    if policy == "steady":
        chunks: tuple[AudioChunk, ...] = tuple(AudioChunk(n, right) for n in SIZES[-3:])
    else:
        ramp = tuple(sorted({0, right // 5, right // 2, right})) if policy == "fast" else (right,)
        if costs is not None:
            chunks = growth(costs, left, right, ramp)
        else:
            chunks = tuple(AudioChunk(n, ramp[min(i, len(ramp) - 1)]) for i, n in enumerate(SIZES[1:]))
    return Schedule(chunks[:-1], chunks[-1])


def next_window(
    schedule: Schedule, *, emitted: int, complete: int, begun: int, total: int | None, left: int, right: int
) -> Window | None:
    """The chunk that can be decoded now, or None.

    emitted   frames given out
    complete  frames whose codes are all known
    begun     frames with at least the first code known
    total     frames of the piece, once known; its end is then a true end
    """
    chunk = schedule.at(emitted)
    if total is not None and complete >= total:
        end, known = min(emitted + chunk.frames, total), total
    elif complete >= emitted + chunk.frames + chunk.ahead:
        end, known = emitted + chunk.frames, begun if total is None else min(begun, total)
    else:
        return None
    if end <= emitted:
        return None
    frames = next(n for n in SIZES if n >= end - emitted)
    return Window(emitted, end, emitted - left, left + frames + right, min(known, end + right))
