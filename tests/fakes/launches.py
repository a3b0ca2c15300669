"""How many kernels a step launches on a GPU, counted by its operators on the fake one.

An operator is one launch; views, shapes and memory are none. LAUNCHES lists the exceptions: our own by their launchers,
torch's as its sources read. A graph has a node for each, so a profile on a card can put these figures right.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_NONE = ("prim::device", "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::detach",
         "aten::new_empty_strided", "aten::_unsafe_view", "aten::_reshape_alias")  # fmt: skip
LAUNCHES = {
    "aten::argmax": 2,  # across blocks, then across their results
    "aten::baddbmm": 2,  # the bias is copied to where the sums go
    "aten::constant_pad_nd": 2,  # filled, then copied
    "aten::linalg_solve_triangular": 7,  # copies of both sides, the pointers of a batch, the solution
    "capsules::decode_attention": 2,
    "llm_engine::delta_step": 3,
    "llm_engine::delta_row": 2,
    "llm_engine::delta_rows": 4,
}
"""Of one call, where it is more than one."""
_TOPK, _TOPK_LONG, _LONG = 4, 5, 4096
"""A top-k: selected, gathered, sorted, copied; a long row is searched by several blocks first."""


class LaunchCount(TorchDispatchMode):
    """Counts what runs inside, by operator."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self) -> None:
        super().__init__()
        self.by_operator: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func._schema.name
        if not func.is_view and name not in _NONE:
            launches = LAUNCHES.get(name, 1)
            if name == "aten::topk":
                launches = _TOPK_LONG if args[0].shape[-1] > _LONG else _TOPK
            self.by_operator[name] += launches
        return func(*args, **(kwargs or {}))


def count(fn: Callable[[], object]) -> Counter[str]:
    with torch.no_grad(), LaunchCount() as counted:
        fn()
    return counted.by_operator
