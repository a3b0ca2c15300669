"""ExecContext: owns every buffer, graph, stream and pool. One per process; all engines live in it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch
from torch import Tensor

from capsules.exec.backend import Backend, backend_for
from capsules.exec.buffer import Buffer, Prefix, Role, Whole, contains, storage_key
from capsules.exec.errors import BufferMisuse, CaptureError
from capsules.exec.graph import Graph
from capsules.exec.recorder import OwnerOf, Recording
from capsules.exec.recycle import Recycler, rounded
from capsules.exec.shelf import RecordingShelf
from capsules.exec.switches import PROVEN, Switch, switched
from capsules.exec.sync import Stream


class ExecContext:
    """Mechanism only: it knows names, roles and shapes, but no session, cache or scheduler.

    device   "cpu", "cuda" or "cuda:N"; raises ContractMisuse if it is not there
    kernels  cpu only: a folder for C++ kernels, built on first use and found again later; needs a compiler (raises
             CompileError). Equal to torch's own up to the order of sums
    recordings  cpu only: a folder for recordings, which then need not run again at the next start
    switches    cuda only: the new kernels that its steps take
    Names are dotted; the part before the first dot is the scope, which an engine snapshots and releases as a whole.
    """

    def __init__(
        self,
        device: str = "cpu",
        kernels: Path | None = None,
        recordings: Path | None = None,
        switches: frozenset[Switch] = PROVEN,
    ) -> None:
        backend = backend_for(device, kernels)
        self.switches = switches if backend.device.type == "cuda" else frozenset()
        self._backend = _Guarded(backend, self.switches)
        self.fixed = backend.fixed() if Switch.SLEEP in self.switches else None
        """The place of weights that can be let go on a device; None without the switch, and on a processor."""
        self._buffers: dict[str, Buffer] = {}
        self._by_storage: dict[int, list[Buffer]] = {}
        self._graphs: dict[str, Graph] = {}
        self._pools: dict[str, object] = {}
        self._streams: dict[str, Stream] = {}
        self._recycler = Recycler()
        self._kernels, self._recordings = kernels, recordings if self.device.type == "cpu" else None

    @property
    def device(self) -> torch.device:
        return self._backend.device

    def describe(self) -> str:
        """The deployment, as it enters fingerprints: other kernels give other bits."""
        return " ".join([self._backend.describe(), *sorted(self.switches)])

    def buffer(
        self,
        name: str,
        shape: Sequence[int],
        dtype: torch.dtype,
        *,
        role: Role,
        live: Whole | Prefix | None = None,
    ) -> Buffer:
        """Zero-filled memory at a fixed address. Raises BufferMisuse if the name is taken, CaptureError in a step."""
        if not isinstance(shape, Sequence) or not all(type(n) is int and n >= 0 for n in shape):
            raise BufferMisuse(f"{name}: shape is {shape!r}; a list of integers from 0 up is needed")
        if not isinstance(dtype, torch.dtype):
            raise BufferMisuse(f"{name}: dtype is {dtype!r}; a torch.dtype is needed")
        self._check_free(name)
        return self._register(name, torch.zeros(tuple(shape), dtype=dtype, device=self.device), role, live or Whole())

    def adopt(self, name: str, tensor: Tensor, *, role: Role = Role.WEIGHT) -> Buffer:
        """Give an existing tensor a name, without a copy. The caller must no longer rebind or resize it."""
        if not isinstance(tensor, Tensor):
            raise BufferMisuse(f"{name}: {type(tensor).__name__} is no tensor; only tensors are adopted")
        self._check_free(name)
        if tensor.device.type != self.device.type:
            raise BufferMisuse(f"{name}: lies on {tensor.device}, this context runs on {self.device}")
        return self._register(name, tensor, role, Whole())

    def placing(self) -> AbstractContextManager[None]:
        """Uninitialised tensors on the device that are made inside will be weights."""
        return nullcontext() if self.fixed is None else self.fixed.placing()

    def __getitem__(self, name: str) -> Buffer:
        if name not in self._buffers:
            raise BufferMisuse(f"no buffer {name!r}; declared: {', '.join(self._buffers) or 'none'}")
        return self._buffers[name]

    def buffers(self, scope: str | None = None, role: Role | None = None) -> tuple[Buffer, ...]:
        """In order of declaration."""
        return tuple(
            b
            for b in self._buffers.values()
            if (scope is None or b.scope == scope) and (role is None or b.role == role)
        )

    def owner_of(self, tensor: Tensor) -> Buffer | None:
        """The declared buffer that holds all of `tensor`, if any."""
        for buffer in self._by_storage.get(storage_key(tensor), ()):
            if contains(buffer, tensor):
                return buffer
        return None

    def bytes(self, count: int) -> Tensor:
        """[count] uint8, uninitialised, for a copy of state that outlives the step; recycled when it is gone.

        A device's allocator finds a freed block again only for much the same size, and states grow: so sizes are few.
        """
        if self.device.type == "cpu":
            return self._recycler.lend(count)
        return torch.empty(rounded(count), dtype=torch.uint8, device=self.device)[:count]

    def pool(self, name: str) -> object:
        """Graphs that may replay at the same time must not share a pool."""
        if name not in self._pools:
            self._pools[name] = self._backend.pool()
        return self._pools[name]

    def named_stream(self, name: str, priority: int = 0) -> Stream:
        if name not in self._streams:
            self._streams[name] = self._backend.new_stream(name, priority)
        return self._streams[name]

    def shelf(self, facts: str, *packages: str) -> RecordingShelf | None:
        """A place for recordings of graphs, or None. `facts` lists all inputs of their steps other than buffers and the
        code of `packages`."""
        if self._recordings is None:
            return None
        told = f"{self.describe()}\n{facts}"
        return RecordingShelf(self._recordings, packages, told, self._kernels, self._buffers, self.owner_of)

    def graph(self, name: str, *, pool: object = None, shelf: RecordingShelf | None = None) -> Graph:
        """A new table of variants. Raises BufferMisuse if the name is taken."""
        if name in self._graphs:
            raise BufferMisuse(f"graph {name!r} exists already; names are unique in a context")
        graph = Graph(name, self._backend, pool, self.owner_of, shelf)
        self._graphs[name] = graph
        return graph

    def release(self, scope: str) -> None:
        """Free all graphs and buffers of a scope and the pool of its name, for example when an engine is replaced.
        Memory kept for copies of states goes too: those of the next engine may be much smaller."""
        for name in [name for name in self._graphs if name.partition(".")[0] == scope]:
            self._graphs.pop(name).clear()
        self._pools.pop(scope, None)
        for buffer in self.buffers(scope):
            del self._buffers[buffer.name]
            siblings = self._by_storage[storage_key(buffer.tensor)]
            siblings.remove(buffer)
            if not siblings:
                del self._by_storage[storage_key(buffer.tensor)]
        self._recycler = Recycler()

    def synchronize(self) -> None:
        """Wait until the device is idle. Never needed between replays."""
        self._backend.synchronize()

    def _check_free(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise BufferMisuse(f"the name of a buffer is {name!r}; text is needed, its scope before the first dot")
        if name in self._buffers:
            raise BufferMisuse(f"buffer {name!r} exists already; names are unique in a context")

    def _register(self, name: str, tensor: Tensor, role: Role, live: Whole | Prefix) -> Buffer:
        if self._backend.capturing:
            raise CaptureError(f"{name}: declared inside a step; declare buffers before the capture")
        buffer = Buffer(name, tensor, role, live)
        self._buffers[name] = buffer
        self._by_storage.setdefault(storage_key(tensor), []).append(buffer)
        return buffer


class _Guarded:
    """A backend that knows when a capture is in progress, and which switches are on in it."""

    def __init__(self, inner: Backend, switches: frozenset[Switch]) -> None:
        self._inner, self._switches = inner, switches
        self.device = inner.device
        self.describe = inner.describe
        self.new_stream = inner.new_stream
        self.pool = inner.pool
        self.synchronize = inner.synchronize
        self.fixed = inner.fixed
        self.capturing = False

    def capture(self, fn: Callable[[], object], pool: object, owner_of: OwnerOf, preserve: bool) -> Recording:
        with self._flagged(), switched(self._switches):
            return self._inner.capture(fn, pool, owner_of, preserve)

    @contextmanager
    def _flagged(self) -> Iterator[None]:
        if self.capturing:
            raise CaptureError("a step may not capture another step")
        self.capturing = True
        try:
            yield
        finally:
            self.capturing = False
