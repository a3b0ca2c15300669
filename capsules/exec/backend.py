"""The duties of a backend: memory, streams, and turning a step into something that replays."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch

from capsules.exec.errors import ContractMisuse
from capsules.exec.fixed import FixedMemory
from capsules.exec.recorder import OwnerOf, Recording
from capsules.exec.sync import Stream


class Backend(Protocol):
    """A device that captures steps."""

    device: torch.device

    def describe(self) -> str:
        """Names the deployment; part of every fingerprint."""

    def new_stream(self, name: str, priority: int) -> Stream: ...

    def pool(self) -> object:
        """Memory for the temporaries of graphs that never replay at the same time."""

    def capture(self, fn: Callable[[], object], pool: object, owner_of: OwnerOf, preserve: bool) -> Recording: ...

    def synchronize(self) -> None: ...

    def fixed(self) -> FixedMemory | None:
        """Memory that can be let go at fixed addresses; None if all of it can."""


def backend_for(device: str, kernels: Path | None = None) -> Backend:
    """`cpu`, `cuda` or `cuda:N`. Raises ContractMisuse with those that exist, CompileError if `kernels` cannot be
    built."""
    try:
        wanted = torch.device(device if isinstance(device, str) else "")
    except RuntimeError:
        raise ContractMisuse(f"device is {device!r}; 'cpu' and 'cuda' (or 'cuda:N') are supported") from None
    if kernels is not None and not isinstance(kernels, Path):
        raise ContractMisuse(f"kernels is {kernels!r}; the Path of a folder, or None, is needed")
    if wanted.type == "cpu":
        from capsules.exec.cpu import CpuBackend

        return CpuBackend(kernels)
    if kernels is not None:
        raise ContractMisuse(f"device {device!r}: C++ kernels are for 'cpu'; a GPU has kernels of its own")
    if wanted.type == "cuda":
        from capsules.exec.cuda import CudaBackend

        return CudaBackend(wanted)
    raise ContractMisuse(f"device is {device!r}; 'cpu' and 'cuda' (or 'cuda:N') are supported")
