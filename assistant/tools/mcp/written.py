"""`mcp.json` in the home folder: the servers whose tools a talk may use, in the form that desktop clients share.

    {"mcpServers": {
        "time":  {"command": "python", "args": ["-m", "mcp_server_time"]},
        "files": {"command": "npx", "args": ["-y", "…"], "env": {"KEY": "…"}, "confirm": true},
        "house": {"url": "http://127.0.0.1:8123/api/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}

Keys that only other clients know are named and change nothing, so that a file can be shared with them.
Its commands run with their owner's rights, so a file that somebody else could have written is not read. Nothing in this
program writes it.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from assistant.base.errors import ToolError
from assistant.tools.own import foreign
from assistant.tools.registry import TIMEOUT_S

FILE = "mcp.json"
KEYS = (
    "command", "args", "env", "cwd", "url", "headers", "type", "timeout", "confirm", "tools", "disabled", "enabled",
    "description", "insecure",
)  # fmt: skip
TOP_KEYS = ("mcpServers", "allow")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")
MOST_S = 600.0


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """One server as its owner wrote it: a `command` that is started here, or a `url` that is asked."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    timeout_s: float = TIMEOUT_S
    """For one call."""
    confirm: bool = False
    """Ask the person before each call that may change something."""
    tools: tuple[str, ...] | None = None
    """The tools that are used; None: all of them."""


@dataclass(frozen=True, slots=True)
class McpFile:
    """The file as it was read. `allowed`: addresses of further servers that clients may ask for. `problems`: sentences
    about what was left out."""

    path: Path
    plans: tuple[ServerPlan, ...] = ()
    allowed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def read_mcp_file(home: Path) -> McpFile:
    """The file of a home folder. One that is not there has no servers."""
    path = home / FILE
    if not path.is_file():
        return McpFile(path)
    try:
        if trouble := foreign(path.resolve()):
            raise ToolError(trouble)
        data = json.loads(path.read_text("utf-8-sig"), object_pairs_hook=_object)
        if not isinstance(data, dict) or not isinstance(servers := data.get("mcpServers", {}), dict):
            raise ToolError('it must look like {"mcpServers": {"time": {"command": "…", "args": []}}}')
        problems = [f"{path}: {key!r} means nothing here" for key in _unknown(data, TOP_KEYS)]
        allowed = _texts(data, "allow")
        for url in allowed:
            _check_url(url)
    except (OSError, UnicodeDecodeError, ValueError, RecursionError, ToolError) as error:
        return McpFile(path, problems=(f"{path} is left out: {error}",))
    plans = []
    for name, given in servers.items():
        try:
            if (plan := read_plan(name, given)) is not None:
                plans.append(plan)
                problems += [f"{path}: {key!r} of {name!r} means nothing here" for key in _unknown(given, KEYS)]
        except ToolError as error:
            problems.append(f"{path}: the server {name!r} is left out: {error}")
    return McpFile(path, tuple(plans), allowed, tuple(problems))


def read_plan(name: str, given: object) -> ServerPlan | None:
    """One entry of the file; None: it is switched off. Raises ToolError; its text continues after the server's name."""
    if not isinstance(given, dict):
        raise ToolError('it must be an object such as {"command": "…", "args": []}')
    if _switch(given, "disabled", False) or not _switch(given, "enabled", True):
        return None
    _unknown(given, KEYS)
    if given.get("type") == "sse":
        raise ToolError("the type sse is not spoken here; give the address of its streamable HTTP without a type")
    command, url = _text(given, "command"), _text(given, "url")
    if bool(command) == bool(url):
        raise ToolError("it needs either a command or a url")
    if url and not _switch(given, "insecure", False):
        _check_url(url)
    confirm, timeout = _switch(given, "confirm", False), given.get("timeout", TIMEOUT_S)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= MOST_S:
        raise ToolError(f"timeout is in seconds, above 0 and at most {MOST_S:g}")
    tools = _texts(given, "tools") if given.get("tools") is not None else None
    return ServerPlan(
        name, command, _texts(given, "args"), _table(given, "env"), _text(given, "cwd") or None, url,
        _table(given, "headers"), float(timeout), confirm, tools,
    )  # fmt: skip


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_url(url: str) -> None:
    """Words and keys cross the network in the clear over plain HTTP. Raises ToolError."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        known = False
    if not known:
        raise ToolError(f"{url!r} is not an address such as http://127.0.0.1:9000/mcp")
    if parts.scheme == "http" and not is_loopback(url):
        raise ToolError(
            f"{url} is on another machine and needs https, because anybody in between can read http; for a network "
            'of your own write "insecure": true beside it'
        )


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Raises ToolError for a name that stands twice, where JSON would drop the first without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ToolError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice in one object")
    return found


def _unknown(given: Mapping[str, object], keys: Sequence[str]) -> list[str]:
    """The keys that mean nothing here. Raises ToolError for one that was surely meant for us."""
    unknown = [str(key) for key in given if key not in keys]
    for key in unknown:
        if near := get_close_matches(key, keys, 1):
            raise ToolError(f"unknown {key!r}; did you mean {near[0]!r}?")
        if "tool" in key.lower() and "tools" in keys:  # another client's way of leaving some out
            raise ToolError(f"unknown {key!r}; name those to use under 'tools'")
    return unknown


def _switch(given: Mapping[str, object], key: str, default: bool) -> bool:
    value = given.get(key, default)
    if not isinstance(value, bool):
        raise ToolError(f"{key} must be true or false")
    return value


def _filled(text: str) -> str:
    """`${NAME}` and `${env:NAME}` stand for variables of the environment, `${NAME:-text}` for the text if that is not
    set. Raises ToolError for one that is not set and has no text."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if (found := os.environ.get(name, default)) is None:
            raise ToolError(
                f"the variable {name} is not set; set it before the start, or write ${{{name}:-…}} with what counts "
                "without it"
            )
        return found

    return _VARIABLE.sub(value, text)


def _text(given: Mapping[str, object], key: str) -> str:
    value = given.get(key, "")
    if not isinstance(value, str):
        raise ToolError(f"{key} must be text")
    return _filled(value)


def _texts(given: Mapping[str, object], key: str) -> tuple[str, ...]:
    values = given.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ToolError(f"{key} must be a list of texts")
    return tuple(map(_filled, values))


def _table(given: Mapping[str, object], key: str) -> dict[str, str]:
    values = given.get(key, {})
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise ToolError(f"{key} must be an object of texts")
    return {name: _filled(value) for name, value in values.items()}
