"""The cuda backend: a step becomes a CUDA graph, after one watched run that warms up and checks the same rules."""

import os
import shutil
import sys
import sysconfig
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch

from capsules.exec.errors import CaptureError, ContractMisuse
from capsules.exec.fixed import CudaPages, FixedMemory
from capsules.exec.recorder import OwnerOf, Recording, watch
from capsules.exec.sync import CudaStream, Stream

LEAST_DRIVERS = {"12": 525, "13": 580}
"""The oldest driver that a CUDA runtime takes, by its major version. CUDA release notes, minor versions."""
LEAST_CAPABILITY = (8, 0)  # Ampere: matrix units for bfloat16, and what Triton compiles for


class Pool:
    """Memory and a capture stream for graphs that never replay at the same time.

    torch allocates the workspace of cuBLAS per capture stream, and graphs hold its address, so pools share no stream.
    Destroying any graph frees the workspace of its stream (pytorch issue 193402), so the graphs of a pool go together.
    """

    def __init__(self, device: torch.device) -> None:
        self.handle = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream(device)
        self._graphs: list[torch.cuda.CUDAGraph] = []

    def keep_alive(self, graph: torch.cuda.CUDAGraph) -> Callable[[], None]:
        """A replay of the graph that also keeps the pool alive."""
        self._graphs.append(graph)
        return partial(self._replay, graph)

    def _replay(self, graph: torch.cuda.CUDAGraph) -> None:
        graph.replay()


class CudaBackend:
    """One NVIDIA GPU. Raises ContractMisuse if it cannot be used, saying what to do."""

    def __init__(self, device: torch.device) -> None:
        trouble = unusable()
        if trouble:
            raise ContractMisuse(f"device {str(device)!r}: {trouble}")
        self.device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        _exact()

    def describe(self) -> str:
        """Names Triton, whose kernels differ from torch's own in the order of sums."""
        kernels = "none" if kernel_trouble() else _triton_version()
        return f"cuda {torch.cuda.get_device_name(self.device)} torch {torch.__version__} triton {kernels}"

    def new_stream(self, name: str, priority: int) -> Stream:
        return CudaStream(name, self.device, priority)

    def pool(self) -> Pool:
        return Pool(self.device)

    def capture(self, fn: Callable[[], object], pool: object, owner_of: OwnerOf, preserve: bool) -> Recording:
        place = pool if isinstance(pool, Pool) else self.pool()
        torch.cuda.synchronize(self.device)
        try:
            with torch.cuda.stream(place.stream):
                touched = watch(fn, owner_of, preserve)  # compiles whatever the step launches, sets up the libraries
        finally:
            place.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with (
                torch.no_grad(),
                torch.cuda.graph(graph, place.handle, place.stream, capture_error_mode="thread_local"),
            ):
                fn()
        except RuntimeError as error:
            first = _first(error)
            if isinstance(first, torch.OutOfMemoryError):
                raise first from None
            raise CaptureError(f"the device refused the capture: {str(first).splitlines()[0]}") from error
        return Recording(place.keep_alive(graph), touched)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.device)

    def fixed(self) -> FixedMemory:
        return FixedMemory(CudaPages(self.device))


def unusable() -> str:
    """Why this process cannot use a GPU, and what to do about it; empty if it can."""
    plain = torch.__version__.partition("+")[0]
    if torch.version.cuda is None:
        if sys.platform == "win32":  # the plain command would install the same build again
            return "this torch is built without CUDA, the default on Windows; pytorch.org names the command for CUDA"
        return f"this torch is built without CUDA; install one with it: pip install --force-reinstall torch=={plain}"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        there = torch.cuda.is_available()
    if not there:
        why = str(told[-1].message).partition("(Triggered")[0].strip() if told else "no NVIDIA driver answers"
        least = LEAST_DRIVERS.get(torch.version.cuda.partition(".")[0])
        wanted = f"{least} or newer, for CUDA {torch.version.cuda}" if least else f"one for CUDA {torch.version.cuda}"
        return f"{why}. Install or update the NVIDIA driver; this torch needs {wanted}"
    found = torch.cuda.get_device_capability()
    if found < LEAST_CAPABILITY:
        name, has, needs = torch.cuda.get_device_name(), ".".join(map(str, found)), ".".join(map(str, LEAST_CAPABILITY))
        return f"{name} has compute capability {has}; {needs} (RTX 30) or newer is needed. Use the processor"
    return ""


def kernel_trouble() -> str:
    """Why Triton cannot build kernels on this machine, and what to do; empty if it can."""
    if find_spec("triton") is None:
        return "Triton is missing; it comes with the CUDA build of torch on Linux"
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return "Triton needs a C compiler: install gcc (apt install gcc, dnf install gcc), or set CC"
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        return "Triton needs Python's headers: apt install python3-dev, dnf install python3-devel"
    return ""


def _triton_version() -> str:
    """From the module itself: its package has other names on other systems."""
    import triton

    return str(triton.__version__)


def _exact() -> None:
    """Make equal calls give equal bits, with sums in full float32: no search for the fastest kernel, no TF32."""
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def _first(error: BaseException) -> BaseException:
    """The first thing that went wrong: the end of a capture only says that something did."""
    while error.__context__ is not None:
        error = error.__context__
    return error
