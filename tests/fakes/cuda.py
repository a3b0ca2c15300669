"""A CUDA device without a card: every tensor is a fake one on "cuda:0", so only shapes, types and devices are computed.

Steps run under the rules of a capture. What a card would refuse shows here: a tensor left on the processor, a read on
the host, a shape that depends on data, memory that no buffer owns, an operand that our kernels do not take.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from capsules import ExecContext
from capsules.exec.backend import Backend
from capsules.exec.recorder import OwnerOf, Recording, watch
from capsules.exec.switches import PROVEN, Switch
from capsules.exec.sync import HostStream, Stream
from tests.fakes.launches import LaunchCount


class FakeCudaBackend:
    device = torch.device("cuda:0")

    def __init__(self) -> None:
        self.launches: list[int] = []
        """Of each capture, in order."""

    def describe(self) -> str:
        return "fake cuda"

    def new_stream(self, name: str, priority: int) -> Stream:
        return HostStream(name)

    def pool(self) -> object:
        return None

    def capture(self, fn: Callable[[], object], pool: object, owner_of: OwnerOf, preserve: bool) -> Recording:
        counted = LaunchCount()

        def step() -> None:
            with counted:
                fn()

        touched = watch(step, owner_of, preserve)
        self.launches.append(counted.by_operator.total())
        return Recording(lambda: None, touched)

    def synchronize(self) -> None:
        return None

    def fixed(self) -> None:
        return None


@contextmanager
def fake_cuda(
    backend: Backend | None = None, switches: frozenset[Switch] = PROVEN
) -> Iterator[ExecContext]:
    """A context on the fake device, over a backend for "cuda:0"; all tensors that are made inside are fake."""
    with pytest.MonkeyPatch.context() as patch, FakeTensorMode():
        patch.setattr(FakeTensor, "data_ptr", _address, raising=False)
        for name, method in _PAST_THE_GUARD.items():
            patch.setattr(FakeTensor, name, method, raising=False)
        patch.setattr("capsules.exec.context.storage_key", _allocation)
        patch.setattr("capsules.nn.kernels._BUILDABLE", True)
        patch.setattr("capsules.exec.context.backend_for", lambda device, kernels: backend or FakeCudaBackend())
        yield ExecContext("cuda", switches=switches)


def _index(tensor: Tensor, key: Any) -> Tensor:
    keys = key if isinstance(key, tuple) else (key,)
    skipped = tensor.dim() - sum(part is not None and part is not Ellipsis for part in keys)
    axis = 0
    for part in keys:
        if part is Ellipsis:
            axis += skipped
        elif part is None:
            tensor, axis = torch.ops.aten.unsqueeze.default(tensor, axis), axis + 1
        elif isinstance(part, int):
            tensor = torch.ops.aten.select.int(tensor, axis, part)
        elif isinstance(part, slice):
            tensor = torch.ops.aten.slice.Tensor(tensor, axis, part.start, part.stop, part.step or 1)
            axis += 1
        else:
            chosen = part if isinstance(part, Tensor) else torch.tensor(part)
            return torch.ops.aten.index.Tensor(tensor, [*[None] * axis, chosen])
    return tensor


_PAST_THE_GUARD: dict[str, Callable[..., Tensor]] = {  # methods that ask a torch without CUDA for the device
    "copy_": lambda x, source, non_blocking=False: torch.ops.aten.copy_.default(x, source, non_blocking),
    "contiguous": lambda x: (
        torch.ops.aten.clone.default(x, memory_format=torch.contiguous_format) if not x.is_contiguous() else x
    ),
    "__invert__": lambda x: torch.ops.aten.bitwise_not.default(x),  # noqa: PLW0108 (an operator is no method)
    "__getitem__": _index,
}


def _allocation(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _address(tensor: Tensor) -> int:
    """Allocations lie far apart."""
    return (_allocation(tensor) << 44) + tensor.storage_offset() * tensor.element_size()
