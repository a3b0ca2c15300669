"""The request for one reply. Pure.

Servers differ in what they refuse, and a history that is refused once is refused for ever, so what is sent is always
well formed: a user's line comes first, roles alternate, every call is followed by its one output, and the last line is
not the assistant's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from assistant.contracts import Line, PlacedPicture, Prompt, ReplyOptions, ToolCall
from assistant.events import ToolSpec

SILENCE = "[silence]"
"""Stands where a server wants a user's line and the user said nothing."""
CANCELLED = '{"error": "cancelled: it did not come to an end"}'
PICTURE_CHARACTERS = 2000
"""A picture counts like so much text."""
NO_THOUGHTS = "chat_template_kwargs"
SWITCH: Mapping[str, object] = {NO_THOUGHTS: {"enable_thinking": False}}
"""vLLM, SGLang and llama.cpp hand this to the chat template, which knows it or does not look."""
OPTIONAL = (NO_THOUGHTS, "stream_options", "top_k", "seed")
"""Fields that a request can do without, if a server does not know them."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How a server wants to be asked, as far as its refusals said.

    room     characters of talk that it takes; None: as many as it was given
    without  fields that it does not know
    system   whether it takes a system message
    """

    room: int | None = None
    without: frozenset[str] = frozenset()
    system: bool = True


def chat_body(model: str, prompt: Prompt, options: ReplyOptions, manners: Manners = Manners()) -> dict[str, object]:
    """The request for one reply; what is None is left to the server."""
    lines = recent(well_formed(prompt.lines), manners.room)
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    if system and not manners.system:
        lines[0] = _merged(Line("user", prompt.system), lines[0])
        system = []
    body: dict[str, object] = {
        "model": model,
        "messages": [*system, *(_message_of(line) for line in lines)],
        "stream": True,
        "stream_options": {"include_usage": True},
        **SWITCH,
    }
    given: dict[str, object] = {
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "top_k": options.top_k,
        "top_p": options.top_p,
        "seed": options.seed,
        "stop": list(options.stop) or None,
    }
    if prompt.tools:
        body["tools"] = [_tool(tool) for tool in prompt.tools]
        named = {"type": "function", "function": {"name": options.tool_choice}}
        given["tool_choice"] = options.tool_choice if options.tool_choice in {"auto", "none", "required"} else named
    body |= {name: value for name, value in given.items() if value is not None}
    return {name: value for name, value in body.items() if name not in manners.without}


def well_formed(lines: Sequence[Line]) -> list[Line]:
    """The same talk as every server takes it."""
    outputs: dict[str | None, list[Line]] = {}
    for line in lines:
        if line.role == "tool":
            outputs.setdefault(line.call_id, []).append(line)
    made: list[Line] = []
    for line in lines:
        if line.role == "tool":
            continue
        if made and made[-1].role == line.role:
            made[-1] = _merged(made[-1], line)
        else:
            made.append(line)
        for call in line.calls:
            found = outputs.get(call.call_id)
            made.append(found.pop(0) if found else Line("tool", CANCELLED, call_id=call.call_id))
    first = [] if made and made[0].role == "user" else [Line("user", SILENCE)]
    last = [Line("user", SILENCE)] if made and made[-1].role == "assistant" else []
    return [*first, *made, *last]


def _merged(before: Line, line: Line) -> Line:
    gap = "\n" if before.text and line.text else ""
    behind = len(before.text) + len(gap)
    moved = (PlacedPicture(placed.at + behind, placed.picture) for placed in line.pictures)
    text = before.text + gap + line.text
    return replace(line, text=text, calls=before.calls + line.calls, pictures=(*before.pictures, *moved))


def recent(lines: list[Line], room: int | None) -> list[Line]:
    """The last turns that fit the room, and at least the last one."""
    while room is not None and size(lines) > room and (later := _turns(lines)[1:]):
        lines = lines[later[0] :]
    return lines


def turns(lines: Sequence[Line]) -> int:
    """How many turns there are."""
    return len(_turns(lines))


def _turns(lines: Sequence[Line]) -> list[int]:
    """The places at which turns begin."""
    return [at for at, line in enumerate(lines) if line.role == "user"]


def size(lines: Sequence[Line]) -> int:
    """Characters, about."""
    words = sum(len(line.text) + sum(len(call.arguments) for call in line.calls) for line in lines)
    return words + PICTURE_CHARACTERS * sum(len(line.pictures) for line in lines)


def _message_of(line: Line) -> dict[str, object]:
    message: dict[str, object] = {"role": line.role, "content": _parts(line) if line.pictures else line.text}
    if line.calls:
        message["tool_calls"] = [_call(call) for call in line.calls]
    if line.call_id is not None:
        message["tool_call_id"] = line.call_id
    return message


def _call(call: ToolCall) -> dict[str, object]:
    """Arguments that are not a JSON object stand in one: chat templates read them."""
    arguments = call.arguments
    with suppress(ValueError, RecursionError):
        if not isinstance(json.loads(arguments), dict):
            raise ValueError
        return _function(call, arguments)
    return _function(call, json.dumps({"text": arguments}) if arguments.strip() else "{}")


def _function(call: ToolCall, arguments: str) -> dict[str, object]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _parts(line: Line) -> list[dict[str, object]]:
    """Words and pictures in their order. Pictures go as they came, but for the level of detail that only some know."""
    parts: list[dict[str, object]] = []
    begin = 0
    for placed in line.pictures:
        if text := line.text[begin : placed.at]:
            parts.append({"type": "text", "text": text})
        begin = placed.at
        picture = placed.picture
        detail = "high" if picture.detail == "original" else picture.detail
        parts.append({"type": "image_url", "image_url": {"url": picture.data_url, "detail": detail}})
    if text := line.text[begin:]:
        parts.append({"type": "text", "text": text})
    return parts


def _tool(tool: ToolSpec) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
