"""Tape: the operations of one run as a TorchScript graph, replayed by its C++ interpreter without Python.

A replay calls the same kernels that the recorded run called, in the same order, with fusion and reordering switched
off; it only skips Python, so it is bit-equal and faster than the plain call. The TorchScript interpreter also runs
without Python's interpreter lock, so an event loop in another thread continues meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

_C: Any = torch._C  # the graph-building interface is not in the type stubs
_MEMORY_FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2}  # c10::MemoryFormat


class Tape:
    """Written once, operation by operation; then `finish` makes it callable."""

    def __init__(self) -> None:
        self._graph = _C.Graph()
        self._values: dict[int, Any] = {}  # id of a live tensor → its value in the graph
        self._literals: dict[tuple[type, str], Any] = {}
        self._alive: list[Tensor] = []  # an id may not be reused while the tape is written
        self.constants: list[Tensor] = []
        self._whole = False

    @classmethod
    def from_text(cls, text: str, constants: Sequence[Tensor]) -> "Tape":
        """A finished tape from its text. Raises RuntimeError if it is not one, or calls operators that are missing
        here."""
        tape = cls()
        tape._graph, tape.constants, tape._whole = _C.parse_ir(text), list(constants), True
        if len(list(tape._graph.inputs())) != len(tape.constants):
            raise RuntimeError(f"a graph over {len(list(tape._graph.inputs()))} tensors got {len(tape.constants)}")
        return tape

    @property
    def text(self) -> str:
        """The graph in torch's own notation, floats in full."""
        return str(self._graph)

    def reads_back(self) -> bool:
        """Whether `read` rebuilds exactly this graph from the text, which the notation of some literals does not
        allow."""
        try:
            parsed = _C.parse_ir(self.text)
        except RuntimeError:
            return False
        return str(_C._jit_pass_canonicalize(parsed)) == str(_C._jit_pass_canonicalize(self._graph))

    def __contains__(self, tensor: Tensor) -> bool:
        return id(tensor) in self._values

    def constant(self, tensor: Tensor) -> None:
        """Memory that exists before the step. It is read and written at its address on every replay."""
        self._bind(tensor, self._graph.addInput(f"c{len(self.constants)}"))
        self.constants.append(tensor)

    def append_call(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Append one call of an operator overload whose tensor arguments are all known to the tape."""
        schema = func._schema
        given = dict(zip((a.name for a in schema.arguments), args, strict=False)) | dict(kwargs)
        inputs = [self._value(given.get(a.name, a.default_value), a.type) for a in schema.arguments]
        node = self._graph.create(schema.name, inputs, len(schema.returns))
        self._graph.insertNode(node)
        outputs = list(node.outputs())
        for output, declared in zip(outputs, schema.returns, strict=True):
            output.setType(declared.type)
        if isinstance(result, (tuple, list)) and len(outputs) == 1:  # one list of tensors
            node = self._graph.create("prim::ListUnpack", outputs, len(result))
            self._graph.insertNode(node)
            outputs = list(node.outputs())
        for tensor, output in zip(result if isinstance(result, (tuple, list)) else [result], outputs, strict=False):
            if isinstance(tensor, Tensor):
                self._bind(tensor, output)

    def replayable(self) -> Callable[[], None]:
        """A function that replays the tape. The tape keeps the constants alive and nothing else."""
        if not self._whole:
            self._graph.registerOutput(self._graph.insertConstant(None))
            self._whole = True
        run = _C._create_function_from_graph("tape", self._graph)
        constants = tuple(self.constants)
        self._values.clear()
        self._alive.clear()

        def replay() -> None:
            optimise = _C._get_graph_executor_optimize()
            _C._set_graph_executor_optimize(False)
            try:
                with torch.inference_mode():  # each operation then skips two layers of dispatch that serve autograd
                    run(*constants)
            finally:
                _C._set_graph_executor_optimize(optimise)

        return replay

    def _bind(self, tensor: Tensor, value: Any) -> None:
        self._values[id(tensor)] = value
        self._alive.append(tensor)

    def _value(self, argument: Any, declared: Any) -> Any:
        if isinstance(argument, Tensor):
            return self._values[id(argument)]
        if isinstance(argument, (list, tuple)):
            element = _element_type(declared)
            if not argument or any(isinstance(part, Tensor) for part in argument):
                parts = [self._value(part, element) for part in argument]
                return self._insert_list(parts, element)
            return self._literal(list(argument))
        if isinstance(argument, torch.memory_format):
            return self._literal(_MEMORY_FORMATS[argument])
        if isinstance(argument, bool) and isinstance(declared, _C.NumberType):
            return self._literal(int(argument))
        return self._literal(argument)

    def _literal(self, value: Any) -> Any:
        key = (type(value), repr(value))
        if key not in self._literals:
            self._literals[key] = self._graph.insertConstant(value)
        return self._literals[key]

    def _insert_list(self, parts: Sequence[Any], element: Any) -> Any:
        node = self._graph.create("prim::ListConstruct", list(parts), 1)
        self._graph.insertNode(node)
        output = node.output()
        output.setType(_C.ListType(element))
        return output


def _element_type(declared: Any) -> Any:
    while not isinstance(declared, _C.ListType):
        declared = declared.getElementType()
    return declared.getElementType()
