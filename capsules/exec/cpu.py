"""The cpu backend: a step is traced once into a static graph over the same buffers."""

from collections.abc import Callable

import torch

from capsules.exec.recorder import OwnerOf, Recording, record
from capsules.exec.sync import HostStream, Stream


class CpuBackend:
    """The host's processor. Work is finished when its call returns, so streams are only names."""

    device = torch.device("cpu")

    def describe(self) -> str:
        return f"cpu {torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}"

    def stream(self, name: str, priority: int) -> Stream:
        return HostStream(name)

    def pool(self) -> object:
        return None

    def capture(self, fn: Callable[[], object], pool: object, owner_of: OwnerOf, preserve: bool) -> Recording:
        return record(fn, owner_of, preserve)

    def synchronize(self) -> None:
        return None
