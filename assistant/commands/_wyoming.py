"""The address at which Home Assistant is served: read, checked and named."""

from __future__ import annotations

import socket
import sys
from urllib.parse import urlsplit

from assistant.base.errors import SettingError
from assistant.base.extras import adding

WYOMING = "tcp://127.0.0.1:10400"
URI_HELP = f"address for Home Assistant, over Wyoming: {WYOMING} is the usual one"


def wyoming_address(uri: str) -> tuple[str, int]:
    """Host and port, with a note if others can reach them. Raises SettingError, also where the package is missing."""
    from assistant.server.security import is_loopback

    host, port = read_uri(uri)
    try:
        import wyoming  # noqa: F401
    except ImportError as error:
        raise SettingError(f"the Wyoming protocol needs the package wyoming; run: {adding('wyoming')}") from error
    if not is_loopback(host):
        print("note: Wyoming has no key and no encryption: everybody who reaches this port can hear answers, use the "
              "tools and change your lists. Let a firewall admit Home Assistant alone.", file=sys.stderr)  # fmt: skip
    return host, port


def read_uri(uri: str) -> tuple[str, int]:
    """Host and port. Raises SettingError."""
    try:
        parts = urlsplit(uri)
        host, port, scheme = parts.hostname, parts.port, parts.scheme
    except ValueError:
        host = port = scheme = None
    if host is None or port is None or scheme != "tcp":
        raise SettingError(f"--uri: {uri!r} is not an address such as {WYOMING}")
    return host, port


def uri_line(sock: socket.socket) -> str:
    """The line that names the address of a socket."""
    host, port = sock.getsockname()[:2]
    return f"wyoming    tcp://{f'[{host}]' if ':' in host else host}:{port}"
