"""The cuda backend: a step becomes a CUDA graph, after one recorded run that warms up and checks the same rules."""

from collections.abc import Callable
from typing import cast

import torch

from capsules.exec.recorder import OwnerOf, Recording, record
from capsules.exec.sync import CudaStream, Stream


class CudaBackend:
    """One NVIDIA GPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)

    def describe(self) -> str:
        return f"cuda {torch.cuda.get_device_name(self.device)} torch {torch.__version__}"

    def stream(self, name: str, priority: int) -> Stream:
        return CudaStream(name, self.device, priority)

    def pool(self) -> object:
        return torch.cuda.graph_pool_handle()

    def capture(self, fn: Callable[[], object], pool: object, owner_of: OwnerOf, preserve: bool) -> Recording:
        torch.cuda.synchronize(self.device)
        side = torch.cuda.Stream(self.device)
        with torch.cuda.stream(side):
            touched = record(fn, owner_of, preserve).touched  # compiles and autotunes whatever the step launches
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        handle = cast("torch.cuda._POOL_HANDLE | None", pool)
        with torch.no_grad(), torch.cuda.graph(graph, handle, side, capture_error_mode="thread_local"):
            fn()
        return Recording(graph.replay, touched)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.device)
