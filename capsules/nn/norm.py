"""RMS normalisation over the last axis, in float32 with one rounding at the end."""

import torch
from torch import Tensor

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
