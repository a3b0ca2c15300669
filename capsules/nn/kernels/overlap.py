"""Kernels of a decoded step that begin while the one before them ends (programmatic dependent launch, sm_90 and later).

Each lets the next one begin as soon as all its programs have begun, and waits for the end of the one before it ahead of
the first byte that this one may have written or still reads. Only weights, which nobody writes, are read before that.
So every kernel that is launched this way sees all that came before it, as if there were no overlap.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from capsules.exec.switches import Switch, is_on


@triton.jit
def begin_next(PDL: tl.constexpr):
    if PDL:
        gdc_launch_dependents()


@triton.jit
def await_last(PDL: tl.constexpr):
    if PDL:
        gdc_wait()


def overlapped(x: Tensor) -> dict[str, bool]:
    """How a kernel over `x` is launched, and its PDL."""
    on = is_on(Switch.PDL) and can_overlap(x.device)
    return {"PDL": True, "launch_pdl": True} if on else {"PDL": False}


@cache
def can_overlap(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)
