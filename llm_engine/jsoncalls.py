"""Calls of models that write them as JSON or as Python, in tags or as the whole of a reply.

    <tool_call>\\n{"name": NAME, "arguments": {…}}\\n</tool_call>       Qwen3 and many more
    {"name": NAME, "parameters": {…}}                                Llama 3
    [{"name": NAME, "arguments": {…}}]                               Mistral, whose mark before it is no text
    [NAME(KEY=VALUE, …)]                                             Llama 3.2 and later

Pure: text in, pieces out.
"""

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from llm_engine.toolcalls import LONGEST_CALL, MalformedCall, ParsedCall, Piece, Schemas, is_of_type

_MAY_BE = re.compile(r"\s*($|\{|\[\s*($|\{|[A-Za-z_][\w.]*\s*($|\()))")
"""The beginning of a reply that may become a call."""
_BETWEEN = re.compile(r"[\s;,]*")


class BareCallParser:
    """For models whose reply is either words or calls. As `ToolCallParser`, it does not depend on how text is cut."""

    def __init__(self, schemas: Schemas | None = None) -> None:
        self._schemas = schemas
        self._held: str | None = ""  # None once it is known to be words

    def push(self, text: str) -> list[Piece]:
        if self._held is None:
            return [text] if text else []
        self._held += text
        if _MAY_BE.match(self._held) and len(self._held) <= LONGEST_CALL:
            return []
        words, self._held = self._held, None
        return [words] if words else []

    def finish(self) -> list[Piece]:
        """Return the held text: calls, or words that only began like one."""
        held, self._held = (self._held or "").strip(), ""
        calls = _python_calls(held) if re.match(r"\[\s*[A-Za-z_]", held) else _json_calls(held)
        if calls is None:
            return [held] if held else []
        return [checked(name, arguments, held, self._schemas) for name, arguments in calls]


def read_json_call(body: str, schemas: Schemas | None = None, lead: str = "") -> ParsedCall | MalformedCall:
    """Read the text between the tags of one call; `lead` has no place in JSON."""
    calls = _json_calls(body.strip())
    if calls is None or len(calls) != 1:
        return MalformedCall(f"<tool_call>{body}</tool_call>", "it is not one JSON object with a name and arguments")
    return checked(*calls[0], f"<tool_call>{body}</tool_call>", schemas)


def checked(
    name: str, arguments: Mapping[str, Any], whole: str, schemas: Schemas | None
) -> ParsedCall | MalformedCall:
    """Hold a call that was read whole against what is declared."""
    if schemas is None:
        return ParsedCall(name, arguments)
    schema = schemas.get(name)
    if schema is None:
        return MalformedCall(whole, f"there is no tool {name!r}; there are {', '.join(sorted(schemas)) or 'none'}")
    for key, value in arguments.items():
        kind = ((schema.get("properties") or {}).get(key) or {}).get("type")
        if isinstance(kind, str) and not is_of_type(value, kind):
            return MalformedCall(whole, f"parameter {key!r} is {str(value)[:40]!r}, which is not of type {kind}")
    missing = [key for key in schema.get("required") or () if key not in arguments]
    if missing:
        return MalformedCall(whole, f"parameter {missing[0]!r} is missing")
    return ParsedCall(name, arguments)


def _json_calls(text: str) -> list[tuple[str, dict[str, Any]]] | None:
    """Objects that follow each other, or a list of them; None if any is not a call."""
    read, at, decoder = [], 0, json.JSONDecoder()
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            read += value if isinstance(value, list) else [value]
            at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing as well
    except (ValueError, RecursionError):
        return None
    calls = [_call(value) for value in read]
    return None if None in calls or not calls else [call for call in calls if call is not None]


def _call(value: Any) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return None
    return (value["name"], arguments) if isinstance(arguments, dict) else None


def _python_calls(text: str) -> list[tuple[str, dict[str, Any]]] | None:
    """A list of calls whose values are literals. Nothing is evaluated."""
    try:
        tree = ast.parse(text, mode="eval").body
        calls = tree.elts if isinstance(tree, ast.List) else ()
        found = [_python_call(node) for node in calls]
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return [call for call in found if call is not None] if found and None not in found else None


def _python_call(node: ast.expr) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(node, ast.Call) or node.args or any(word.arg is None for word in node.keywords):
        return None
    return ast.unparse(node.func), {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
