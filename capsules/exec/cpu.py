"""The cpu backend: a step is traced once into a static graph over the same buffers."""

from collections.abc import Callable
from pathlib import Path

import torch

from capsules.exec import native
from capsules.exec.recorder import OwnerOf, Recording, record
from capsules.exec.sync import HostStream, Stream


class CpuBackend:
    """The host's processor. Work is finished when its call returns, so streams are only names.

    kernels  folder for C++ kernels, which steps captured here then use; None leaves all to torch
    Raises CompileError if there is no compiler for them.
    """

    device = torch.device("cpu")

    def __init__(self, kernels: Path | None = None) -> None:
        self._kernels = kernels
        self._suffix = "" if kernels is None else f" kernels {native.toolchain()}"

    def describe(self) -> str:
        return f"cpu {torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}{self._suffix}"

    def new_stream(self, name: str, priority: int) -> Stream:
        return HostStream(name)

    def pool(self) -> object:
        return None

    def capture(self, fn: Callable[[], object], pool: object, owner_of: OwnerOf, preserve: bool) -> Recording:
        with native.using(self._kernels):
            return record(fn, owner_of, preserve)

    def synchronize(self) -> None:
        return None

    def fixed(self) -> None:
        return None
