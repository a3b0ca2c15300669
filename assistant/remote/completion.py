"""A stream of chat completion events, gathered: its words, the calls that it made, and what it counted."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.contracts import BadCall
from assistant.remote.calls import Schemas, WrittenCall, declared_name, read_arguments

THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")


class Completion:
    """A stream as far as it came. Tokens are zero until the server counts them.

    finish   why the server ended the reply; "" while it has not
    thought  whether it sent thoughts in a field of their own, which are no words
    """

    def __init__(self) -> None:
        self.asked = self.cached = self.made = 0
        self.finish = ""
        self.thought = False
        self._calls: dict[int, dict[str, str]] = {}

    def calls(self, schemas: Schemas) -> list[tuple[str, WrittenCall | BadCall]]:
        """Each call with its id, "" for none."""
        return [(call["id"], _read(call, schemas)) for _, call in sorted(self._calls.items())]

    def count_in(self, event: Mapping[str, object]) -> str:
        """Count an event in; returns its text. Raises TypeError if it is none."""
        if usage := _object(event.get("usage")):
            self.asked, self.made = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
            self.cached = _number(_object(usage.get("prompt_tokens_details")).get("cached_tokens"))
        text = ""
        for choice in _objects(event.get("choices")):
            delta = _object(choice.get("delta") or choice.get("message"))
            self.finish = _text(choice.get("finish_reason")) or self.finish
            self.thought = self.thought or any(delta.get(field) for field in THOUGHT_FIELDS)
            text += _words(delta.get("content")) + _text(delta.get("refusal"))
            for piece in _objects(delta.get("tool_calls")):
                self._gather(piece)
        return text

    def _gather(self, piece: Mapping[str, object]) -> None:
        """Put the pieces of a call together by its index."""
        call = self._calls.setdefault(_number(piece.get("index")), {"id": "", "name": "", "arguments": ""})
        function = _object(piece.get("function"))
        call["id"] = call["id"] or _text(piece.get("id"))
        call["name"] += _text(function.get("name"))
        call["arguments"] += _text(function.get("arguments"))


# Servers also send null for what they leave out; a value of another type is an invalid chat completion (TypeError).


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict | None):
        raise TypeError(f"{value!r} is not an object")
    return value or {}


def _objects(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list | None):
        raise TypeError(f"{value!r} is not a list")
    return [_object(one) for one in value or ()]


def _text(value: object) -> str:
    if not isinstance(value, str | None):
        raise TypeError(f"{value!r} is not text")
    return value or ""


def _words(content: object) -> str:
    """Content is text, or parts of which some are."""
    if not isinstance(content, list):
        return _text(content)
    return "".join(_text(part.get("text")) for part in _objects(content) if part.get("type") == "text")


def _number(value: object) -> int:
    if not isinstance(value, int | None) and not (isinstance(value, float) and value.is_integer()):
        raise TypeError(f"{value!r} is not a whole number")
    return int(value or 0)


def _read(call: Mapping[str, str], schemas: Schemas) -> WrittenCall | BadCall:
    arguments = read_arguments(call["arguments"])
    if arguments is None or not call["name"].strip():
        return BadCall(f"{call['name']}({call['arguments']})", "the arguments are not a JSON object")
    return WrittenCall(declared_name(call["name"].strip(), schemas), arguments)
