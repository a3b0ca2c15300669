"""Stream and Event: order between replays, real on a GPU and trivial on a CPU."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch


class Event(Protocol):
    """A point in a stream's work."""

    def synchronize(self) -> None:
        """Block the host until the point is reached."""


class Stream(Protocol):
    """An ordered queue of work."""

    name: str

    def use(self) -> AbstractContextManager[object]:
        """Work issued inside goes to this stream."""

    def record(self) -> Event: ...

    def wait(self, event: Event) -> None:
        """Later work of this stream starts after `event`; the host does not wait."""

    def synchronize(self) -> None: ...


class HostEvent:
    """Already reached: on the CPU work is finished when its call returns."""

    def synchronize(self) -> None:
        return None


class HostStream:
    """The calling thread."""

    def __init__(self, name: str) -> None:
        self.name = name

    def use(self) -> AbstractContextManager[object]:
        return nullcontext()

    def record(self) -> Event:
        return HostEvent()

    def wait(self, event: Event) -> None:
        return None

    def synchronize(self) -> None:
        return None


class CudaStream:
    """A CUDA stream; a lower `priority` number runs first (as in CUDA)."""

    def __init__(self, name: str, device: torch.device, priority: int) -> None:
        self.name = name
        self._stream = torch.cuda.Stream(device=device, priority=priority)

    def use(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self._stream)

    def record(self) -> Event:
        return self._stream.record_event()

    def wait(self, event: Event) -> None:
        assert isinstance(event, torch.cuda.Event), "events of two backends do not mix"
        self._stream.wait_event(event)

    def synchronize(self) -> None:
        self._stream.synchronize()
