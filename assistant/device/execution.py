"""The process's execution context: its device, its kernels, and whether there is room for a model."""

from __future__ import annotations

import ctypes
import gc
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch

from assistant.base.errors import AssistantError
from assistant.base.memory import available_bytes
from capsules import ExecContext
from capsules.errors import CompileError
from capsules.exec.cuda import unusable
from capsules.exec.switches import ALL, PROVEN

T = TypeVar("T")
DEFAULT_THREADS = torch.get_num_threads()
"""Processor threads that the library takes by itself."""
DRIVER_PLACES = (Path("/dev/nvidiactl"), Path("/usr/lib/wsl/lib/libcuda.so.1"))  # Linux itself; Linux under Windows


def open_context(
    device: str, threads: int = 0, kernels: str = "torch", folder: Path | None = None, recordings: Path | None = None,
    untried: bool = False,
) -> ExecContext:  # fmt: skip
    """The process's one context. `device` auto: a GPU if there is one.

    kernels     on a processor: torch; or auto, compiled into `folder` if this machine is of the kind that they were
                measured on (Linux on x86-64) and has a compiler
    recordings  on a processor: the folder that stores recorded steps for the next start
    untried     on a GPU: every switch is on, not only those that a card has proven
    Raises AssistantError if the requested device is missing.
    """
    trouble = "" if device == "cpu" else unusable()
    if device == "cuda" and trouble:
        why = trouble if has_driver() else "there is no NVIDIA GPU on this machine, or its driver is not installed"
        raise AssistantError(f"--device cuda: {why}; --device cpu works on any machine")
    use_threads(threads)
    if device != "cpu" and not trouble:
        return ExecContext("cuda", switches=ALL if untried else PROVEN)
    measured = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    if kernels == "auto" and measured:
        with suppress(CompileError):
            return ExecContext("cpu", folder, recordings)
    return ExecContext("cpu", recordings=recordings)


def use_threads(count: int) -> None:
    """From now on; 0: what the library takes, whatever an earlier model took."""
    torch.set_num_threads(count or DEFAULT_THREADS)


def has_driver() -> bool:
    """Whether there is an NVIDIA driver, whether or not this torch can use it."""
    return any(place.exists() for place in DRIVER_PLACES)


def gpu_free_bytes() -> int:
    """Free memory of the GPU that `open_context` would take; 0 without one."""
    return 0 if unusable() else int(torch.cuda.mem_get_info()[0])


def give_back_memory() -> None:
    """Return memory that loading freed to the system: otherwise the C library keeps it (150 MB for the tiny models).
    Does nothing if the library is not glibc."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    give_back_freed()


def give_back_freed() -> None:
    """Return every thread's freed memory to the system: each thread has a heap, which otherwise only grows."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def load_on(ctx: ExecContext, load: Callable[..., T], *args: Any) -> T:
    """`load(*args)`. Raises AssistantError if the device has no room for it."""
    try:
        return load(*args)
    except torch.OutOfMemoryError as error:
        free, total = (size / 2**30 for size in torch.cuda.mem_get_info(ctx.device))
        raise AssistantError(
            f"the GPU's memory is full ({free:.1f} of {total:.1f} GiB free); close other programs that use it, lower "
            "--max-positions, choose a smaller --profile, or use --device cpu"
        ) from error
    except RuntimeError as error:
        if "DefaultCPUAllocator" not in str(error):  # torch has no type of its own for it
            raise
        free = available_bytes() / 2**30
        raise AssistantError(
            f"the memory is full ({free:.1f} GiB free); close other programs, lower --max-positions, or choose a "
            "smaller --profile"
        ) from error
