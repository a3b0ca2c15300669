"""The gated feed-forward block."""

from torch import Tensor
from torch.nn import functional as F

from capsules.nn import kernels
from capsules.nn.linear import Weight, gated_row, linear


def gated_mlp(x: Tensor, gate_up: Weight, down: Weight) -> Tensor:
    """down(silu(gate(x)) · up(x)).

    x        [..., h]
    gate_up  [2I, h]: the gate's rows, then the rows of up, as one matrix so that x is read once
    down     [h, I]
    returns  [..., h]
    """
    joined = gated_row(x, gate_up)
    if joined is not None:
        return linear(joined, down)
    both = linear(x, gate_up)
    if kernels.fits(both):
        from capsules.nn.kernels.norm import swiglu

        rows = both.numel() // both.shape[-1]
        return linear(swiglu(both.view(rows, -1)).view(*both.shape[:-1], -1), down)
    host = kernels.host(both)
    if host is not None:
        return linear(host.swiglu(both), down)
    gate, up = both.chunk(2, -1)
    return linear(F.silu(gate) * up, down)
