"""The experts of a mixture: a router asks a few of them for each row, and their answers are added by its shares.

Source: transformers' `Qwen3_5MoeSparseMoeBlock`. E experts of m inner values each, k of them for a row; h is the hidden
size. Every row is computed by itself, in the same order of sums whatever its neighbours are and however many, and
nothing has a shape that depends on data. If two experts are equally likely, the one with the lower number comes first.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.nn import Weight, kernels
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.nn.panels import PanelWeight


@dataclass(frozen=True)
class ExpertWeights:
    """The experts of one layer, without the shared one."""

    router: Tensor  # [E + 1, h]; the last row is the gate of the shared expert
    gate_up: Weight  # [E · 2m, h]; of each expert the gate's rows, then those of up
    down: Weight  # [E · h, m]


def add_experts(y: Tensor, x: Tensor, w: ExpertWeights, top: int) -> Tensor:
    """The answer of a mixture.

    y        [..., h], the shared expert's answer
    x        [..., h], the rows that are asked
    top      k
    returns  [..., h]: y by its gate, and the answers of the k likeliest experts by their shares, which add up to 1
    """
    rows, shared = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1])
    if kernels.fits(x) and (made := _on_card(rows, shared, w, top)) is not None:
        return made.view(x.shape)
    scores, host = _scores(rows, w.router), kernels.panels(x)
    if host is not None and isinstance(w.gate_up, PanelWeight) and isinstance(w.down, PanelWeight):
        packed = w.gate_up.values, w.gate_up.scale, w.down.values, w.down.scale
        joined: Tensor = host.experts(rows, shared, scores, top, *packed)
        return joined.view(x.shape)
    ids, shares = choose(scores, top)
    experts = scores.shape[1] - 1
    gate, up = product(rows, w.gate_up, ids, experts).to(x.dtype).chunk(2, -1)
    answers = product(F.silu(gate) * up, w.down, ids, experts)
    total = shared.float() * shares[:, top:]
    for j in range(top):
        total = total + answers[:, j] * shares[:, j : j + 1]
    return total.to(x.dtype).view(x.shape)


def _on_card(x: Tensor, y: Tensor, w: ExpertWeights, top: int) -> Tensor | None:
    """By kernels, or None where they do not read the form of the experts."""
    from llm_engine import experts_kernel as card

    experts = w.router.shape[0] - 1
    opening, closing = _for_card(w.gate_up), _for_card(w.down)
    if opening is None or closing is None or not all(card.fits_stack(s, experts) for s in (opening, closing)):
        return None
    scores = card.asked(x, w.router, w.router, None, 1, 1, None, 1, 1, False)
    ids, shares = card.choose(scores, top)
    inner = card.asked(x, *opening, ids, top, experts, True)
    return card.join(y, card.asked(inner, *closing, ids, 1, experts, False), shares)


def _for_card(stack: Weight) -> tuple[Tensor, Tensor, Tensor | None, int, int] | None:
    """Values, scales and shifts, and the rows and columns that share one."""
    if isinstance(stack, Tensor):
        return stack, stack, None, 1, 1
    shift = stack.shift if isinstance(stack, Int4Weight) else None
    return (stack.values, stack.scale, shift, *stack.block) if isinstance(stack, Fp8Weight | Int4Weight) else None


def choose(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Experts and shares: [T, E + 1] float32 to ids [T, k] int64, the likeliest first, and shares [T, k + 1] float32.

    The softmax over all experts, divided by the sum of the chosen ones, is the softmax over these. The last share is
    the shared expert's.
    """
    likely, ids = scores[:, :-1].sort(stable=True, dim=-1, descending=True)
    return ids[:, :top], torch.cat((likely[:, :top].softmax(-1), scores[:, -1:].sigmoid()), -1)


def product(x: Tensor, stack: Weight, ids: Tensor, matrices: int) -> Tensor:
    """Each row times the matrices that it asked for.

    x        [T, I], the same for all that a row asks, or [T, k, I]
    stack    [matrices · O, I], one matrix below the other
    ids      [T, k] int64
    returns  [T, k, O] float32
    """
    if isinstance(stack, Tensor):
        held, extents = [stack], []
    elif isinstance(stack, PanelWeight):
        held, extents = [stack.values, stack.scale], list(stack.shape)
    elif isinstance(stack, Fp8Weight):
        held, extents = [stack.values, stack.scale], list(stack.block)
    else:
        assert isinstance(stack, Int4Weight)
        held, extents = [stack.packed, stack.scale, *([] if stack.shift is None else [stack.shift])], []
    if x.is_cpu and not torch.is_grad_enabled():
        made: Tensor = torch.ops.llm_experts.product(x, held, extents, ids, matrices)
        return made
    return _product(x, held, extents, ids, matrices)


def _product(x: Tensor, held: list[Tensor], extents: list[int], ids: Tensor, matrices: int) -> Tensor:
    wide = x.float().view(x.shape[0], -1, x.shape[-1], 1).expand(-1, ids.shape[1], -1, -1)
    return torch.stack([_chosen(held, extents, ids[t], matrices) @ wide[t] for t in range(len(x))]).squeeze(-1)


def _chosen(held: list[Tensor], extents: list[int], ids: Tensor, matrices: int) -> Tensor:
    """The matrices ids [k] of a stack in plain float32: [k, O, I]."""
    chosen = [one.unflatten(0, (matrices, -1))[ids].flatten(0, 1) for one in held]
    if len(held) == 1:
        plain = chosen[0].float()
    elif chosen[0].dtype == torch.uint8:
        shape = torch.Size((extents[0] // matrices * len(ids), extents[1]))
        plain = PanelWeight(chosen[0], chosen[1], shape).unpack(torch.float32)
    elif chosen[0].dtype == torch.int32:
        plain = Int4Weight(*chosen).unpack(torch.float32)
    else:
        plain = Fp8Weight(chosen[0], chosen[1], (extents[0], extents[1])).unpack(torch.float32)
    return plain.unflatten(0, (len(ids), -1))


# One operator, so a recording of a step holds no unpacked matrix.
_library = torch.library.Library("llm_experts", "DEF")
_library.define("product(Tensor x, Tensor[] held, int[] extents, Tensor ids, int matrices) -> Tensor")
_library.impl("product", _product, "CPU")


def _scores(x: Tensor, router: Tensor) -> Tensor:
    """[T, h] to [T, E + 1] float32."""
    host = kernels.host(x)
    if host is not None and x.dtype == torch.bfloat16:
        made: Tensor = host.scores(x, router)
        return made
    return product(x, router, torch.zeros(len(x), 1, dtype=torch.int64, device=x.device), 1)[:, 0]
