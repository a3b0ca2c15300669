"""A remote server: its address, its model, and answers. Every failure is an EngineFailed.

An address is `http://HOST:PORT/v1`; `http://KEY@HOST:PORT/v1#MODEL` adds a key and the name of a model, which
defaults to the first that the server lists.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from assistant.base.errors import EngineFailed, SettingError

if TYPE_CHECKING:
    import aiohttp  # takes a tenth of a second, wasted if there is no server to ask

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 60.0
"""How long a server may stay silent in the middle of an answer."""
DONE = "[DONE]"


class ServerRefused(EngineFailed):
    """The server is there, and says no. `body`: its own words, as they came."""

    def __init__(self, message: str, status: int, body: str) -> None:
        super().__init__(message)
        self.status, self.body = status, body


class BrokeOff(EngineFailed):
    """A stream ended without its end mark."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server. `base` ends without a slash; `model` None: the first one that it lists."""

    base: str
    key: str | None = None
    model: str | None = None


def is_address(text: str) -> bool:
    """Whether a setting names a server and not a folder."""
    return text.startswith(("http://", "https://"))


def read_address(text: str) -> Address:
    """Raises SettingError."""
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError as error:
        raise SettingError(f"{text!r} has no valid port; it looks like http://localhost:8000/v1") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingError(f"{text!r} is not the address of a server; it looks like http://localhost:8000/v1")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    netloc = host if port is None else f"{host}:{port}"
    path = parts.path.rstrip("/") or "/v1"
    return Address(urlunsplit((parts.scheme, netloc, path, "", "")), parts.username, parts.fragment or None)


class Server:
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
        import aiohttp

        if self._client is None:
            headers = {"Authorization": f"Bearer {self.address.key}"} if self.address.key else {}
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)
            self._client = aiohttp.ClientSession(headers=headers, timeout=timeout)
        return self._client

    @asynccontextmanager
    async def request(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer with status 200. Every failure is raised as an EngineFailed that names the server."""
        import aiohttp

        url = self.address.base + path
        try:
            async with await self._send(method, url, body) as answer:
                if answer.status != 200:
                    told = await answer.text()
                    raise ServerRefused(f"{url} answered {answer.status}: {told_by(told)}", answer.status, told)
                yield answer
        except TimeoutError as error:
            raise EngineFailed(f"{url} did not answer in time; the server may be overloaded") from error
        except (aiohttp.ClientError, OSError) as error:
            raise EngineFailed(f"{url} cannot be used ({why_of(error)}); check that the server runs") from error

    async def _send(self, method: str, url: str, body: Mapping[str, object] | None) -> aiohttp.ClientResponse:
        """A server may close a connection while it rests between two requests; the next one finds out by failing before
        any answer, and is sent once more."""
        import aiohttp

        client = self._open()
        try:
            return await client.request(method, url, json=body)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return await client.request(method, url, json=body)

    async def model_name(self) -> str:
        """The model to ask for, looked up once."""
        if self.model is None:
            async with self.request("GET", "/models") as answer:
                try:
                    self.model = str((await answer.json(content_type=None))["data"][0]["id"])
                except (ValueError, LookupError, TypeError) as error:
                    raise EngineFailed(f"{self.address.base}/models lists no model; name one: …/v1#MODEL") from error
        return self.model


def why_of(error: Exception) -> str:
    """The reason without the libraries' own details."""
    refused = isinstance(getattr(error, "os_error", error), ConnectionRefusedError)
    return "nothing listens there" if refused else str(error) or type(error).__name__


def told_by(body: str) -> str:
    """The text of an error answer, in OpenAI's form or any other."""
    try:
        return str(json.loads(body)["error"]["message"])[:300]
    except (ValueError, LookupError, TypeError):
        return body.strip()[:300] or "nothing"


async def events(answer: aiohttp.ClientResponse) -> AsyncGenerator[dict[str, object], None]:
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
            raise EngineFailed(f"{answer.url} sent a line that is not JSON: {data[:100]}") from error
        if not isinstance(event, dict):
            raise EngineFailed(f"{answer.url} sent JSON that is not an event: {data[:100]}")
        if "error" in event:
            raise ServerRefused(f"{answer.url} failed: {told_by(data)}", answer.status, data)
        yield event
    raise BrokeOff(f"{answer.url} broke off in the middle of its answer")
