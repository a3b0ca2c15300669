"""Reads a tool call that a model wrote as text, in any of the forms that models use.

Pure. The forms are JSON (`{"name": …, "arguments": {…}}` and its relatives, alone, in a list or in a fence), XML-like
(`<function=NAME><parameter=KEY>VALUE</parameter></function>`, `<invoke name="NAME">`, `<NAME><KEY>VALUE</KEY></NAME>`,
`NAME <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`), `NAME{…}`, and a call as Python writes it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

Schemas: TypeAlias = "Mapping[str, Mapping[str, object]]"
"""The JSON schema of the parameters of each declared tool, by its name."""

NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name", "action", "recipient_name")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "action_input", "tool_input", "params", "kwargs")
INSIDE_KEYS = ("tool_calls", "tool_call", "function_call", "function", "tool_uses")
"""Keys under which the call itself stands."""
_FENCE = re.compile(r"```[\w-]*\s*(.*?)\s*(?:```)?", re.DOTALL)
_FUNCTION = re.compile(r"<function=\"?([^<>\s\"]+)\"?>(.*?)(?:</function>|\Z)", re.DOTALL)
_INVOKE = re.compile(
    r"<(?:invoke|function|tool)\s+name=[\"']([^\"']+)[\"'][^<>]*>(.*?)(?:</(?:invoke|function|tool)>|\Z)", re.DOTALL
)
_PARAMETER = re.compile(
    r"<(?:parameter|param|arg)(?:=|\s+name=)[\"']?([^<>\"']+)[\"']?[^<>]*>\n?(.*?)\n?</(?:parameter|param|arg)>",
    re.DOTALL,
)
_PAIR = re.compile(r"<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_CHILD = re.compile(r"<([\w-]+)>\n?(.*?)\n?</\1>", re.DOTALL)
_NAMES = re.compile(rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*:\s*[\"']([^\"']+)[\"']")
_SEPARATED = re.compile(r"^function<[^<>]*>")
_NAMED = re.compile(
    r"(?:functions?\.)?([\w.-]+?)(?::\d+)?\s*(?:\[ARGS\]|<[^<>]*>|```\w*)?\s*(\{.*\})\s*(?:```)?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call that was read whole; `arguments` is the text of a JSON object."""

    name: str
    arguments: str


def read_calls(text: str, schemas: Schemas) -> list[WrittenCall]:
    """The calls in a text that is marked as one; none if it cannot be read."""
    body = _SEPARATED.sub("", text.strip())
    if (fenced := _FENCE.fullmatch(body)) is not None:
        body = fenced[1]
    for found in (_of_json(body, schemas), _of_tags(body, schemas), _of_python(body)):
        if found:
            return [WrittenCall(declared_name(one.name, schemas), one.arguments) for one in found]
    return []


def calls_in_json(text: str, schemas: Schemas) -> list[WrittenCall]:
    """The calls in JSON that nothing marks as calls: none unless each names a declared tool or has arguments."""
    value = _loaded(text, whole=False)
    found = _calls(value, schemas)
    sure = all(declared_name(call.name, schemas) in schemas for call in found) or _has_arguments(value)
    return [WrittenCall(declared_name(one.name, schemas), one.arguments) for one in found] if sure else []


def calls_in_python(text: str, schemas: Schemas) -> list[WrittenCall]:
    """The calls in `[tool(key="value")]`, if each names a declared tool."""
    found = _of_python(text)
    return found if all(call.name in schemas for call in found) else []


def names_tool(text: str, schemas: Schemas) -> bool:
    """Whether it was meant as a call of a declared tool, read or not."""
    return any(name in schemas for name in _NAMES.findall(text))


def declared_name(name: str, schemas: Schemas) -> str:
    """`functions.look` → look, where `look` is what was declared."""
    bare = name.rpartition(".")[2]
    return bare if name not in schemas and bare in schemas else name


def _of_json(body: str, schemas: Schemas) -> list[WrittenCall]:
    if named := _NAMED.fullmatch(body):
        arguments = read_arguments(named[2])
        return [] if arguments is None else [WrittenCall(named[1], arguments)]
    found: list[WrittenCall] = []
    for part in (body, *body.split("\n")):
        calls = _calls(_loaded(part, whole=True), schemas)
        if calls and part == body:
            return calls
        found += calls
    return found


def _loaded(text: str, whole: bool) -> object:
    """JSON, also as Python writes it, and with the last braces forgotten where `whole` says that no more would have
    come; None if it is neither."""
    for more in ("", "}", "}}") if whole else ("",):
        with suppress(ValueError, RecursionError):
            return json.loads(text + more, strict=False)
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return ast.literal_eval(text.strip() + more)
    return None


def _calls(value: object, schemas: Schemas) -> list[WrittenCall]:
    if isinstance(value, list | tuple):
        each = [_calls(one, schemas) for one in value]
        return [call for calls in each for call in calls] if all(each) else []
    if not isinstance(value, dict):
        return []
    for key in INSIDE_KEYS:
        if isinstance(value.get(key), dict | list):
            return _calls(value[key], schemas)
    name = next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str) and value[key].strip()), None)
    if name is None:
        return []
    given: object = next((value[key] for key in ARGUMENT_KEYS if value.get(key) is not None), {})
    arguments = given if isinstance(given, dict) else _object(given) if isinstance(given, str) else None
    if arguments is None:
        return []
    return [WrittenCall(name.strip(), json.dumps(arguments, ensure_ascii=False))]


def _has_arguments(value: object) -> bool:
    if isinstance(value, list):
        return all(_has_arguments(one) for one in value)
    if not isinstance(value, dict):
        return False
    inside = next((value[key] for key in INSIDE_KEYS if isinstance(value.get(key), dict | list)), None)
    return _has_arguments(inside) if inside is not None else any(key in value for key in ARGUMENT_KEYS[:3])


def read_arguments(text: str) -> str | None:
    """Arguments as the text of a JSON object, also where they stand in a JSON text once more; None if they cannot be
    read."""
    value = _object(text)
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _object(text: str) -> dict[str, object] | None:
    value = _loaded(text, whole=False) if text.strip() else {}
    if isinstance(value, str):
        value = _loaded(value, whole=False)
    return value if isinstance(value, dict) else None


def _of_tags(body: str, schemas: Schemas) -> list[WrittenCall]:
    found = [(name, _PARAMETER.findall(inner), inner) for name, inner in _FUNCTION.findall(body)]
    found = found or [(name, _PARAMETER.findall(inner), inner) for name, inner in _INVOKE.findall(body)]
    if not found and (pairs := _PAIR.findall(body)):
        found = [(body[: body.index("<arg_key>")].strip(), pairs, "")]
    if not found:
        found = [(name, _CHILD.findall(inner), inner) for name, inner in _CHILD.findall(body) if name in schemas]
    calls = []
    for name, pairs, inner in found:
        arguments = {key.strip(): _typed(value, schemas.get(name), key.strip()) for key, value in pairs}
        if not pairs and inner.strip():
            whole = _object(inner)
            if whole is None:
                return []
            arguments = whole
        calls.append(WrittenCall(name.strip(), json.dumps(arguments, ensure_ascii=False)))
    return [call for call in calls if re.fullmatch(r"[\w.:-]+", call.name)]


def _typed(text: str, schema: Mapping[str, object] | None, key: str) -> object:
    """A value as its declared type, or the text itself."""
    properties = (schema or {}).get("properties")
    declared = properties.get(key) if isinstance(properties, Mapping) else None
    kind = declared.get("type") if isinstance(declared, Mapping) else "string"
    if kind != "string":
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _of_python(body: str) -> list[WrittenCall]:
    try:
        tree = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes: Sequence[ast.expr] = tree.elts if isinstance(tree, ast.List) else [tree]
    calls = []
    for outer in nodes:
        printed = isinstance(outer, ast.Call) and ast.unparse(outer.func) == "print" and len(outer.args) == 1
        node = outer.args[0] if printed and isinstance(outer, ast.Call) else outer
        if not isinstance(node, ast.Call) or node.args:
            return []
        try:
            arguments = {one.arg: ast.literal_eval(one.value) for one in node.keywords if one.arg is not None}
            calls.append(WrittenCall(ast.unparse(node.func).rpartition(".")[2], json.dumps(arguments)))
        except (ValueError, TypeError, RecursionError):
            return []
    return calls
