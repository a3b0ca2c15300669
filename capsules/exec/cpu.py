"""The cpu backend: a step is traced once into a static graph over the same buffers."""

from collections.abc import Callable

import torch
from torch import Tensor

from capsules.exec.buffer import Buffer
from capsules.exec.recorder import OwnerOf, Tape, record
from capsules.exec.sync import HostStream, Stream


class CpuVariant:
    """Replays a tape: the same operations on the same addresses in the same order."""

    def __init__(self, tape: Tape) -> None:
        self._run = tape.run
        self._constants: tuple[Tensor, ...] = tape.constants
        self.touched: tuple[Buffer, ...] = tape.touched

    def replay(self) -> None:
        with torch.no_grad():
            self._run(*self._constants)


class CpuBackend:
    """The host's processor. Work is finished when its call returns, so streams are only names."""

    device = torch.device("cpu")

    def describe(self) -> str:
        return f"cpu {torch.backends.cpu.get_cpu_capability()}"

    def stream(self, name: str, priority: int) -> Stream:
        return HostStream(name)

    def pool(self) -> object:
        return None

    def capture(self, fn: Callable[[], None], pool: object, owner_of: OwnerOf, preserve: bool) -> CpuVariant:
        return CpuVariant(record(fn, owner_of, preserve))

    def synchronize(self) -> None:
        return None
