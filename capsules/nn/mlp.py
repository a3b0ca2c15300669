"""The gated feed-forward block."""

from torch import Tensor
from torch.nn import functional as F

from capsules.nn.linear import Weight, linear


def gated_mlp(x: Tensor, gate_up: Weight, down: Weight) -> Tensor:
    """down(silu(gate(x)) · up(x)).

    x        [..., h]
    gate_up  [2I, h]: the gate's rows, then the rows of up, as one matrix so that x is read once
    down     [h, I]
    returns  [..., h]
    """
    gate, up = linear(x, gate_up).chunk(2, -1)
    return linear(F.silu(gate) * up, down)
