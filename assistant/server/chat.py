"""`/v1/chat/completions`: the thinking engine alone, in OpenAI's shape, whole or streamed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from aiohttp import web

from assistant.base.errors import EngineFailed, PeerError
from assistant.base.ids import random_ids
from assistant.base.picture import MOST_PER_MESSAGE, MOST_PER_REQUEST
from assistant.contracts import (
    CANNOT_SEE,
    LLM,
    BadCall,
    CallPiece,
    Line,
    PlacedPicture,
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
from assistant.realtime.items import PICTURES, read_picture_part
from assistant.realtime.settings import read_tool, read_tool_choice
from assistant.server.answers import EventStream, error_body, json_fields, while_connected
from assistant.server.backend import ServerContext
from assistant.server.security import keys_of, realm_of

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_STOPS = 4
MAX_ANSWERS = 16


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, read."""

    prompt: Prompt
    options: ReplyOptions
    model: str
    answers: int
    stream: bool
    include_usage: bool
    unseen: bool
    """It asks about pictures, and the model cannot see."""

    def options_of(self, index: int) -> ReplyOptions:
        """The sampling of one answer: the first is the same as if it were alone, later ones use the seeds after its
        own."""
        if index == 0:
            return self.options
        seed = ((self.options.seed or 0) + index + 2**63) % 2**64 - 2**63
        return replace(self.options, reply_id=f"{self.options.reply_id}.{index}", seed=seed)


def read_chat(body: Fields, context: ServerContext, realm: str = "") -> ChatRequest:
    """`realm`: prompts of the same realm find this one's beginning. Raises PeerError for invalid requests and for those
    that these engines cannot meet."""
    form = body.obj("response_format")
    if form is not None and form.text("type") not in (None, "text"):
        raise PeerError("invalid_value", 'only response_format {"type": "text"} is supported', "response_format.type")
    tools = tuple(read_tool(tool.need_obj("function")) for tool in body.objs("tools"))
    stream_options = body.obj("stream_options")
    prompt = _read_prompt(body, tools, context.facts.character(context.settings.persona).instructions)
    unseen = prompt.asks_to_see() and not context.talks.engines.llm.sees
    if not context.talks.engines.llm.sees:
        prompt = prompt.in_words
    return ChatRequest(
        prompt=replace(prompt, realm=realm),
        options=ReplyOptions(
            reply_id=random_ids("chatcmpl"),
            max_tokens=body.integer("max_completion_tokens", 1, 1_000_000) or body.integer("max_tokens", 1, 1_000_000),
            temperature=body.number("temperature", 0.0, 2.0),
            top_k=body.integer("top_k", 1, 1_000_000),
            top_p=body.number("top_p", 0.0, 1.0),
            seed=body.integer("seed", -(2**63), 2**63 - 1),
            stop=_read_stops(body),
            tool_choice=_read_choice(body, tools),
            reusable=True,
        ),
        model=context.talks.engines.llm.name,
        answers=body.integer("n", 1, MAX_ANSWERS) or 1,
        stream=bool(body.boolean("stream")),
        include_usage=bool(stream_options and stream_options.boolean("include_usage")),
        unseen=unseen,
    )


async def opened_chat(body: Fields, context: ServerContext, realm: str = "") -> ChatRequest:
    """The same, with its pictures decoded. Raises PeerError."""
    chat = read_chat(body, context, realm)
    if pictures := [placed.picture for line in chat.prompt.lines for placed in line.pictures]:
        await asyncio.to_thread(lambda: [picture.pixels for picture in pictures])
    return chat


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
    """Leading system texts join; a later one becomes a user's line, as the models' templates require."""
    system: list[str] = []
    lines: list[Line] = []
    for message in body.objs("messages"):
        role = message.choice("role", ROLES)
        if role is None:
            raise message.missing("role")
        text, pictures = _read_content(message, role)
        if role in {"system", "developer"} and not lines:
            system.append(text)
        elif role == "assistant":  # fields for refusals, names and sound of other services are ignored
            lines.append(Line("assistant", text, tuple(map(_read_call, message.objs("tool_calls")))))
        elif role == "tool":
            lines.append(Line("tool", text, call_id=message.ident("tool_call_id")))
        else:
            lines.append(Line("user", text, pictures=pictures))
    if not lines:
        raise PeerError("invalid_value", "messages must contain at least one that is not a system message", "messages")
    if sum(len(line.pictures) for line in lines) > MOST_PER_REQUEST:
        raise PeerError("invalid_value", f"a request shows at most {MOST_PER_REQUEST} pictures", "messages")
    return Prompt("\n\n".join(system) if system else default_system, tools, tuple(lines))


def _read_content(message: Fields, role: str) -> tuple[str, tuple[PlacedPicture, ...]]:
    if not isinstance(message.data.get("content"), list):
        return message.text("content") or "", ()
    text, pictures = "", []
    for part in message.objs("content"):
        kind = part.text("type")
        if kind in PICTURES and role == "user":
            pictures.append(PlacedPicture(len(text), read_picture_part(part).picture))
        elif kind in {"text", "input_text", "output_text"}:
            text += part.need_text("text")
        else:
            allowed = "text and image_url" if role == "user" else "text alone"
            raise PeerError("invalid_value", f"{part.at('type')}: role {role} allows {allowed}", part.at("type"))
    if len(pictures) > MOST_PER_MESSAGE:
        raise PeerError(
            "invalid_value", f"a message shows at most {MOST_PER_MESSAGE} pictures", message.at("content")
        )
    return text, tuple(pictures)


def _read_call(call: Fields) -> ToolCall:
    function = call.need_obj("function")
    return ToolCall(call.need_ident("id"), function.need_ident("name"), function.text("arguments") or "{}")


# ----------------------------------------------------------------------------------------- answering


@dataclass(slots=True)
class Answer:
    """One of a request's answers, as far as it is made."""

    text: str = ""
    calls: list[CallPiece] = field(default_factory=list)
    finish: str | None = None

    def add_piece(self, piece: ReplyPiece) -> Json | None:
        """A piece as a delta of the wire format, if it adds anything."""
        match piece:
            case TextPiece() | BadCall():  # a program cannot run a bad call, but as text a person can see it
                self.text += piece.text
                return {"content": piece.text}
            case CallPiece(done=True):
                self.calls.append(piece)
                return {"tool_calls": [{"index": len(self.calls) - 1} | call_json(piece)]}
            case ReplyEnd():
                self.finish = "tool_calls" if self.calls else piece.reason
        return None

    def json(self, index: int) -> Json:
        # Null content is the SDK's sign of a message with calls only; an empty answer is an empty string.
        message: Json = {"role": "assistant", "content": self.text if self.text or not self.calls else None}
        if self.calls:
            message["tool_calls"] = [call_json(call) for call in self.calls]
        return {"index": index, "message": message, "finish_reason": self.finish, "logprobs": None}

    def line(self) -> Line:
        """The answer as the client will send it with its next request."""
        return Line("assistant", self.text, tuple(ToolCall(c.call_id, c.name, c.arguments) for c in self.calls))


class Answering:
    """A request while it is answered: `chat.answers` answers of one state, one after the other."""

    def __init__(self, chat: ChatRequest, llm: LLM) -> None:
        self.chat = chat
        self.answers: list[Answer] = []
        self._llm, self._talk = llm, random_ids("http")
        self._asked = self._cached = self._made = self._images = 0

    async def pieces(self) -> AsyncGenerator[tuple[int, ReplyPiece], None]:
        """Each piece with the number of its answer. Every answer equals the one made alone with its seed: the model
        goes back to where the prompt ends, and nothing is folded twice."""
        chat = self.chat
        for index in range(chat.answers):
            self.answers.append(Answer())
            made = _cannot_see() if chat.unseen else self._llm.reply(self._talk, chat.prompt, chat.options_of(index))
            async with aclosing(made) as pieces:
                async for piece in pieces:
                    if isinstance(piece, PromptReady) and index == 0:
                        self._asked, self._cached = piece.input_tokens, piece.cached_tokens
                        self._images = piece.image_tokens
                    elif isinstance(piece, ReplyEnd):
                        self._made += piece.output_tokens
                    yield index, piece

    def usage(self) -> Json:
        usage = usage_json(self._asked, self._cached, self._made)
        if self._images:
            usage["prompt_tokens_details"] = {"cached_tokens": self._cached, "image_tokens": self._images}
        return usage

    async def over(self) -> None:
        """Let the next request find the folded prompt, with the answer if there is only one; of several, nobody knows
        which goes on."""
        if (state := self._llm.state) is None:
            return
        if self.chat.unseen or not self.answers or any(answer.finish is None for answer in self.answers):
            await state.forget_talk(self._talk)
            return
        lines = (self.answers[0].line(),) if len(self.answers) == 1 else ()
        prompt = self.chat.prompt
        await state.publish_prefix(self._talk, replace(prompt, lines=(*prompt.lines, *lines)))


async def _cannot_see() -> AsyncGenerator[ReplyPiece, None]:
    """An answer in words, instead of a guess."""
    yield PromptReady(0, 0)
    yield TextPiece(CANNOT_SEE)
    yield ReplyEnd("stop", 0)


async def chat_completions(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """`POST /v1/chat/completions`."""
    keys = keys_of(request.headers.get("Authorization"), None)
    chat = await opened_chat(await json_fields(request), context, realm_of(keys))
    answering = Answering(chat, context.talks.engines.llm)
    try:
        if answering.chat.stream:
            return await _stream(request, answering)
        return web.json_response(await while_connected(request, _whole(answering)))
    finally:
        context.later(answering.over())  # not before the answer goes out: nobody here waits for it


async def _whole(answering: Answering) -> Json:
    async with aclosing(answering.pieces()) as pieces:
        async for index, piece in pieces:
            answering.answers[index].add_piece(piece)
    choices = [answer.json(index) for index, answer in enumerate(answering.answers)]
    return _head(answering.chat, "chat.completion") | {"choices": choices, "usage": answering.usage()}


async def _stream(request: web.Request, answering: Answering) -> web.StreamResponse:
    """Send each piece as it comes. An error before the first piece is an HTTP status, a later one is an event."""
    out = EventStream(request)
    head = _head(answering.chat, "chat.completion.chunk")

    async def chunk(index: int, delta: Json, finish: str | None = None) -> None:
        await out.send_event(head | {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]})

    begun = -1
    async with aclosing(answering.pieces()) as pieces:
        try:
            while (found := await while_connected(request, _next(pieces))) is not None:
                index, piece = found
                if index > begun:  # at the first piece of each; a server that counts at the end is ready twice
                    begun = index
                    await chunk(index, {"role": "assistant", "content": ""})
                answer = answering.answers[index]
                delta = answer.add_piece(piece)
                if delta is not None or answer.finish is not None:
                    await chunk(index, delta or {}, answer.finish)
        except EngineFailed as error:
            if not out.started:
                raise
            await out.send_event(error_body(PeerError("engine_error", str(error)), "server_error"))
        else:
            if answering.chat.include_usage:
                await out.send_event(head | {"choices": [], "usage": answering.usage()})
        await out.send_event("[DONE]")
    return await out.close_stream()


async def _next(pieces: AsyncGenerator[tuple[int, ReplyPiece], None]) -> tuple[int, ReplyPiece] | None:
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
