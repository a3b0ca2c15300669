"""Functions that the model may call: declared by type hints, called with a timeout, answered with text.

    @registry.tool
    def roll_dice(sides: int = 6) -> str:
        "Roll one die."

The name, the first sentence of the docstring and the hints become what the model is told. A plain function runs on a
worker thread, a coroutine function on the loop. Whatever goes wrong becomes a sentence for the model, never a raise.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from assistant.base.errors import ToolError
from assistant.events import ToolSpec
from assistant.tools.answers import AnswerError
from assistant.tools.kept import Kept, Slots

TIMEOUT_S = 8.0
FAILED = "Sorry, that did not work."
"""Said of a failure whose reason is for the model and not for the person."""

Effect = Literal["undo", "start_over", "switch_persona"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool says to the model, and what it wants done to the talk once the reply is out. `before`: what it
    changed of what the talk's tools keep, as it was before."""

    text: str
    effect: Effect | None = None
    argument: str = ""
    say: str | None = None
    """What it comes to as a sentence for the person, for a mind that cannot find one."""
    before: Slots = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """One callable function and what the model is told of it."""

    spec: ToolSpec
    function: Callable[..., Any]
    timeout_s: float = TIMEOUT_S


class ToolRegistry:
    """Tools by name, and what they keep. Copies are cheap: each talk may add its own."""

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

    def tool(self, function: Callable[..., Any], *, timeout_s: float = TIMEOUT_S) -> Callable[..., Any]:
        """Declare a function as a tool; usable as a decorator. Raises ToolError if its hints say too little."""
        tool = Tool(describe(function), function, timeout_s)
        if tool.spec.name in self._tools:
            raise ToolError(f"two tools are called {tool.spec.name!r}; rename one")
        self._tools[tool.spec.name] = tool
        return function

    async def call(self, name: str, arguments: str) -> ToolResult:
        """Run a tool with JSON arguments. Every failure comes back as words that the model can pass on."""
        mark = self.kept.mark()
        result = await self._call(name, arguments)
        return replace(result, before=self.kept.changed(mark))

    async def _call(self, name: str, arguments: str) -> ToolResult:
        tool = self._tools.get(name)
        if tool is None:
            return _failure(f"there is no tool {name!r}; known: {', '.join(self._tools) or 'none'}")
        try:
            values = read_arguments(tool.spec, arguments)
        except ToolError as error:
            return _failure(str(error))
        try:
            async with asyncio.timeout(tool.timeout_s):
                if inspect.iscoroutinefunction(tool.function):
                    result = await tool.function(**values)
                else:
                    result = await asyncio.to_thread(tool.function, **values)
        except AnswerError as error:
            return _failure(str(error), sentence(str(error)))
        except TimeoutError:
            return _failure(f"{name} did not answer within {tool.timeout_s:g} s")
        except Exception as error:
            return _failure(f"{name} failed: {error}")
        if isinstance(result, ToolResult):
            return result
        return ToolResult(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))


def describe(function: Callable[..., Any]) -> ToolSpec:
    """What the model is told of a function. Every parameter needs a hint that JSON can carry."""
    name = function.__name__
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(f"tool {name!r}: *args and **kwargs cannot be described to a model")
        if parameter.name not in hints:
            raise ToolError(f"tool {name!r}: parameter {parameter.name!r} has no type hint")
        properties[parameter.name] = _schema(hints[parameter.name], name)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    doc = inspect.getdoc(function) or ""
    schema = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(name, " ".join(doc.split("\n\n")[0].split()), schema)


def read_arguments(spec: ToolSpec, arguments: str) -> dict[str, Any]:
    """JSON arguments, checked against the declared names and types; numbers written as text are read as numbers."""
    try:
        values = json.loads(arguments or "{}")
    except (json.JSONDecodeError, RecursionError) as error:
        raise ToolError(f"the arguments of {spec.name} are not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ToolError(f"the arguments of {spec.name} must be a JSON object, not {type(values).__name__}")
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    unknown = [key for key in values if key not in properties]
    if unknown:
        raise ToolError(f"{spec.name} takes {', '.join(properties) or 'nothing'}; it got {', '.join(unknown)}")
    missing = [key for key in spec.parameters.get("required", ()) if key not in values]
    if missing:
        raise ToolError(f"{spec.name} needs {', '.join(missing)}")
    return {key: _coerced(spec.name, key, value, properties[key]) for key, value in values.items()}


def _failure(reason: str, say: str = FAILED) -> ToolResult:
    return ToolResult(json.dumps({"error": reason}, ensure_ascii=False), say=say)


def sentence(text: str) -> str:
    """`nothing can be divided by zero` → Nothing can be divided by zero."""
    return f"{text[:1].upper()}{text[1:]}."


_KINDS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _schema(hint: Any, tool: str) -> dict[str, Any]:
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


def _coerced(tool: str, key: str, value: Any, schema: Mapping[str, Any]) -> Any:
    kind = schema["type"]
    try:
        if kind == "integer" and not isinstance(value, bool):
            return int(value) if not isinstance(value, float) or value.is_integer() else _refuse(tool, key, kind, value)
        if kind == "number" and not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        return _refuse(tool, key, kind, value)
    if kind == "string":
        text = value if isinstance(value, str) else json.dumps(value)
        return text if text in schema.get("enum", (text,)) else _refuse(tool, key, str(schema["enum"]), value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "array" and isinstance(value, list):
        return [_coerced(tool, key, element, schema["items"]) for element in value]
    return _refuse(tool, key, kind, value)


def _refuse(tool: str, key: str, kind: str, value: Any) -> Any:
    raise ToolError(f"{tool}: {key} must be {kind}, not {value!r}")
