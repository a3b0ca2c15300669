"""Triton kernels for one decoded row: what `capsules.nn` computes, with fewer reads and fewer launches on a GPU.

Each is a `torch.library` operator, so a recorder sees it, with a launcher that runs it in Triton's interpreter as
well. All are deterministic: fixed tiles, fixed order of sums, no atomics, and no result depends on a capacity.
`capsules.nn` chooses them by device and shape; nothing else imports this package.

    gemv(x [T, I], w [O, I])                                   -> [T, O]      T up to 64
    packed_row(x [1, I], w packed, scale)                      -> [1, O]
    gemv_fp8(x [T, I], values [O, I], scale, rows, columns)    -> [T, O]      T up to 64
    gemv_int4(x [T, I], packed [O, I / 8], scale [O, groups])  -> [T, O]      T up to 64
    rms_norm(x [..., N], weight [N], eps)                      -> [..., N]
    norm_rotate(x [T, H, D], weight [D], eps, cos, sin [T, R]) -> [T, H, D]
    swiglu(gate_up [T, 2I])                                    -> [T, I]
    decode_attention(q [H, D], k, v [S, G, D], position [1])   -> [H, D]

    attention   decode_attention
    gemv        gemv, gemv_fp8, gemv_int4
    norm        rms_norm, norm_rotate, swiglu
    packed_row  one row times a packed matrix without rounding a weight
    host.cpp    the same for a CPU, built by `capsules.exec.native`
    panels.cpp  products with matrices of eight and four bits for a CPU
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsules.exec import cuda, native

MAX_PLAIN_ROWS = 1  # of a plain matrix: the library is as fast with more
MAX_PACKED_ROWS = 64  # of a packed one; more go through the plain matrix made of it
_BUILDABLE = not cuda.kernel_trouble()


def fits(x: Tensor) -> bool:
    """Whether the kernels may stand in: a CUDA tensor, no autograd, Triton and its tools installed."""
    return x.is_cuda and _BUILDABLE and not torch.is_grad_enabled()


def host(x: Tensor) -> Any:
    """The same for a CPU in C++ (`host.cpp`; any number of rows, products in bfloat16), or None where switched off."""
    return _built(x, "capsules_host", "host.cpp")


def panels(x: Tensor) -> Any:
    """Products with matrices in panels on a CPU in C++ (`panels.cpp`; any number of rows), or None."""
    return _built(x, "capsules_packed", "panels.cpp")


def _built(x: Tensor, name: str, source: str) -> Any:
    if x.is_cuda or torch.is_grad_enabled() or x.dtype not in (torch.float32, torch.bfloat16):
        return None
    return native.operators(name, Path(__file__).with_name(source))
