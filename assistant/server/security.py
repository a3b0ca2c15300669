"""Pure decisions about who may connect, by the address, Host, Origin and token of a request.

A page on another site can make a browser connect to this machine, and a name that the attacker owns can be made to
point at it. Origin refuses the first, Host the second. On loopback nothing else is needed; any other address needs a
token.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import urlsplit

from assistant.base.errors import SettingError

KEY_PROTOCOL = "openai-insecure-api-key."
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
TLS_HINT = (
    "Browsers give the microphone only to https pages: pass --tls CERT KEY (mkcert makes a pair that your own "
    "devices trust), or put a proxy with TLS in front and keep this server on loopback."
)


@dataclass(frozen=True, slots=True)
class Gate:
    """The requests that this server accepts. `token` None: none is required, which is for loopback only."""

    host: str
    token: str | None = None
    hosts: frozenset[str] = frozenset()
    """Further names under which this server may be addressed."""
    origins: frozenset[str] = frozenset()
    """Pages from elsewhere that may connect, as `https://name:port`."""

    def refuse_host(self, header: str | None) -> str | None:
        """Why this Host header is refused, or None. An address in digits cannot be rebound by a name server."""
        name = host_name(header)
        if name is None:
            return "the request has no valid Host header"
        if name in LOOPBACK_NAMES or name == self.host or name in self.hosts:
            return None
        # Only with a token: a server without one is for this machine, and nobody else addresses it.
        if self.token is not None and _is_address(name):
            return None
        return f"this server is not called {name!r}; start it with --allow {name} if it should be"

    def refuse_origin(self, origin: str | None, host: str | None) -> str | None:
        """Why a browser page of this origin is refused, or None. Programs that are not browsers send no Origin."""
        if origin is None or self.knows_origin(origin):
            return None
        parts = urlsplit(origin)
        if parts.scheme in {"http", "https"} and host is not None and parts.netloc == host.lower():
            return None
        return f"pages from {origin[:100]} may not connect; start the server with --allow {origin[:100]}"

    def knows_origin(self, origin: str) -> bool:
        """Whether it was allowed by name, which earns a cross-origin header."""
        return origin.rstrip("/").lower() in self.origins

    def admits(self, keys: Iterable[str], temporary: Iterable[str] = ()) -> bool:
        """Whether one of the keys a request carries is the token or a temporary key. Admits anyone if no token is asked
        for."""
        if self.token is None:
            return True
        good = (self.token, *temporary)  # compared so that the time of a refusal reveals nothing about them
        return any(hmac.compare_digest(key.encode(), known.encode()) for key in keys for known in good)


def make_gate(host: str, token: str | None, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> Gate:
    """The gate for a bind address. Raises SettingError for one that needs a token and has none."""
    if token is not None and len(token) < 8:
        raise SettingError("the token is shorter than 8 characters; make one with: openssl rand -hex 16")
    if not is_loopback(host) and token is None:
        raise SettingError(
            f"{host} can be reached from other machines, so a token is needed: write token = \"…\" into config.toml in "
            f"the home folder, which `assistant doctor` names (`openssl rand -hex 16` makes a token). {TLS_HINT}"
        )
    return Gate(
        host.lower(),
        token,
        frozenset(name.lower() for name in hosts),
        frozenset(origin.rstrip("/").lower() for origin in origins),
    )


def split_allowed(allow: Iterable[str]) -> tuple[list[str], list[str]]:
    """The setting `allow` as names of this server and origins of pages, which have a scheme."""
    allowed = list(allow)
    return [one for one in allowed if "://" not in one], [one for one in allowed if "://" in one]


def is_loopback(host: str) -> bool:
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(header: str | None) -> str | None:
    """The name in a Host header, without port and brackets, in lower case; None if it is not one."""
    if not header or any(c in header for c in "/@ ,\\"):  # refused, not interpreted: parsers disagree here
        return None
    try:
        parts = urlsplit(f"//{header}")
        parts.port  # noqa: B018 - raises if the port is not a number
        return parts.hostname.rstrip(".") if parts.hostname else None
    except ValueError:
        return None


def keys_of(authorization: str | None, subprotocols: str | None) -> list[str]:
    """The keys that a request carries: as a bearer, or as the subprotocol that browsers have to use."""
    keys = []
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        keys.append(value.strip())
    for name in (subprotocols or "").split(","):
        if name.strip().startswith(KEY_PROTOCOL):
            keys.append(name.strip().removeprefix(KEY_PROTOCOL))
    return keys


def from_elsewhere(origin: str | None, host: str | None) -> bool:
    """Whether the request comes from a page of another origin, including those that are allowed to talk."""
    return origin is not None and (host is None or urlsplit(origin).netloc != host.lower())


def realm_of(keys: Iterable[str]) -> str:
    """The realm of capsules that a request finds: that of its first key. The key cannot be recovered from it."""
    return next((blake2b(key.encode(), digest_size=16).hexdigest() for key in keys), "")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
