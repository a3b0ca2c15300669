"""Engines on another server, in place of the local ones: chat completions for thinking, audio speech for speaking.

Any server that speaks OpenAI's HTTP interface will do (vLLM, SGLang, llama.cpp, vLLM-Omni). It keeps its own counsel
about state: each reply sends the whole talk, nothing is restored or rolled back here, and `capsules` is False.

An address is `http://HOST:PORT/v1`; `http://KEY@HOST:PORT/v1#MODEL` adds a key and the name of a model, which is
otherwise the first that the server lists.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from assistant.engines import (
    BadCall,
    CallPiece,
    Line,
    Prompt,
    PromptReady,
    ReplyEnd,
    Settled,
    Sound,
    TextPiece,
    ThinkOptions,
    ThinkPiece,
    Uttered,
)
from assistant.errors import ConfigError, EngineFailed
from assistant.events import ToolSpec
from assistant.pcm import from_pcm16

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 60.0
"""How long a server may send nothing in the middle of an answer."""
DONE = "[DONE]"
NO_PCM = ("text/", "application/json", "audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac")
"""Played as samples these would be noise."""
NOTHING = Settled(None, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is. `base` ends without a slash; `model` None: the first that it lists."""

    base: str
    key: str | None = None
    model: str | None = None


def is_address(text: str) -> bool:
    """Whether a setting names a server and not a folder."""
    return text.startswith(("http://", "https://"))


def read_address(text: str) -> Address:
    """Raises ConfigError."""
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{text!r} has no valid port") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"{text!r} is no address of a server; it looks like http://localhost:8000/v1")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    netloc = host if port is None else f"{host}:{port}"
    path = parts.path.rstrip("/") or "/v1"
    return Address(urlunsplit((parts.scheme, netloc, path, "", "")), parts.username, parts.fragment or None)


class _Server:
    """One remote server; its connections open with the first request."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.model = address.model
        self._client: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _open(self) -> aiohttp.ClientSession:
        if self._client is None:
            headers = {"Authorization": f"Bearer {self.address.key}"} if self.address.key else {}
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)
            self._client = aiohttp.ClientSession(headers=headers, timeout=timeout)
        return self._client

    @asynccontextmanager
    async def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> AsyncIterator[Any]:
        """An answer with status 200. Whatever goes wrong with it is an EngineFailed that names the server."""
        url = self.address.base + path
        try:
            async with self._open().request(method, url, json=body) as answer:
                if answer.status != 200:
                    raise EngineFailed(f"{url} answered {answer.status}: {_message(await answer.text())}")
                yield answer
        except TimeoutError as error:
            raise EngineFailed(f"{url} did not answer in time; is the server overloaded?") from error
        except (aiohttp.ClientError, OSError) as error:
            raise EngineFailed(f"{url} cannot be used ({error or type(error).__name__}); is the server up?") from error

    async def model_name(self) -> str:
        """The model to ask for, looked up once."""
        if self.model is None:
            async with self.request("GET", "/models") as answer:
                try:
                    self.model = str((await answer.json(content_type=None))["data"][0]["id"])
                except (ValueError, LookupError, TypeError) as error:
                    raise EngineFailed(f"{self.address.base}/models lists no model; name one: …/v1#MODEL") from error
        return self.model


def _message(body: str) -> str:
    """What an error answer says, in OpenAI's form or any other."""
    try:
        return str(json.loads(body)["error"]["message"])[:300]
    except (ValueError, LookupError, TypeError):
        return body.strip()[:300] or "nothing"


async def _events(answer: aiohttp.ClientResponse) -> AsyncGenerator[dict[str, Any], None]:
    """The JSON objects of a server-sent stream, up to its end mark."""
    async for raw in answer.content:
        line = raw.decode("utf-8", "replace").strip()
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == DONE:
            return
        try:
            event = json.loads(data)
        except ValueError as error:
            raise EngineFailed(f"{answer.url} sent a line that is no JSON: {data[:100]}") from error
        if not isinstance(event, dict):
            raise EngineFailed(f"{answer.url} sent JSON that is no event: {data[:100]}")
        if "error" in event:
            raise EngineFailed(f"{answer.url} failed: {_message(data)}")
        yield event
    raise EngineFailed(f"{answer.url} broke off in the middle of its answer")


class RemoteThinker:
    """A language model behind `/chat/completions`."""

    capsules = False

    def __init__(self, address: Address) -> None:
        self._server = _Server(address)

    @property
    def name(self) -> str:
        return self._server.model or self._server.address.base

    async def close(self) -> None:
        await self._server.close()

    async def reply(self, talk: str, prompt: Prompt, options: ThinkOptions) -> AsyncGenerator[ThinkPiece, None]:
        body = chat_body(await self._server.model_name(), prompt, options)
        answered, ready, told = _Answer(), False, 0
        async with self._server.request("POST", "/chat/completions", body) as answer:
            async for event in _events(answer):
                try:
                    text = answered.take(event)
                except (AttributeError, TypeError, ValueError) as error:
                    raise EngineFailed(f"{answer.url} sent what is no chat completion: {str(event)[:100]}") from error
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

    async def settle(self, talk: str, prompt: Prompt) -> Settled:
        return NOTHING

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        return None

    async def warm(self, prompt: Prompt) -> Settled:
        await self._server.model_name()
        return NOTHING

    async def park(self, talk: str) -> None:
        return None

    async def forget(self, talk: str) -> None:
        return None


def chat_body(model: str, prompt: Prompt, options: ThinkOptions) -> dict[str, Any]:
    """The request for one reply; what is None is left to the server."""
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    body: dict[str, Any] = {
        "model": model,
        "messages": messages + [_message_of(line) for line in prompt.lines],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    given: dict[str, Any] = {
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


def _message_of(line: Line) -> dict[str, Any]:
    message: dict[str, Any] = {"role": line.role, "content": line.text}
    if line.calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in line.calls
        ]
    if line.call_id is not None:
        message["tool_call_id"] = line.call_id
    return message


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


class _Answer:
    """What a stream of chat completion events came to so far. Tokens are zero until the server counts them."""

    def __init__(self) -> None:
        self.calls: dict[int, dict[str, str]] = {}
        self.asked = self.cached = self.made = 0
        self._finish = "stop"

    @property
    def reason(self) -> Literal["stop", "length", "tool_calls"]:
        return "tool_calls" if self.calls else "length" if self._finish == "length" else "stop"

    def take(self, event: dict[str, Any]) -> str:
        """Count an event in; returns its text. Raises AttributeError, TypeError, ValueError if it is none."""
        if usage := event.get("usage"):
            self.asked, self.made = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
            self.cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
        text = ""
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            self._finish = choice.get("finish_reason") or self._finish
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                self._gather(piece)
        return text

    def _gather(self, piece: dict[str, Any]) -> None:
        """Put the pieces of a call together by its index."""
        call = self.calls.setdefault(int(piece.get("index") or 0), {"id": "", "name": "", "arguments": ""})
        function = piece.get("function") or {}
        call["id"] = call["id"] or piece.get("id") or ""
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""


def _call_piece(index: int, call: dict[str, str], reply_id: str) -> CallPiece | BadCall:
    """A whole call, or what is wrong with it."""
    try:
        if not isinstance(json.loads(call["arguments"] or "{}"), dict):
            raise ValueError("arguments are no object")
    except ValueError as error:
        return BadCall(call["arguments"], str(error))
    return CallPiece(call["id"] or f"call_{reply_id}_{index}", call["name"], call["arguments"] or "{}", True)


class RemoteSpeaker:
    """A voice behind `/audio/speech`, as 24 kHz PCM. Where words are in the sound is not known."""

    capsules = False
    paces = True

    def __init__(self, address: Address, voices: Sequence[str] = ()) -> None:
        self._server = _Server(address)
        self._voices = tuple(voices)

    @property
    def name(self) -> str:
        return self._server.model or self._server.address.base

    @property
    def voices(self) -> Sequence[str]:
        return self._voices

    async def close(self) -> None:
        await self._server.close()

    async def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0
    ) -> AsyncGenerator[Sound, None]:
        body = {
            "model": await self._server.model_name(),
            "input": text,
            "voice": voice or (self._voices[0] if self._voices else "default"),
            "response_format": "pcm",
            "stream_format": "audio",
            "speed": speed,
        }
        odd = b""
        async with self._server.request("POST", "/audio/speech", body) as answer:
            if answer.content_type.startswith(NO_PCM):
                raise EngineFailed(f"{answer.url} sent {answer.content_type}; raw PCM of 24 kHz was asked for")
            async for data in answer.content.iter_any():
                sound = odd + data
                whole = len(sound) // 2 * 2
                odd = sound[whole:]
                if whole:
                    yield Sound(from_pcm16(sound[:whole]))

    async def settle(self, talk: str, uttered: Sequence[Uttered]) -> Settled:
        return NOTHING

    async def warm(self, voice: str | None) -> Settled:
        await self._server.model_name()
        return NOTHING

    async def park(self, talk: str) -> None:
        return None

    async def forget(self, talk: str) -> None:
        return None
