"""`/v1/chat/completions`: the thinking engine alone, in OpenAI's shape, whole or streamed."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from aiohttp import web

from assistant.base.errors import EngineFailed, PeerError
from assistant.base.ids import random_ids
from assistant.contracts import (
    LLM,
    BadCall,
    CallPiece,
    Line,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    ReplyPiece,
    TextPiece,
    ToolCall,
)
from assistant.events import ToolSpec
from assistant.realtime.fields import Fields, Json
from assistant.realtime.settings import read_tool_choice
from assistant.server.answers import EventStream, error_body, json_fields, while_connected
from assistant.server.context import ServerContext

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_STOPS = 4


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, read."""

    prompt: Prompt
    options: ReplyOptions
    model: str
    stream: bool
    include_usage: bool


def read_chat(body: Fields, context: ServerContext) -> ChatRequest:
    """Raises PeerError for what is wrong and for what these engines cannot do."""
    if (body.integer("n", 1, 1000) or 1) != 1:
        raise PeerError("invalid_value", "n: one answer at a time is made here", "n")
    form = body.obj("response_format")
    if form is not None and form.text("type") not in (None, "text"):
        raise PeerError("invalid_value", 'only response_format {"type": "text"} can be kept', "response_format.type")
    tools = tuple(_read_tool(tool.need_obj("function")) for tool in body.objs("tools"))
    stream_options = body.obj("stream_options")
    return ChatRequest(
        prompt=_read_prompt(body, tools, context.facts.character(context.settings.persona).instructions),
        options=ReplyOptions(
            reply_id=random_ids("chatcmpl"),
            max_tokens=body.integer("max_completion_tokens", 1, 1_000_000) or body.integer("max_tokens", 1, 1_000_000),
            temperature=body.number("temperature", 0.0, 2.0),
            top_k=body.integer("top_k", 1, 1_000_000),
            top_p=body.number("top_p", 0.0, 1.0),
            seed=body.integer("seed", -(2**63), 2**63 - 1),
            stop=_read_stops(body),
            tool_choice=_read_choice(body, tools),
        ),
        model=context.talks.engines.llm.name,
        stream=bool(body.boolean("stream")),
        include_usage=bool(stream_options and stream_options.boolean("include_usage")),
    )


def _read_tool(function: Fields) -> ToolSpec:
    parameters = function.obj("parameters")
    return ToolSpec(
        function.need_ident("name"), function.text("description") or "", dict(parameters.data) if parameters else {}
    )


def _read_choice(body: Fields, tools: tuple[ToolSpec, ...]) -> str:
    if isinstance(body.data.get("tool_choice"), dict):
        name = body.need_obj("tool_choice").need_obj("function").need_ident("name")
        if name not in {tool.name for tool in tools}:
            raise PeerError("invalid_value", f"tool_choice names {name!r}, which is not among tools", "tool_choice")
        return name
    return read_tool_choice(body) or "auto"


def _read_stops(body: Fields) -> tuple[str, ...]:
    given = body.data.get("stop")
    listed = [given] if isinstance(given, str) else body.array("stop") or []
    stops = tuple(stop for stop in listed if isinstance(stop, str) and stop)
    if len(stops) < len(listed) or len(stops) > MAX_STOPS:
        raise PeerError("invalid_value", f"stop must be a string or up to {MAX_STOPS} strings", "stop")
    return stops


def _read_prompt(body: Fields, tools: tuple[ToolSpec, ...], default_system: str) -> Prompt:
    """Leading system texts join; a later one is a user's line, as the models' templates want it."""
    system: list[str] = []
    lines: list[Line] = []
    for message in body.objs("messages"):
        role = message.choice("role", ROLES)
        if role is None:
            raise message.missing("role")
        text = _read_content(message)
        if role in {"system", "developer"} and not lines:
            system.append(text)
        elif role == "assistant":  # refusals, names and sound of other services are not read
            lines.append(Line("assistant", text, tuple(map(_read_call, message.objs("tool_calls")))))
        elif role == "tool":
            lines.append(Line("tool", text, call_id=message.ident("tool_call_id")))
        else:
            lines.append(Line("user", text))
    if not lines:
        raise PeerError("invalid_value", "messages must hold at least one that is not a system message", "messages")
    return Prompt("\n\n".join(system) if system else default_system, tools, tuple(lines))


def _read_content(message: Fields) -> str:
    if not isinstance(message.data.get("content"), list):
        return message.text("content") or ""
    texts = []
    for part in message.objs("content"):
        if part.text("type") not in {"text", "input_text", "output_text"}:
            raise PeerError(
                "invalid_value", f"{part.at('type')}: these models read text only here", part.at("type")
            )
        texts.append(part.need_text("text"))
    return "".join(texts)


def _read_call(call: Fields) -> ToolCall:
    function = call.need_obj("function")
    return ToolCall(call.need_ident("id"), function.need_ident("name"), function.text("arguments") or "{}")


# ----------------------------------------------------------------------------------------- answering


async def chat_completions(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """`POST /v1/chat/completions`."""
    chat = read_chat(await json_fields(request), context)
    llm, talk = context.talks.engines.llm, random_ids("http")
    try:
        if chat.stream:
            return await _stream(request, chat, llm.reply(talk, chat.prompt, chat.options))
        return web.json_response(await while_connected(request, _whole(chat, llm, talk)))
    finally:
        await llm.forget(talk)  # each request sends the whole talk, so no state is kept between two


async def _whole(chat: ChatRequest, llm: LLM, talk: str) -> Json:
    text, calls, usage, finish = "", [], usage_json(0, 0, 0), "stop"
    cached = asked = 0
    async with aclosing(llm.reply(talk, chat.prompt, chat.options)) as pieces:
        async for piece in pieces:
            match piece:
                case PromptReady():
                    asked, cached = piece.input_tokens, piece.cached_tokens
                case TextPiece():
                    text += piece.text
                case CallPiece(done=True):
                    calls.append(call_json(piece))
                case BadCall():  # no call that a program could run; as text a person can see what the model wrote
                    text += piece.text
                case ReplyEnd():
                    finish, usage = piece.reason, usage_json(asked, cached, piece.output_tokens)
    # null content is how the SDK tells a message that only calls; an empty answer is an empty string.
    message: Json = {"role": "assistant", "content": text if text or not calls else None}
    if calls:
        message["tool_calls"] = calls
        finish = "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return _head(chat, "chat.completion") | {"choices": [choice], "usage": usage}


async def _stream(
    request: web.Request, chat: ChatRequest, pieces: AsyncGenerator[ReplyPiece, None]
) -> web.StreamResponse:
    """Each piece as it comes. An error before the first piece is an HTTP status, a later one is an event."""
    out = EventStream(request)
    head = _head(chat, "chat.completion.chunk")

    async def chunk(delta: Json, finish: str | None = None) -> None:
        await out.send(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    calls = cached = asked = 0
    async with aclosing(pieces):
        try:
            while (piece := await while_connected(request, _next(pieces))) is not None:
                match piece:
                    case PromptReady():
                        asked, cached = piece.input_tokens, piece.cached_tokens
                        if not out.started:  # it comes twice from servers that count tokens at the end
                            await chunk({"role": "assistant", "content": ""})
                    case TextPiece() | BadCall():
                        await chunk({"content": piece.text})
                    case CallPiece(done=True):
                        await chunk({"tool_calls": [{"index": calls} | call_json(piece)]})
                        calls += 1
                    case ReplyEnd():
                        await chunk({}, "tool_calls" if calls else piece.reason)
                        if chat.include_usage:
                            usage = usage_json(asked, cached, piece.output_tokens)
                            await out.send(head | {"choices": [], "usage": usage})
        except EngineFailed as error:
            if not out.started:
                raise
            await out.send(error_body(PeerError("engine_error", str(error)), "server_error"))
        await out.send("[DONE]")
    return await out.end()


async def _next(pieces: AsyncGenerator[ReplyPiece, None]) -> ReplyPiece | None:
    return await anext(pieces, None)


def _head(chat: ChatRequest, kind: str) -> Json:
    return {"id": chat.options.reply_id, "object": kind, "created": int(time.time()), "model": chat.model}


def call_json(call: CallPiece) -> Json:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def usage_json(asked: int, cached: int, made: int) -> Json:
    return {
        "prompt_tokens": asked,
        "completion_tokens": made,
        "total_tokens": asked + made,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
