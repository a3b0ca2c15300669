"""Graph: a table from ShapeKey to a captured variant. Capture once, replay for ever."""

from collections import OrderedDict
from collections.abc import Callable

from capsules.errors import CaptureError, GraphMissing
from capsules.exec.backend import Backend
from capsules.exec.buffer import Buffer
from capsules.exec.recorder import OwnerOf, Recording
from capsules.exec.shapekey import ShapeKey
from capsules.exec.sync import Stream


class Graph:
    """The variants of one step. With a `capacity` the least recently replayed one is freed; buffers never are."""

    def __init__(
        self, name: str, backend: Backend, pool: object, owner_of: OwnerOf, capacity: int | None = None
    ) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"{name}: capacity is {capacity}; it must be at least 1, or None for no limit")
        self.name = name
        self.capacity = capacity
        self._backend = backend
        self._pool = pool
        self._owner_of = owner_of
        self._variants: OrderedDict[ShapeKey, Recording] = OrderedDict()

    @property
    def keys(self) -> tuple[ShapeKey, ...]:
        """What is captured, least recently replayed first."""
        return tuple(self._variants)

    def __contains__(self, key: ShapeKey) -> bool:
        return key in self._variants

    def capture(self, key: ShapeKey, fn: Callable[[], object], preserve: bool = True) -> None:
        """Capture `fn` under `key`. It runs for real; `preserve` puts the STATE and IO bytes it touched back.

        Raises CaptureError if the step reads a tensor on the host, has a data-dependent shape, reads memory that is
        no declared buffer, draws hidden randomness, or moves a buffer.
        """
        if key in self._variants:
            raise CaptureError(f"{self.name}: {key} is captured already; evict it first to capture another step")
        try:
            variant = self._backend.capture(fn, self._pool, self._owner_of, preserve)
        except CaptureError as error:
            raise CaptureError(f"{self.name} {key}: {error}") from error
        self._variants[key] = variant
        while self.capacity is not None and len(self._variants) > self.capacity:
            self._variants.popitem(last=False)

    def replay(self, key: ShapeKey, stream: Stream | None = None) -> None:
        """Run the captured step again. Results are in buffers. Raises GraphMissing, or BufferMisuse if one moved."""
        variant = self._variants.get(key)
        if variant is None:
            captured = ", ".join(map(str, self._variants)) or "nothing"
            raise GraphMissing(
                f"{self.name}: no variant for {key}; captured: {captured}. Pad to one of these or capture the shape."
            )
        if self.capacity is not None:
            self._variants.move_to_end(key)
        for buffer in variant.touched:
            buffer.check_address()
        if stream is None:
            variant.replay()
        else:
            with stream.use():
                variant.replay()

    def touched(self, key: ShapeKey) -> tuple[Buffer, ...]:
        """The STATE and IO buffers that the variant reads or writes."""
        return self._variants[key].touched

    def evict(self, key: ShapeKey) -> None:
        """Free one variant. Raises GraphMissing if there is none."""
        if self._variants.pop(key, None) is None:
            raise GraphMissing(f"{self.name}: nothing to evict for {key}")

    def clear(self) -> None:
        self._variants.clear()
