"""Functions that the model may call: declared by type hints, called with a timeout, answered with text.

    @registry.tool
    def roll_dice(sides: int = 6) -> str:
        "Roll one die."

The name, the first sentence of the docstring and the type hints are what the model sees. A plain function runs on a
worker thread, a coroutine function on the loop. Any failure becomes a sentence for the model and is never raised.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, NoReturn, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from assistant.base.errors import ToolError
from assistant.events import ToolSpec
from assistant.tools.errors import AnswerError
from assistant.tools.kept import Kept
from assistant.tools.rows import Changes

TIMEOUT_S = 8.0
FAILED = "Sorry, that did not work."
"""Spoken after a failure whose reason is meant for the model and not for the person."""

Function: TypeAlias = Callable[..., object]
Declared = TypeVar("Declared", bound=Function)
Effect = Literal["undo", "start_over", "switch_persona", "forget"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer to the model, and what it wants done to the talk once the reply is out. `changes`: the
    stored rows that it changed, before and after."""

    text: str
    effect: Effect | None = None
    argument: str = ""
    say: str | None = None
    """The result as a sentence for the person, for a model that cannot phrase one."""
    changes: Changes = field(default_factory=dict)
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One callable function and its declaration for the model. `reads`: it only looks something up and has no visible
    effect, so it may run before it is certain that its answer is needed."""

    spec: ToolSpec
    function: Function
    timeout_s: float = TIMEOUT_S
    reads: bool = False
    server: str = ""
    """The MCP server that it belongs to; empty: it runs here."""
    there: str = ""
    """Its name at its server, which another server may use too, and which may have any letters."""
    ask: bool = False
    """The person is asked before it runs."""
    asking: str = ""
    """In these words; empty: by the names of the server and the tool."""
    label: str = ""
    """The name that a client gave the server when it asked for it."""
    reader: Callable[[ToolSpec, str], dict[str, object]] | None = None
    """Checks and reads the JSON arguments, or raises ToolError; None: `read_arguments`."""
    questions: Mapping[str, str] = field(default_factory=dict)
    """Put to the person where the model leaves a parameter out or empty."""

    def __call__(self, *values: object, **named: object) -> object:
        """Call the function as if it were not declared."""
        return self.function(*values, **named)


class ToolRegistry:
    """Tools by name, and the storage behind them. Copies are cheap: each talk may add its own."""

    def __init__(self, tools: Iterable[Tool] = (), kept: Kept | None = None) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self.kept = kept if kept is not None else Kept()

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __iter__(self) -> typing.Iterator[Tool]:
        return iter(self._tools.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def tool(
        self,
        function: Declared,
        *,
        timeout_s: float = TIMEOUT_S,
        reads: bool = False,
        questions: Mapping[str, str] = MappingProxyType({}),
        asking: str = "",
    ) -> Declared:
        """Declare a function as a tool; usable as a decorator. Raises ToolError if its type hints say too little."""
        tool = Tool(
            describe(function), function, timeout_s, reads, ask=bool(asking), asking=asking, questions=questions
        )
        if tool.spec.name in self._tools:
            raise ToolError(f"two tools are called {tool.spec.name!r}; rename one")
        self._tools[tool.spec.name] = tool
        return function

    async def call(self, name: str, arguments: str) -> ToolResult:
        """Run a tool with JSON arguments. Every failure comes back as words that the model can pass on."""
        self.kept.collect_changes()
        result = await self._call_tool(name, arguments)
        return replace(result, changes=self.kept.collect_changes())

    async def _call_tool(self, name: str, arguments: str) -> ToolResult:
        tool = self._tools.get(name)
        if tool is None:
            return _failure(f"there is no tool {name!r}; known: {', '.join(self._tools) or 'none'}")
        missing, question = _question(tool, arguments)
        try:
            values = (tool.reader or read_arguments)(tool.spec, arguments)
        except ToolError as error:
            return _failure(str(error), question)
        if missing:
            return _failure(f"{name} needs {missing}", question)
        try:
            async with asyncio.timeout(tool.timeout_s):
                if inspect.iscoroutinefunction(tool.function):
                    result: object = await tool.function(**values)
                else:
                    result = await asyncio.to_thread(tool.function, **values)
            if isinstance(result, ToolResult):
                return result
            return ToolResult(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))
        except AnswerError as error:
            return _failure(str(error), error.say)
        except TimeoutError:
            return _failure(f"{name} did not answer within {tool.timeout_s:g} s")
        except (Exception, SystemExit) as error:  # a person's own tool may call code that calls sys.exit
            return _failure(f"{name} failed: {error}")


def describe(function: Function) -> ToolSpec:
    """The declaration of a function for the model. Every parameter needs a type hint that JSON can express."""
    name = function.__name__
    hints = get_type_hints(function)
    properties: dict[str, Schema] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(f"tool {name!r}: *args and **kwargs cannot be described to a model")
        if parameter.name not in hints:
            raise ToolError(
                f"tool {name!r}: parameter {parameter.name!r} has no type hint; write `{parameter.name}: str`"
            )
        properties[parameter.name] = _schema(hints[parameter.name], name)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    doc = inspect.getdoc(function) or ""
    schema = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(name, " ".join(doc.split("\n\n")[0].split()), schema)


def read_arguments(spec: ToolSpec, arguments: str) -> dict[str, object]:
    """JSON arguments, checked against the declared names and types; numbers written as text are converted. Models write
    null for what they leave out."""
    values = {key: value for key, value in json_object(spec, arguments).items() if value is not None}
    properties = cast(Mapping[str, Schema], spec.parameters.get("properties", {}))  # as `describe` wrote it
    unknown = [key for key in values if key not in properties]
    if unknown:
        raise ToolError(f"{spec.name} takes {', '.join(properties) or 'nothing'}; it got {', '.join(unknown)}")
    missing = [key for key in cast(Sequence[str], spec.parameters.get("required", ())) if key not in values]
    if missing:
        raise ToolError(f"{spec.name} needs {', '.join(missing)}")
    return {key: _coerced(spec.name, key, value, properties[key]) for key, value in values.items()}


def _question(tool: Tool, arguments: str) -> tuple[str, str]:
    """The first parameter with a question that is left out or empty, and the question; else "", and that it failed."""
    try:
        values = json_object(tool.spec, arguments)
    except ToolError:
        return "", FAILED
    given = {key for key, value in values.items() if value is not None and str(value).strip()}
    return next(((key, asked) for key, asked in tool.questions.items() if key not in given), ("", FAILED))


def json_object(spec: ToolSpec, arguments: str) -> dict[str, object]:
    """The arguments of a call. Raises ToolError if they are not a JSON object."""
    try:
        values = json.loads(arguments or "{}")
    except (json.JSONDecodeError, RecursionError) as error:
        raise ToolError(f"the arguments of {spec.name} are not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ToolError(f"the arguments of {spec.name} must be a JSON object, not {type(values).__name__}")
    return values


def _failure(reason: str, say: str = FAILED) -> ToolResult:
    return ToolResult(json.dumps({"error": reason}, ensure_ascii=False), say=say, failed=True)


Schema: TypeAlias = Mapping[str, object]
"""The subset of JSON schema that `_schema` writes; `_coerced` reads nothing else."""
_KINDS: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _schema(hint: object, tool: str) -> Schema:
    if hint in _KINDS:
        return {"type": _KINDS[hint]}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal and all(isinstance(value, str) for value in inner):
        return {"type": "string", "enum": list(inner)}
    if origin is list and len(inner) == 1:
        return {"type": "array", "items": _schema(inner[0], tool)}
    if origin in (Union, types.UnionType):
        kept = [part for part in inner if part is not type(None)]
        if len(kept) == 1:
            return _schema(kept[0], tool)
    raise ToolError(f"tool {tool!r}: {hint!r} cannot be told to a model; use str, int, float, bool, Literal or list")


def _coerced(tool: str, key: str, value: object, schema: Schema) -> object:
    match schema, value:
        case {"type": "integer"}, float() if value.is_integer():
            return int(value)
        case {"type": "integer"}, int() | str() if not isinstance(value, bool):
            return _number(tool, key, value, int)
        case {"type": "number"}, int() | float() | str() if not isinstance(value, bool):
            return _number(tool, key, value, float)
        case {"type": "string", **rest}, _:
            text = value if isinstance(value, str) else json.dumps(value)
            allowed = rest.get("enum", [text])
            return text if isinstance(allowed, list) and text in allowed else _refuse(tool, key, str(allowed), value)
        case {"type": "boolean"}, bool():
            return value
        case {"type": "array", "items": dict(items)}, list():
            return [_coerced(tool, key, element, items) for element in value]
    _refuse(tool, key, str(schema["type"]), value)


def _number(tool: str, key: str, value: float | str, kind: type[int] | type[float]) -> float:
    try:
        return kind(value)
    except (ValueError, OverflowError):
        _refuse(tool, key, {int: "integer", float: "number"}[kind], value)


def _refuse(tool: str, key: str, kind: str, value: object) -> NoReturn:
    raise ToolError(f"{tool}: {key} must be {kind}, not {value!r}")
