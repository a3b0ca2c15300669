"""Products with a weight matrix: uses the path through torch that is fastest for the given rows and device."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.exec.switches import Switch, is_on
from capsules.nn import kernels
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.nn.panels import PanelWeight, plain_linear


@runtime_checkable
class PackedWeight(Protocol):
    """A weight stored in fewer bits. `shape` is [O, I] of the matrix that it represents."""

    @property
    def shape(self) -> torch.Size: ...

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """The plain matrix [O, I]."""
        ...


Weight = Tensor | PackedWeight

_STRIP_VALUES = 1 << 19  # values of a matrix widened at a time: 2 MiB


def linear(x: Tensor, weight: Weight) -> Tensor:
    """x · weightᵀ.

    x        [..., T, I] or [I]
    weight   [O, I], or a packed form of it
    returns  [..., T, O] in x's type, sums in float32

    On a CPU one bfloat16 row runs at the speed of memory only through `mv`. Several rows are three times faster when
    both sides are first widened to float32 (most desktop CPUs have no bfloat16 instructions), strip by strip so that
    the wide copy stays in the cache. Float32 goes to the library, which is fast given the order of `empty_matrix`. The
    choice depends on shapes alone, so equal calls stay bit-equal.
    """
    rows = x.numel() // x.shape[-1]
    if isinstance(weight, Fp8Weight | Int4Weight) and kernels.fits(x) and rows <= kernels.MAX_PACKED_ROWS:
        return _packed(x.reshape(rows, -1), weight).view(*x.shape[:-1], weight.shape[0])
    if isinstance(weight, PanelWeight):
        return _panel_linear(x, weight)
    matrix = weight if isinstance(weight, Tensor) else weight.unpack(x.dtype)
    if kernels.fits(x) and rows <= kernels.MAX_PLAIN_ROWS:
        from capsules.nn.kernels.gemv import gemv

        return gemv(x.reshape(rows, -1), matrix).view(*x.shape[:-1], matrix.shape[0])
    if x.device.type != "cpu" or x.dtype != torch.bfloat16 or torch.is_grad_enabled():
        return F.linear(x, matrix)
    host = kernels.host(x)
    if host is not None:
        return host.linear(x.contiguous(), matrix)
    if rows == 1:
        return torch.mv(matrix, x.reshape(-1)).view(*x.shape[:-1], matrix.shape[0])
    wide = x.float()
    strips = matrix.split(max(64, _STRIP_VALUES // matrix.shape[1]))
    return torch.cat([F.linear(wide, strip.float()) for strip in strips], -1).to(x.dtype)


def gated_row(x: Tensor, gate_up: Weight) -> Tensor | None:
    """silu(gate(x)) · up(x) in one kernel: [..., I] of one row on a GPU, or None where it is not for that."""
    rows = x.numel() // x.shape[-1]
    if rows != 1 or not kernels.switched_on(x, Switch.JOINED):
        return None
    row = x.reshape(1, -1)
    if isinstance(gate_up, Fp8Weight | Int4Weight):
        if not is_on(Switch.PACKED) or not _grouped(gate_up):
            return None
        made = _packed_row(row, gate_up, paired=True)
    elif isinstance(gate_up, Tensor):
        from capsules.nn.kernels.gemv import gemv

        made = gemv(row, gate_up, paired=True)
    else:
        return None
    return made.view(*x.shape[:-1], -1)


def wide_linear(x: Tensor, weight: Weight) -> Tensor:
    """`linear` with sums that stay in float32 where a kernel can leave them so: [..., T, O] float32."""
    rows = x.numel() // x.shape[-1]
    if rows == 1 and kernels.switched_on(x, Switch.JOINED):
        row = x.reshape(1, -1)
        if isinstance(weight, Tensor):
            from capsules.nn.kernels.gemv import gemv

            return gemv(row, weight, wide=True).view(*x.shape[:-1], -1)
        if isinstance(weight, Fp8Weight | Int4Weight) and is_on(Switch.PACKED) and _grouped(weight):
            return _packed_row(row, weight, wide=True).view(*x.shape[:-1], -1)
    return linear(x, weight).float()


def _panel_linear(x: Tensor, weight: PanelWeight) -> Tensor:
    host = kernels.panels(x)
    if host is None:
        return plain_linear(x, weight)
    made: Tensor = host.linear(x.contiguous(), weight.values, weight.scale, weight.shape[0])
    return made


def embed(ids: Tensor, weight: Weight) -> Tensor:
    """Rows of a matrix [V, h]: ids [...] to [..., h]."""
    if isinstance(weight, Tensor):
        return F.embedding(ids, weight)
    assert isinstance(weight, PanelWeight | Fp8Weight), "four bits are for matrices of layers"
    return weight.rows(ids)


def _packed(x: Tensor, weight: Fp8Weight | Int4Weight) -> Tensor:
    """A few rows on a GPU, by a kernel that widens the weights as it reads them."""
    from capsules.nn.kernels.gemv import gemv_fp8, gemv_int4

    if x.shape[0] == 1 and is_on(Switch.PACKED) and _grouped(weight):
        return _packed_row(x, weight)
    if isinstance(weight, Fp8Weight):
        return gemv_fp8(x, weight.values, weight.scale, *weight.block)
    return gemv_int4(x, weight.packed, weight.scale, weight.shift)


def _grouped(weight: Fp8Weight | Int4Weight) -> bool:
    from capsules.nn.kernels.packed_row import takes

    return takes(weight.shape[1], weight.block)


def _packed_row(x: Tensor, weight: Fp8Weight | Int4Weight, paired: bool = False, wide: bool = False) -> Tensor:
    from capsules.nn.kernels.packed_row import packed_row

    shift = weight.shift if isinstance(weight, Int4Weight) else None
    return packed_row(x, weight.values, weight.scale, *weight.block, shift, paired, wide)


def empty_matrix(rows: int, columns: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Uninitialised memory for a weight [rows, columns], laid out in the order that `linear` reads fastest.

    On a CPU float32 lies column by column: products with one row then take half the time (2560 x 192: 120 us against
    258 with contiguous rows of 192, one thread of an EPYC), those with 24 rows a fifth less.
    """
    if device.type == "cpu" and dtype == torch.float32:
        return torch.empty(columns, rows, dtype=dtype, device=device).t()
    return torch.empty(rows, columns, dtype=dtype, device=device)
