"""Rotary position embedding, full or over the first part of a head, with positions read on the device."""

import torch
from torch import Tensor

from capsules.exec.switches import Switch
from capsules.nn import kernels
from capsules.nn.norm import rms_norm


def rope_table(positions: Tensor, dims: int, theta: float, stretch: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles at `positions`.

    positions  [...] integers; a graph computes them from its position buffer
    dims       how many dimensions of each head are rotated; even
    stretch    [dims/2] float32, divisors of the frequencies, of models made for longer contexts than they began with
    returns    cos, sin, each [..., dims] float32: the dims/2 frequencies theta^(-2j/dims), twice over
    Angles are float32: at position 262,144 they are still exact to about 0.02 rad in the fastest dimension.
    """
    return turns(positions[..., None], dims, theta, stretch)


def rope_row(
    position: Tensor, shift: Tensor, dims: int, theta: float, stretch: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`rope_table` of one row at position [1] + shift [1]."""
    if stretch is None and (dims // 2).bit_count() == 1 and kernels.switched_on(position, Switch.JOINED):
        from capsules.nn.kernels.angles import angles

        cos, sin = angles(position[None], shift, dims, theta)
        return cos, sin
    return rope_table(position + shift, dims, theta, stretch)


def turns(positions: Tensor, dims: int, theta: float, stretch: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`rope_table` with a position per frequency: [..., dims/2] integers, or [..., 1] if all share one."""
    exponent = torch.arange(0, dims, 2, device=positions.device, dtype=torch.float32) / dims
    frequencies = torch.pow(theta, -exponent)
    angles = positions.float() * (frequencies if stretch is None else frequencies / stretch)
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def norm_rotate(x: Tensor, weight: Tensor, eps: float, cos: Tensor, sin: Tensor) -> Tensor:
    """`rms_norm` of every head, then `rotate`: both engines apply it to queries and keys.

    x       [..., T, H, D]; weight [D]; cos, sin [..., T, dims]
    """
    if kernels.fits(x) and x.dim() == 3 and x.stride(-1) == 1 and x.shape[-1].bit_count() == 1:
        from capsules.nn.kernels.norm import norm_rotate as fused

        return fused(x, weight, eps, cos, sin)
    host = kernels.host(x)
    if host is not None and x.dim() == 3 and x.stride(-1) == 1 and weight.dtype == torch.float32:
        return host.norm_rotate(x, weight, eps, cos, sin)
    return rotate(rms_norm(x, weight, eps), cos, sin)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the first `dims` dimensions of every head; the rest pass through.

    x         [..., T, H, D]
    cos, sin  [..., T, dims] from `rope_table`
    returns   [..., T, H, D] in x's type
    Dimension j is paired with j + dims/2 (the NeoX order of the published checkpoints), not with its neighbour.
    """
    dims = cos.shape[-1]
    turned, kept = x[..., :dims].float(), x[..., dims:]
    low, high = turned.chunk(2, -1)
    cos, sin = cos[..., None, :], sin[..., None, :]
    turned = (turned * cos + torch.cat((-high, low), -1) * sin).to(x.dtype)
    return torch.cat((turned, kept), -1) if kept.shape[-1] else turned
