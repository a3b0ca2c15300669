"""Extracts calls from a text stream, in the family's own format; malformed ones are reported and never executed.

    <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n … </function>\n</tool_call>

Pure: text in, pieces out. Thinking blocks, which a model may write although asked not to, are left out.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from llm_engine.textcut import overlap

LONGEST_CALL = 65536  # characters

_CALL, _CALL_END = "<tool_call>", "</tool_call>"
_THINK, _THINK_END = "<think>", "</think>"
_FUNCTION = re.compile(r"\s*<function=([^<>\s]+)>\n?(.*)</function>\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]+)>\n?(.*?)\n?</parameter>\s*", re.DOTALL)


@dataclass(frozen=True)
class ParsedCall:
    """A call that was read whole."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class MalformedCall:
    """Something that began as a call but is not one."""

    text: str
    reason: str


Piece: TypeAlias = str | ParsedCall | MalformedCall
Schemas: TypeAlias = Mapping[str, Mapping[str, Any]]
Reader: TypeAlias = Callable[[str, Schemas | None, str], ParsedCall | MalformedCall]
"""The text between the tags, schemas and lead to a call."""


class ToolCallParser:
    """Feed it text in pieces of any size; the output does not depend on how the text was cut.

    schemas  JSON schema of the parameters by tool name. With it, a value is read as its declared type and a call of
             an unknown name is bad; without it every value is the text as written
    lead     text that the model's template writes before each value; it is not part of the value
    read     reads what stands between the tags; `read_call` if not given
    """

    def __init__(self, schemas: Schemas | None = None, lead: str = "", read: Reader | None = None) -> None:
        self._schemas, self._lead, self._read = schemas, lead, read or read_call
        self._buffer = ""
        self._inside: str | None = None  # the tag that we are in
        self._space = ""  # white space that is text only if text follows

    def push(self, text: str) -> list[Piece]:
        """Visible text, calls and bad calls that are certain by now."""
        self._buffer += text
        found: list[Piece] = []
        while self._advance(found):
            pass
        return _joined(found)

    def finish(self) -> list[Piece]:
        """The remaining pieces when the reply is over."""
        found: list[Piece] = []
        if self._inside == _CALL:
            found.append(MalformedCall(_CALL + self._buffer, "the reply ended inside the call"))
        elif self._inside is None and self._space + self._buffer:
            found.append(self._space + self._buffer)
        self._buffer, self._space, self._inside = "", "", None
        return found

    def _advance(self, found: list[Piece]) -> bool:
        """One step through the buffer; False when more text is needed."""
        if self._inside is None:
            return self._text(found)
        end = _CALL_END if self._inside == _CALL else _THINK_END
        at = self._buffer.find(end)
        if at < 0:
            if self._inside == _CALL and len(self._buffer) > LONGEST_CALL:
                found.append(MalformedCall(_CALL + self._buffer[:200], f"longer than {LONGEST_CALL} characters"))
                self._buffer = ""
            return False
        body, self._buffer = self._buffer[:at], self._buffer[at + len(end) :]
        if self._inside == _CALL:
            found.append(self._read(body, self._schemas, self._lead))
        self._inside, self._space = None, ""
        return True

    def _text(self, found: list[Piece]) -> bool:
        at, tag = min(
            ((self._buffer.find(tag), tag) for tag in (_CALL, _THINK) if tag in self._buffer), default=(-1, "")
        )
        if at >= 0:
            before, self._buffer = self._buffer[:at], self._buffer[at + len(tag) :]
            if before.strip():
                found.append(self._space + before.rstrip())
            self._inside, self._space = tag, ""
            return True
        keep = overlap(self._buffer, (_CALL, _THINK))
        sure, self._buffer = self._buffer[: len(self._buffer) - keep], self._buffer[len(self._buffer) - keep :]
        text = self._space + sure
        self._space = text[len(text.rstrip()) :]
        if text.rstrip():
            found.append(text.rstrip())
        return False


def read_call(body: str, schemas: Schemas | None = None, lead: str = "") -> ParsedCall | MalformedCall:
    """Read the text between the tags of one call."""
    whole = _CALL + body + _CALL_END
    function = _FUNCTION.fullmatch(body)
    if function is None:
        return MalformedCall(whole, "it is not one <function=…>…</function>")
    name, inner = function[1], function[2]
    schema = None if schemas is None else schemas.get(name)
    if schemas is not None and schema is None:
        return MalformedCall(whole, f"there is no tool {name!r}; there are {', '.join(sorted(schemas)) or 'none'}")
    arguments: dict[str, Any] = {}
    at = 0
    while at < len(inner):
        match = _PARAMETER.match(inner, at)
        if match is None:
            if inner[at:].strip():
                return MalformedCall(whole, f"{inner[at : at + 40]!r} is not a <parameter=…>…</parameter>")
            break
        key, text = match[1], match[2].removeprefix(lead)
        if key in arguments:
            return MalformedCall(whole, f"parameter {key!r} is given twice")
        if "<parameter=" in text or "<function=" in text:
            return MalformedCall(whole, f"parameter {key!r} is not closed")
        try:
            arguments[key] = _value(text, schema, key)
        except (ValueError, RecursionError):
            return MalformedCall(whole, f"parameter {key!r} is {text[:40]!r}, which is no {_type_of(schema, key)}")
        at = match.end()
    missing = [key for key in (schema or {}).get("required") or () if key not in arguments]
    if missing:
        return MalformedCall(whole, f"parameter {missing[0]!r} is missing")
    return ParsedCall(name, arguments)


def _value(text: str, schema: Mapping[str, Any] | None, key: str) -> Any:
    """Raises ValueError if the text is not of the declared type."""
    kind = _type_of(schema, key)
    if kind is None or kind == "string":
        return text
    value = json.loads(text)
    if not is_of_type(value, str(kind)):
        raise ValueError(kind)
    return value


def is_of_type(value: Any, kind: str) -> bool:
    """Whether a value is of a type of JSON schema; of one that is not known, every value is."""
    good = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
        "null": value is None,
    }
    return good.get(kind, True)


def _type_of(schema: Mapping[str, Any] | None, key: str) -> Any:
    declared = ((schema or {}).get("properties") or {}).get(key) or {}
    kind = declared.get("type") if isinstance(declared, Mapping) else None
    return kind if isinstance(kind, str) else None


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Merge neighbouring texts."""
    out: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece)
    return out
