"""Which frames are decoded when: chunk sizes, and how much look-ahead each chunk waits for.

A frame's samples depend on `left` frames before and `right` frames after it. With both in the window, streamed audio
is one-shot audio. Under the `exact` policy every chunk waits for all of its right context. Under `fast` the first
chunks wait for less: the frames to come whose first codebooks are already known stand in for it (codebook q lags by q
rows, so Q - 1 such frames exist for nothing). Chunks grow, each lasting longer than the next one takes to make.
Pure: frame counts in, frame counts out.
"""

from dataclasses import dataclass
from itertools import pairwise

from tts_engine.errors import EngineMisuse

POLICIES = ("exact", "fast", "steady")
SIZES = (1, 2, 4, 8, 16, 25)  # frames in a chunk; each is one captured window shape
FRAME_MS = 40.0


@dataclass(frozen=True)
class Chunk:
    """`frames` to give out, once `ahead` complete frames after them are known."""

    frames: int
    ahead: int


@dataclass(frozen=True)
class Schedule:
    """First chunks, then `last` for ever."""

    first: tuple[Chunk, ...]
    last: Chunk

    def at(self, emitted: int) -> Chunk:
        """The chunk to give out when `emitted` frames are out already; a cut inside a chunk goes on with the next."""
        covered = 0
        for chunk in self.first:
            if emitted <= covered:
                return chunk
            covered += chunk.frames
        return self.last

    def rows_to_first_audio(self, delay: int) -> int:
        """`delay`: rows by which the last codebook lags behind the first."""
        chunk = self.at(0)
        return chunk.frames + chunk.ahead + delay


@dataclass(frozen=True)
class Costs:
    """What this machine takes: one row of the backbone, and one frame of a codec window, in ms."""

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


def growth(costs: Costs, left: int, right: int, margin: float = 1.5) -> tuple[int, ...]:
    """The shortest first chunk, and its successors up to the largest, such that playback never waits for a chunk.

    A chunk of n frames plays for 40·n ms; meanwhile the next one, of m frames, costs m rows and a window of
    left + m + right frames, and the machine may be `margin` times slower than measured. Where no start is safe
    (slower than real time) the largest chunk is the best there is.
    """

    def lasts(playing: int, coming: int) -> bool:
        cost = coming * costs.row_ms + (left + coming + right) * costs.frame_ms
        return cost * margin <= playing * FRAME_MS

    for first in range(len(SIZES)):
        sizes = SIZES[first:]
        if all(lasts(a, b) for a, b in pairwise(sizes)) and lasts(sizes[-1], sizes[-1]):
            return sizes
    return SIZES[-1:]


def schedule_for(policy: str, right: int, sizes: tuple[int, ...] = SIZES[1:]) -> Schedule:
    """The chunks of a policy for a codec that looks `right` frames ahead.

    exact   first sound as early as equality with one-shot decoding allows
    fast    first sound earlier still; the first chunks differ from one-shot audio
    steady  for pieces that follow another one: the largest chunks after one step
    Raises EngineMisuse for another name.
    """
    last = Chunk(sizes[-1], right)
    if policy == "exact":
        return Schedule(tuple(Chunk(n, right) for n in sizes[:-1]), last)
    if policy == "fast":
        waits = (0, right // 5, right // 2)
        return Schedule(tuple(Chunk(n, waits[i] if i < 3 else right) for i, n in enumerate(sizes[:-1])), last)
    if policy == "steady":
        return Schedule(tuple(Chunk(n, right) for n in sizes[-3:-1]), last)
    raise EngineMisuse(f"first_chunk is {policy!r}; {', '.join(POLICIES)} are known")


def next_window(
    schedule: Schedule, *, emitted: int, complete: int, begun: int, total: int | None, left: int, right: int
) -> Window | None:
    """The chunk that can be decoded now, or None.

    emitted   frames given out
    complete  frames whose codes are all known
    begun     frames of which the first code at least is known
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
