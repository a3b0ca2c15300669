"""Runs a step once, records every operation, and refuses whatever a CUDA capture would refuse.

The recorder sits below autograd as a dispatch mode, so it sees the operations that really run. A tensor that no
recorded operation produced must lie inside a declared buffer: this is how the closure of a graph is known.
Kernels of our own enter through `torch.library`, so they are seen like any other operation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from capsules.exec.buffer import Buffer, Role
from capsules.exec.errors import CaptureError
from capsules.exec.tape import Tape

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
_COPIES = ("aten::_to_copy", "aten::copy_")
_INDEXING = ("aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_")


@dataclass(frozen=True)
class Recording:
    """The result of one run of a step: a replay of it, and the STATE and IO buffers that it touched. `tape`: the tape
    behind the replay, unless a device captured it by itself."""

    replay: Callable[[], None]
    touched: tuple[Buffer, ...]
    tape: Tape | None = None


def record(fn: Callable[[], object], owner_of: OwnerOf, preserve: bool) -> Recording:
    """Run `fn` once. Raises CaptureError. With `preserve`, touched buffers are restored, also after an error."""
    tape = Tape()
    touched = _run(fn, tape, owner_of, preserve)
    return Recording(tape.replayable(), touched, tape)


def watch(fn: Callable[[], object], owner_of: OwnerOf, preserve: bool) -> tuple[Buffer, ...]:
    """`record` for a device that captures by itself: the same rules, and the touched buffers, but no tape.

    A tape would keep every temporary of the step alive at once: 50 GB of unpacked matrices for a packed 4B model.
    """
    return _run(fn, _Met(), owner_of, preserve)


def _run(fn: Callable[[], object], tape: "Tape | _Met", owner_of: OwnerOf, preserve: bool) -> tuple[Buffer, ...]:
    with torch.no_grad(), _HostReads(), _Recorder(tape, owner_of, preserve) as recorder:
        fn()
    return tuple(recorder.touched.values())


class _Met:
    """Replaces a tape: remembers which tensors the step has met so far, without keeping them alive."""

    def __init__(self) -> None:
        self._tensors = WeakTensorKeyDictionary()

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self._tensors

    def constant(self, tensor: Tensor) -> None:
        self._tensors[tensor] = None

    def append_call(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Raises CaptureError for transfers between processor and device."""
        given = [tensor for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)]
        made = [tensor for tensor in tree_leaves(result) if isinstance(tensor, Tensor)]
        name = func._schema.name
        if any(not tensor.is_cpu for tensor in (*given, *made)):
            if name in _COPIES and any(tensor.is_cpu for tensor in made):
                raise CaptureError(_host_read(name))
            if any(tensor.is_cpu and (tensor.dim() or name in _COPIES) for tensor in given):
                raise CaptureError(
                    f"the step hands {name} a tensor on the processor, which a capture cannot copy. Make it on the "
                    "device (device=...) or adopt it as a buffer beforehand."
                )
        for tensor in made:
            self._tensors[tensor] = None


class _Recorder(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Prevents torch from importing its compiler, which costs seconds at start and is not used here."""
        return False

    def __init__(self, tape: Tape | _Met, owner_of: OwnerOf, preserve: bool) -> None:
        super().__init__()
        self._tape = tape
        self.touched: dict[str, Buffer] = {}
        self._owner_of = owner_of
        self._preserve = preserve
        self._before: dict[str, Tensor] = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for name, before in self._before.items():
            self.touched[name].tensor.copy_(before)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        _refuse(func, args, kwargs)
        for tensor in tree_leaves((args, kwargs)):
            if isinstance(tensor, Tensor) and tensor not in self._tape:
                self._enter(tensor)
        result = func(*args, **kwargs)
        self._tape.append_call(func, args, kwargs, result)
        return result

    def _enter(self, tensor: Tensor) -> None:
        """The step uses memory that existed before it."""
        buffer = self._owner_of(tensor)
        if buffer is None and tensor.numel() > 0:
            raise CaptureError(
                f"the step reads a tensor {list(tensor.shape)} {tensor.dtype} that is neither made inside the step nor "
                "part of a declared buffer. Declare it (ctx.buffer) or adopt it (ctx.adopt) before the capture."
            )
        if buffer is not None and buffer.role in (Role.STATE, Role.IO) and buffer.name not in self.touched:
            self.touched[buffer.name] = buffer
            if self._preserve:
                self._before[buffer.name] = buffer.tensor.clone()
        self._tape.constant(tensor)


class _HostReads(TorchFunctionMode):
    """Refuses ways of reading a tensor on the host that never reach the dispatcher."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _HOST_READS:
            raise CaptureError(_host_read(_HOST_READS[func]))
        return func(*args, **(kwargs or {}))


def _refuse(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    name = func._schema.name
    if name in ("aten::_local_scalar_dense", "aten::equal"):
        raise CaptureError(_host_read(name))
    if name in _MOVES:
        raise CaptureError(f"the step calls {name}, which may move a buffer; write in place with copy_ instead")
    if name in ("aten::lift_fresh", "aten::lift_fresh_copy"):
        raise CaptureError("the step makes a tensor from host data (torch.tensor); adopt it as a buffer beforehand")
    if torch.Tag.nondeterministic_seeded in func.tags and _argument(func, "dropout_p", args, kwargs) != 0.0:
        raise CaptureError(
            f"the step draws from torch's hidden random state ({name}); derive randomness from a seed and a step buffer"
        )
    if name in _INDEXING:
        if any(t.dtype in (torch.bool, torch.uint8) for t in tree_leaves(args[1]) if isinstance(t, Tensor)):
            raise CaptureError(f"the step indexes with a mask ({name}), so its shape depends on data; use torch.where")
    elif torch.Tag.dynamic_output_shape in func.tags or torch.Tag.data_dependent_output in func.tags:
        raise CaptureError(f"the output shape of {name} depends on data; a graph has fixed shapes")


def _argument(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value that `func` gets for `name`, including its default; None if it has no such argument."""
    for index, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return args[index] if index < len(args) else kwargs.get(name, argument.default_value)
    return None


def _host_read(how: str) -> str:
    return f"the step reads a tensor on the host ({how}); the value would be burnt into the graph. Keep it in a buffer."
