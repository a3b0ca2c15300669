"""The optimiser of the recipes: matrices by Muon, the rest by AdamW.

Muon (Jordan et al. 2024) is momentum, followed by the nearest orthogonal matrix by Newton-Schulz.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def orthogonal(matrix: Tensor, steps: int = 5, dtype: torch.dtype = torch.float32) -> Tensor:
    """Approximately the nearest (semi-)orthogonal matrix, by the quintic Newton-Schulz iteration in `dtype`."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = (matrix / (matrix.norm() + 1e-7)).to(dtype)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return (x.T if tall else x).to(matrix.dtype)


class Muon:
    """`matrices` [out, in] at `matrix_rate`, all `others` at `other_rate`; both times the factor of each step."""

    def __init__(
        self,
        matrices: Sequence[Tensor],
        others: Sequence[Tensor],
        matrix_rate: float,
        other_rate: float,
        *,
        momentum: float = 0.95,
        weight_decay: float = 0.02,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._dtype = dtype
        self._matrices, self._others = list(matrices), list(others)
        self._matrix_rate, self._other_rate = matrix_rate, other_rate
        self._momentum, self._weight_decay = momentum, weight_decay
        self._momenta = [torch.zeros_like(p) for p in matrices]
        self._adam = torch.optim.AdamW(self._others, other_rate, betas=(0.9, 0.95), weight_decay=0.0)

    def step(self, factor: float) -> None:
        """Apply the gradients at `factor` of the full rate, and clear them."""
        for group in self._adam.param_groups:
            group["lr"] = self._other_rate * factor
        torch.nn.utils.clip_grad_norm_(self._others, 1.0)
        self._adam.step()
        rate = self._matrix_rate * factor
        with torch.no_grad():
            for p, m in zip(self._matrices, self._momenta, strict=True):
                assert p.grad is not None
                m.lerp_(p.grad, 1 - self._momentum)
                update = orthogonal(p.grad.lerp(m, self._momentum), dtype=self._dtype)
                p.mul_(1 - rate * self._weight_decay)
                p.add_(update, alpha=-rate * max(1.0, p.shape[0] / p.shape[1]) ** 0.5)
        for p in (*self._matrices, *self._others):
            p.grad = None

    def state(self) -> dict[str, Any]:
        """The state that `load` restores."""
        return {"momenta": self._momenta, "adam": self._adam.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        for m, held in zip(self._momenta, state["momenta"], strict=True):
            m.copy_(held)
        self._adam.load_state_dict(state["adam"])
