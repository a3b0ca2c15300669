"""Runs a step once, writes down every operation, and refuses what a CUDA capture would refuse.

The recorder sits below autograd as a dispatch mode, so it sees the operations that really run. A tensor that no
recorded operation produced must lie inside a declared buffer: that is what makes the closure of a graph known.
Kernels of our own enter through `torch.library`, so they are seen like any other operation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from capsules.errors import CaptureError
from capsules.exec.buffer import Buffer, Role

OwnerOf = Callable[[Tensor], Buffer | None]

_HOST_READS = {
    Tensor.tolist: "tolist()",
    Tensor.numpy: "numpy()",
    Tensor.__array__: "numpy.asarray()",
    Tensor.item: "item()",
    Tensor.__bool__: "bool()",
    Tensor.__int__: "int()",
    Tensor.__float__: "float()",
    Tensor.__index__: "use as an index",
}
_MOVES = ("aten::set_", "aten::resize_", "aten::resize_as_")


@dataclass(frozen=True)
class Tape:
    """What one run of a step did: a static graph over the constants, and the mutable buffers that it touched."""

    run: Callable[..., object]
    constants: tuple[Tensor, ...]
    touched: tuple[Buffer, ...]


class Recorder(TorchDispatchMode):
    """Records the operations of one step. `preserve` puts every touched STATE and IO buffer back afterwards."""

    def __init__(self, owner_of: OwnerOf, preserve: bool) -> None:
        super().__init__()
        self._owner_of = owner_of
        self._preserve = preserve
        self._graph = fx.Graph()
        self._nodes: dict[int, fx.Node] = {}
        self._alive: list[Tensor] = []  # an id may not be reused while the tape is written
        self._constants: list[Tensor] = []
        self._touched: dict[str, Buffer] = {}
        self._before: dict[str, Tensor] = {}
        self._placeholders_end: fx.Node | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for name, before in self._before.items():
            self._touched[name].tensor.copy_(before)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        _refuse(func, args, kwargs)
        node_args, node_kwargs = tree_map_only(Tensor, self._node_of, (args, kwargs))
        result = func(*args, **kwargs)
        node = self._graph.call_function(func, node_args, node_kwargs)
        if isinstance(result, Tensor):
            self._bind(result, node)
        else:
            for index, part in enumerate(result if isinstance(result, (tuple, list)) else ()):
                if isinstance(part, Tensor):
                    self._bind(part, self._graph.call_function(_getitem, (node, index)))
        return result

    def tape(self) -> Tape:
        """The finished graph. Its values are freed after their last use."""
        self._graph.output(None)
        module = fx.GraphModule(torch.nn.Module(), self._graph)
        tape = Tape(module.forward, tuple(self._constants), tuple(self._touched.values()))
        self._alive.clear()
        self._nodes.clear()
        return tape

    def _bind(self, tensor: Tensor, node: fx.Node) -> None:
        self._nodes[id(tensor)] = node
        self._alive.append(tensor)

    def _node_of(self, tensor: Tensor) -> fx.Node:
        node = self._nodes.get(id(tensor))
        if node is not None:
            return node
        buffer = self._owner_of(tensor)
        if buffer is None and tensor.numel() > 0:
            raise CaptureError(
                f"the step reads a tensor {list(tensor.shape)} {tensor.dtype} that is neither made inside the step nor "
                "part of a declared buffer. Declare it (ctx.buffer) or adopt it (ctx.adopt) before the capture."
            )
        if buffer is not None and buffer.role in (Role.STATE, Role.IO) and buffer.name not in self._touched:
            self._touched[buffer.name] = buffer
            if self._preserve:
                self._before[buffer.name] = buffer.tensor.clone()
        # Placeholders must precede all calls: insert after the previous one.
        anchor = self._placeholders_end
        with self._graph.inserting_after(anchor) if anchor is not None else self._graph.inserting_before():
            node = self._graph.placeholder(f"c{len(self._constants)}")
        self._placeholders_end = node
        self._constants.append(tensor)
        self._bind(tensor, node)
        return node


class HostReads(TorchFunctionMode):
    """Refuses the ways of reading a tensor on the host that never reach the dispatcher."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _HOST_READS:
            raise CaptureError(_host_read(_HOST_READS[func]))
        return func(*args, **(kwargs or {}))


def record(fn: Callable[[], None], owner_of: OwnerOf, preserve: bool) -> Tape:
    """Run `fn` once and return its tape. Raises CaptureError, with all touched buffers put back if `preserve`."""
    with torch.no_grad(), HostReads(), Recorder(owner_of, preserve) as recorder:
        fn()
    return recorder.tape()


def _getitem(values: Any, index: int) -> Any:
    return values[index]


def _host_read(how: str) -> str:
    return f"the step reads a tensor on the host ({how}); the value would be burnt into the graph. Keep it in a buffer."


def _refuse(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    name = func._schema.name
    if name in ("aten::_local_scalar_dense", "aten::equal"):
        raise CaptureError(_host_read(name))
    if name in _MOVES:
        raise CaptureError(f"the step calls {name}, which may move a buffer; write in place with copy_ instead")
    if name in ("aten::lift_fresh", "aten::lift_fresh_copy"):
        raise CaptureError("the step makes a tensor from host data (torch.tensor); adopt it as a buffer beforehand")
    if torch.Tag.nondeterministic_seeded in func.tags and name != "aten::scaled_dot_product_attention":
        raise CaptureError(
            f"the step draws from torch's hidden random state ({name}); derive randomness from a seed and a step buffer"
        )
    if name in ("aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_"):
        if any(t.dtype in (torch.bool, torch.uint8) for t in tree_leaves(args[1]) if isinstance(t, Tensor)):
            raise CaptureError(f"the step indexes with a mask ({name}), so its shape depends on data; use torch.where")
    elif torch.Tag.dynamic_output_shape in func.tags or torch.Tag.data_dependent_output in func.tags:
        raise CaptureError(f"the output shape of {name} depends on data; a graph has fixed shapes")
