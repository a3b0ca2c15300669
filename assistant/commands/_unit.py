"""The file that has a system start the assistant by itself: a user unit of systemd, or an agent of launchd.

Both are text made of the same facts. Nothing here runs a program or touches a file.
"""

from __future__ import annotations

import plistlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.parsers.expat import ExpatError

from assistant.commands._run import INTERRUPTED

UNIT, LABEL = "assistant.service", "local.voice-assistant"
RESTART_S, STARTS = 5, 5
"""Seconds before a server that failed starts again, and after how many failures in a row it is left alone: a wrong
setting stays wrong."""
READY_S, STOP_S = 300, 10
"""Time to check the settings and open the port, on a slow machine that loads torch the first time; and to end."""


@dataclass(frozen=True, slots=True)
class Service:
    """One program and its home. `search`: the PATH by which MCP servers and the C++ compiler are found; that of a
    service is shorter than that of a shell."""

    program: tuple[str, ...]
    home: Path
    search: str

    def text_for(self, file: Path) -> str:
        return self.agent() if file.suffix == ".plist" else self.unit()

    def unit(self) -> str:
        """Source: systemd.service(5), systemd.exec(5). The server reports when its port is open, so that an install
        fails if it cannot be. The status of a stop is a success, or each stop would show as a failure."""
        environment = "\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in self._environment())
        return f"""\
[Unit]
Description=Local voice assistant
StartLimitIntervalSec={RESTART_S * STARTS * 4}
StartLimitBurst={STARTS}

[Service]
Type=notify
ExecStart={" ".join(_quoted(word).replace("$", "$$") for word in self.program)}
{environment}
Restart=on-failure
RestartSec={RESTART_S}
TimeoutStartSec={READY_S}
TimeoutStopSec={STOP_S}
SuccessExitStatus={INTERRUPTED}

[Install]
WantedBy=default.target
"""

    def agent(self) -> str:
        """Source: launchd.plist(5)."""
        log = str(self.home / "logs" / "service.log")
        return plistlib.dumps({
            "Label": LABEL,
            "ProgramArguments": list(self.program),
            "EnvironmentVariables": dict(self._environment()),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": RESTART_S,
            "ExitTimeOut": STOP_S,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }).decode()  # fmt: skip

    def _environment(self) -> tuple[tuple[str, str], ...]:
        return (("ASSISTANT_HOME", str(self.home)), ("PATH", self.search), ("PYTHONUNBUFFERED", "1"))


def program_of(text: str) -> list[str]:
    """The program that a file of ours starts, empty if it is another's file."""
    if text.startswith("<?xml"):
        try:
            return [str(word) for word in plistlib.loads(text.encode()).get("ProgramArguments", [])]
        except (plistlib.InvalidFileException, ExpatError):
            return []
    found = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    words: Sequence[str] = re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]) if found else []
    return [_plain(word) for word in words]


def _quoted(word: str) -> str:
    """One word of a unit. `%` begins a specifier there."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def _plain(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word).replace("%%", "%").replace("$$", "$")
