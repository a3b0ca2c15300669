"""RMS normalisation over the last axis, in float32 with one rounding at the end."""

import torch
from torch import Tensor

from capsules.exec.switches import Switch
from capsules.nn import kernels


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x²) + eps) · weight.

    x        [..., N] any float type
    weight   [N]; kept in float32 where its last bits matter
    returns  [..., N] in x's type; the product is taken in float32
    """
    if kernels.fits(x):
        from capsules.nn.kernels.norm import rms_norm as fused

        return fused(x.contiguous(), weight, eps)
    host = kernels.host(x)
    if host is not None and weight.dtype == torch.float32:
        return host.rms_norm(x.contiguous(), weight, eps)
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale * weight.float()).to(x.dtype)


def add_norm(x: Tensor, y: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x + y and its `rms_norm`: a residual stream with what the last block added. None adds nothing."""
    if y is None:
        return x, rms_norm(x, weight, eps)
    if kernels.switched_on(x, Switch.JOINED):
        from capsules.nn.kernels.residual import add_norm as joined

        total, normed = joined(x.contiguous(), y.contiguous(), weight, eps)
        return total, normed
    total = x + y
    return total, rms_norm(total, weight, eps)
