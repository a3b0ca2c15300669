"""A language model behind `/chat/completions`: a prompt to a request, a stream of events to a reply."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Literal

from assistant.base.errors import EngineFailed
from assistant.contracts import (
    CANNOT_SEE,
    BadCall,
    CallPiece,
    Line,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    ReplyPiece,
    Synced,
    TextPiece,
)
from assistant.events import ToolSpec
from assistant.remote.server import Address, Server, events

log = logging.getLogger(__name__)

NOTHING = Synced(None, 0, 0.0)
NO_EYES = re.compile(
    r"(not|n't|cannot|no endpoints found that) (support|accept|process|compiled for|an?)( any)? "
    r"(multi-?modal|vision|images?(?! format| type| of))"
    r"|(images?|vision|multi-?modal)( inputs?)? (is|are) not (supported|enabled)|mmproj|unknown variant",
    re.IGNORECASE,
)
"""How servers refuse all pictures (vLLM, llama.cpp, Ollama, routers), as opposed to one bad picture."""


class RemoteLLM:
    """Each reply sends the whole talk."""

    state = None

    def __init__(self, address: Address) -> None:
        self._server = Server(address)
        self.sees = True
        """True until the server reports that its model does not: there is no way to ask before."""

    @property
    def name(self) -> str:
        return self._server.model or self._server.address.base

    async def close(self) -> None:
        await self._server.close()

    async def reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        begun = False
        if self.sees and any(line.pictures for line in prompt.lines):
            try:
                async with aclosing(self._answer(prompt, options)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except EngineFailed as error:
                if begun or NO_EYES.search(str(error)) is None:
                    raise
                log.warning("pictures are not sent any more: %s", error)
                self.sees = False
        made = _cannot_see() if prompt.asks_to_see and not self.sees else self._answer(prompt.in_words, options)
        async with aclosing(made) as pieces:
            async for piece in pieces:
                yield piece

    async def _answer(self, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        body = chat_body(await self._server.model_name(), prompt, options)
        answered, ready, told = _Answer(), False, 0
        async with self._server.request("POST", "/chat/completions", body) as answer:
            async for event in events(answer):
                try:
                    text = answered.count_in(event)
                except TypeError as error:
                    raise EngineFailed(f"{answer.url} sent an invalid chat completion: {str(event)[:100]}") from error
                if not ready:
                    ready, told = True, answered.asked
                    yield PromptReady(answered.asked, answered.cached)
                if text:
                    yield TextPiece(text)
        if not told:
            yield PromptReady(answered.asked, answered.cached)
        for index, call in sorted(answered.calls.items()):
            yield _call_piece(index, call, options.reply_id)
        yield ReplyEnd(answered.reason, answered.made)

    async def warm(self, listed: Mapping[str, Prompt], *, idle_work: bool = False) -> Mapping[str, Synced]:
        await self._server.model_name()
        return dict.fromkeys(listed, NOTHING)


async def _cannot_see() -> AsyncGenerator[ReplyPiece, None]:
    yield PromptReady(0, 0)
    yield TextPiece(CANNOT_SEE)
    yield ReplyEnd("stop", 0)


def chat_body(model: str, prompt: Prompt, options: ReplyOptions) -> dict[str, object]:
    """The request for one reply; the server decides every value that is None."""
    body: dict[str, object] = {
        "model": model,
        "messages": [
            *([{"role": "system", "content": prompt.system}] if prompt.system else []),
            *(_message_of(line) for line in prompt.lines),
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
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
    return body | {name: value for name, value in given.items() if value is not None}


def _message_of(line: Line) -> dict[str, object]:
    message: dict[str, object] = {"role": line.role, "content": _parts(line) if line.pictures else line.text}
    if line.calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in line.calls
        ]
    if line.call_id is not None:
        message["tool_call_id"] = line.call_id
    return message


def _parts(line: Line) -> list[dict[str, object]]:
    """Words and pictures in their order. Pictures go unchanged, except for the level of detail: only some know it."""
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


class _Answer:
    """A stream of chat completion events, as far as it has come. Tokens are zero until the server counts them."""

    def __init__(self) -> None:
        self.calls: dict[int, dict[str, str]] = {}
        self.asked = self.cached = self.made = 0
        self._finish = "stop"

    @property
    def reason(self) -> Literal["stop", "length", "tool_calls"]:
        return "tool_calls" if self.calls else "length" if self._finish == "length" else "stop"

    def count_in(self, event: Mapping[str, object]) -> str:
        """Count an event in; return its text. Raises TypeError if it is not one."""
        if usage := _object(event.get("usage")):
            self.asked, self.made = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
            self.cached = _number(_object(usage.get("prompt_tokens_details")).get("cached_tokens"))
        text = ""
        for choice in _objects(event.get("choices")):
            delta = _object(choice.get("delta"))
            self._finish = _text(choice.get("finish_reason")) or self._finish
            text += _text(delta.get("content"))
            for piece in _objects(delta.get("tool_calls")):
                self._gather(piece)
        return text

    def _gather(self, piece: Mapping[str, object]) -> None:
        """Put the pieces of a call together by its index."""
        call = self.calls.setdefault(_number(piece.get("index")), {"id": "", "name": "", "arguments": ""})
        function = _object(piece.get("function"))
        call["id"] = call["id"] or _text(piece.get("id"))
        call["name"] += _text(function.get("name"))
        call["arguments"] += _text(function.get("arguments"))


# Servers also send null for fields they omit; a value of another type makes the completion invalid (TypeError).


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


def _number(value: object) -> int:
    if not isinstance(value, int | None) and not (isinstance(value, float) and value.is_integer()):
        raise TypeError(f"{value!r} is not a whole number")
    return int(value or 0)


def _call_piece(index: int, call: dict[str, str], reply_id: str) -> CallPiece | BadCall:
    """A whole call, or a report of what is wrong with it."""
    try:
        if not isinstance(json.loads(call["arguments"] or "{}"), dict):
            raise ValueError("the arguments are not an object")
    except ValueError as error:
        return BadCall(call["arguments"], str(error))
    return CallPiece(call["id"] or f"call_{reply_id}_{index}", call["name"], call["arguments"] or "{}", True)
