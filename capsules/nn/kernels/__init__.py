"""Triton kernels for one decoded row: the functions of `capsules.nn` with fewer reads and fewer launches on a GPU.

Each is a `torch.library` operator, so a recorder sees it, with a launcher that runs it in Triton's interpreter as
well. All are deterministic: fixed tiles, fixed order of sums, no atomics, and no result depends on a capacity.
`capsules.nn` chooses them by device and shape; nothing else imports this package.

    gemv(x [T, I], w [O, I])                                   -> [T, O]      read once for 64 rows
    packed_row(x [1, I], w packed, scale)                      -> [1, O]
    gemv_fp8(x [T, I], values [O, I], scale, rows, columns)    -> [T, O]      read once for 64 rows
    gemv_int4(x [T, I], packed [O, I / 8], scale [O, groups])  -> [T, O]      read once for 64 rows
    rms_norm(x [..., N], weight [N], eps)                      -> [..., N]
    norm_rotate(x [T, H, D], weight [D], eps, cos, sin [T, R]) -> [T, H, D]
    swiglu(gate_up [T, 2I])                                    -> [T, I]
    decode_attention(q [H, D], k, v [S, G, D], position [1])   -> [H, D]
    chunk_attention(q [T, H, D], k, v [S, G, D], first [1])    -> [T, H, D]
    heads(qkv [T, (H + 2G) D], ..., keys, values [S, G, D])    -> q [T, H, D]
    add_norm(x [..., N], y [..., N], weight [N], eps)          -> x + y, its norm
    angles(axes [1 or 3, T], shift [1], dims, theta)           -> cos, sin [T, dims]
    draw(values [R, C], ids [R, C], ...)                       -> [R]
    penalise(logits [V], ...)                                  -> [V]

    angles      rotary tables
    attention   decode_attention
    chunk_attention  attention of several rows that stops at their positions
    draw        penalties over the vocabulary, and what follows the top-k of a draw
    gemv        gemv, gemv_fp8, gemv_int4
    heads       from one projection to queries and to rows of the cache
    norm        rms_norm, norm_rotate, swiglu
    overlap     kernels that begin while the one before them ends
    packed_row  one row times a packed matrix without rounding a weight
    residual    a residual sum with the norm that reads it
    host.cpp    the same for a CPU, built by `capsules.exec.native`
    panels.cpp  products with matrices of eight and four bits for a CPU
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsules.exec import cuda, native
from capsules.exec.switches import Switch, is_on

MAX_PLAIN_ROWS = 1  # for a plain matrix: with more rows the library is as fast
MAX_PACKED_ROWS = 1024  # for a packed one; for more the plain matrix is made, which costs 29 bytes a weight
_BUILDABLE = not cuda.kernel_trouble()


def fits(x: Tensor) -> bool:
    """Whether the kernels can be used: a CUDA tensor, no autograd, Triton and its tools installed."""
    return x.is_cuda and _BUILDABLE and not torch.is_grad_enabled()


def switched_on(x: Tensor, switch: Switch) -> bool:
    """Whether the kernels of a switch may stand in."""
    return is_on(switch) and fits(x)


def host(x: Tensor) -> Any:
    """The same for a CPU in C++ (`host.cpp`; any number of rows, products in bfloat16), or None if switched off."""
    return _built(x, "capsules_host", "host.cpp")


def panels(x: Tensor) -> Any:
    """Products with matrices in panels on a CPU in C++ (`panels.cpp`; any number of rows), or None."""
    return _built(x, "capsules_packed", "panels.cpp")


def _built(x: Tensor, name: str, source: str) -> Any:
    if x.is_cuda or torch.is_grad_enabled() or x.dtype not in (torch.float32, torch.bfloat16):
        return None
    return native.operators(name, Path(__file__).with_name(source))
