"""How a command asks a server that runs."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assistant.base.errors import AssistantError

if TYPE_CHECKING:
    from assistant.app.config import Config

PATIENCE_S = 600.0
"""Waking large models reads all of them."""


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="of the server (from the settings: http://127.0.0.1:8765)")
    parser.add_argument("--key", dest="api_key", help="the key that the program sends (the token)")


def running_server(args: argparse.Namespace, config: Config) -> RunningServer:
    url = args.url or f"http://{config.host}:{config.port}"
    return RunningServer(url.rstrip("/"), args.api_key or config.token)


@dataclass(frozen=True)
class RunningServer:
    """A server as it shows itself to a key."""

    url: str
    key: str

    def ask(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        """Raises AssistantError with what the server says."""
        import urllib.error
        import urllib.request

        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise AssistantError(_said(error.read()) or f"{self.url} answered {error.code}") from error
        except (OSError, ValueError) as error:
            raise AssistantError(f"no server answers at {self.url} ({error}); start one: assistant serve") from error


def _said(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""
