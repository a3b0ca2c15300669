"""Requests of a command to a server that runs."""

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
    parser.add_argument("--url", metavar="URL", help="address of the server (default: as the settings have it)")
    parser.add_argument("--key", metavar="KEY", dest="api_key", help="API key to ask with (default: the token)")


def running_server(args: argparse.Namespace, config: Config) -> RunningServer:
    url = args.url or f"http://{config.host}:{config.port}"
    return RunningServer(url.rstrip("/"), args.api_key or config.token)


@dataclass(frozen=True)
class RunningServer:
    """A server as it shows itself to a key."""

    url: str
    key: str

    def request(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        """Raises AssistantError with the server's own words."""
        import urllib.error
        import urllib.request

        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise AssistantError(_said(error.read()) or f"{self.url} answered with status {error.code}") from error
        except ValueError as error:
            told = f"{self.url} is not an assistant's address; it looks like http://127.0.0.1:8765"
            raise AssistantError(told) from error
        except OSError as error:
            refused = isinstance(getattr(error, "reason", error), ConnectionRefusedError)
            why = "nothing listens there" if refused else str(getattr(error, "reason", error))
            told = f"there is no server at {self.url} ({why}); start one with `assistant serve`"
            raise AssistantError(told) from error


def _said(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""
