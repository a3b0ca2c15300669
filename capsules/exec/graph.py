"""Graph: a table from ShapeKey to a captured variant. Capture once, replay for ever."""

from collections.abc import Callable

from capsules.exec.backend import Backend
from capsules.exec.buffer import Buffer
from capsules.exec.errors import CaptureError, GraphMissing
from capsules.exec.recorder import OwnerOf, Recording
from capsules.exec.shapekey import ShapeKey
from capsules.exec.shelf import RecordingShelf


class Graph:
    """The variants of one step."""

    def __init__(
        self, name: str, backend: Backend, pool: object, owner_of: OwnerOf, shelf: RecordingShelf | None
    ) -> None:
        self.name = name
        self._backend = backend
        self._pool = pool
        self._owner_of = owner_of
        self._shelf = shelf
        self._variants: dict[ShapeKey, Recording] = {}

    @property
    def keys(self) -> tuple[ShapeKey, ...]:
        """The captured variants, in order of capture."""
        return tuple(self._variants)

    def __contains__(self, key: ShapeKey) -> bool:
        return key in self._variants

    def capture(self, key: ShapeKey, fn: Callable[[], object], preserve: bool = True) -> None:
        """Capture `fn` under `key`. It really runs, unless there is a stored recording; `preserve` restores the STATE
        and IO buffers it touched.

        Raises CaptureError if the step reads a tensor on the host, has a data-dependent shape, reads memory outside any
        declared buffer, draws hidden randomness, or moves a buffer.
        """
        if not isinstance(key, ShapeKey) or not callable(fn):
            raise CaptureError(f"{self.name}: capture takes a ShapeKey and a function, not {key!r} and {fn!r}")
        if key in self._variants:
            raise CaptureError(f"{self.name}: {key} is captured already; another step needs another key or graph")
        try:
            self._variants[key] = self._kept(key) or self._captured(key, fn, preserve)
        except CaptureError as error:
            raise CaptureError(f"{self.name} {key}: {error}") from error

    def _kept(self, key: ShapeKey) -> Recording | None:
        return None if self._shelf is None else self._shelf.recorded(self.name, key)

    def _captured(self, key: ShapeKey, fn: Callable[[], object], preserve: bool) -> Recording:
        recording = self._backend.capture(fn, self._pool, self._owner_of, preserve)
        if self._shelf is not None:
            self._shelf.store(self.name, key, recording)
        return recording

    def replay(self, key: ShapeKey) -> None:
        """Run the captured step again. Results are in buffers. Raises GraphMissing, or BufferMisuse if one moved."""
        variant = self._variants.get(key)
        if variant is None:
            captured = ", ".join(map(str, self._variants)) or "nothing"
            raise GraphMissing(
                f"{self.name}: no variant for {key}; captured: {captured}. Pad to one of these or capture the shape."
            )
        for buffer in variant.touched:
            buffer.check_address()
        variant.replay()

    def touched(self, key: ShapeKey) -> tuple[Buffer, ...]:
        """The STATE and IO buffers that the variant reads or writes."""
        return self._variants[key].touched

    def clear(self) -> None:
        self._variants.clear()
