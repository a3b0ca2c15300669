"""Have this system start the assistant by itself, and again if it fails: systemd on Linux, launchd on macOS.

  assistant service install                     start now, and whenever you log in
  assistant service install -- --port 9000      with options of `assistant serve`
  assistant service print                       the file and the commands of an install, changing nothing
  assistant service status                      whether it runs, and where its page is
  assistant service rm                          stop it, and start it no more

It is yours and not the system's: no root is needed. A token belongs into $ASSISTANT_HOME/config.toml. Installing it
again, with other options, replaces it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assistant.base.errors import AssistantError
from assistant.commands._front import save
from assistant.commands._unit import LABEL, UNIT, Service, program_of

NAME = "service"
USAGE = "ACTION [-- OPTIONS]"
HELP = "start the assistant whenever you log in"


@dataclass(frozen=True, slots=True)
class Manager:
    """The program that starts services for a user. `file`: its file of ours; the rest are commands of it."""

    file: Path
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    status: tuple[str, ...]
    logs: str
    advice: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", prog="assistant service")
    for name, text in (("install", "start it now, and whenever you log in"), ("print", "what an install would do")):
        action = actions.add_parser(name, help=text)
        action.add_argument("options", nargs="*", metavar="OPTION", help="options of `assistant serve`, behind --")
    actions.add_parser("rm", help="stop it, and start it no more")
    actions.add_parser("status", help="whether it is installed and runs")


def run(args: argparse.Namespace) -> int:
    service = wanted(args.options) if args.action in ("install", "print") else None
    manager = find_manager(sys.platform)
    if manager is None:
        raise AssistantError(
            "neither systemd nor launchd is here, so this system has to be told in its own way to start: "
            + ("assistant serve --no-browser" if service is None else " ".join(service.program))
        )
    if service is not None:
        return install(service, manager) if args.action == "install" else preview(service, manager)
    return status(manager) if args.action == "status" else remove(manager)


def preview(service: Service, manager: Manager) -> int:
    print(f"# {manager.file}\n{service.text_for(manager.file)}")
    print("# then:", " && ".join(" ".join(command) for command in manager.start))
    return 0


def install(service: Service, manager: Manager) -> int:
    """Raises AssistantError if the manager does not start it; the service that was there, if any, then runs again."""
    file = manager.file
    (service.home / "logs").mkdir(parents=True, exist_ok=True)  # launchd makes no folder
    before = file.read_bytes() if file.is_file() else None
    file.parent.mkdir(parents=True, exist_ok=True)
    save(file, service.text_for(file).encode())
    if before is not None:
        _ask(manager.stop)  # launchd refuses to start what already runs, and systemd would let the old one run on
    if (trouble := _ask(manager.start)) is not None:
        kept = _put_back(before, manager)
        raise AssistantError(
            f"{trouble.rstrip('.')}. Nothing was installed{kept}. Its last words: {manager.logs}. Do this as the "
            "user who logged in, without sudo"
        )
    print(f"installed: {file}\nIt runs now, and starts when you log in. {manager.advice}".rstrip())
    print("`assistant service status` names its page, `assistant service rm` removes it.")
    return 0


def _put_back(before: bytes | None, manager: Manager) -> str:
    """The service whose file was `before` runs again, or what was begun is undone. Returns that in words."""
    if before is None:
        _ask(manager.stop)  # systemd links the unit before it starts it
        manager.file.unlink()
        return ""
    save(manager.file, before)
    trouble = _ask(manager.start)
    return ", and the old service runs on" if trouble is None else f", and the old service stands still: {trouble}"


def remove(manager: Manager) -> int:
    if not manager.file.is_file():
        print(f"there is no service of ours: {manager.file} does not exist")
        return 0
    trouble = _ask(manager.stop)
    manager.file.unlink()
    print(f"removed: {manager.file}. Talks, lists and models stay where they are.")
    if trouble is not None:
        print(f"it may still run until you log out: {trouble}", file=sys.stderr)
        return 1
    return 0


def status(manager: Manager) -> int:
    """Returns 0 if it is installed and runs, else 1."""
    if not manager.file.is_file():
        print("not installed; `assistant service install` does it")
        return 1
    program = program_of(manager.file.read_text("utf-8"))
    print(f"installed: {manager.file}\nstarts:    {' '.join(program)}")
    if not program or not Path(program[0]).is_file():
        print("that program is gone; `assistant service install` names the present one")
        return 1
    if (trouble := _ask((manager.status,))) is not None:
        print(f"It does not run ({trouble}). Its last words: {manager.logs}")
        return 1
    print(f"It runs. Its page: {_address(_parsed(program[3:]))}\nIts words: {manager.logs}")
    return 0


def wanted(options: Sequence[str]) -> Service:
    """The service of this program with these options. Raises AssistantError for what a service cannot have."""
    from assistant.app.config import load_config

    args = _parsed(options)
    if args.token:
        raise AssistantError('--token would be seen in the list of processes; write it into config.toml: token = "…"')
    for path in (*(args.tls or ()), args.llm, args.tts, args.asr):
        if path and Path(path).exists() and not Path(path).is_absolute():
            raise AssistantError(f"a service starts in another folder; write {path} as {Path(path).resolve()}")
    home = load_config(_settings(args)).home.resolve()  # refuses a setting that is wrong now
    return Service((str(_program()), "serve", "--no-browser", *options), home, os.environ.get("PATH", ""))


def _parsed(options: Sequence[str]) -> argparse.Namespace:
    """Options of `serve`, which refuses what it does not know."""
    from assistant.commands import serve
    from assistant.commands._parser import CommandParser

    parser = CommandParser(prog="assistant serve", usage=f"assistant serve {serve.USAGE}")
    serve.add_arguments(parser)
    return parser.parse_args(list(options))


def _settings(args: argparse.Namespace) -> dict[str, object]:
    from assistant.commands import serve
    from assistant.commands._front import model_flags

    return model_flags(args) | {name: getattr(args, name) for name in serve.SERVER_FLAGS}


def _address(args: argparse.Namespace) -> str:
    from assistant.app.config import load_config
    from assistant.commands.serve import address_of

    config = load_config(_settings(args))
    return address_of(config.host, config.port, args.tls is not None)


def _program() -> Path:
    """The installed command of this very environment: a PATH may name another one, or change."""
    name = "assistant.exe" if sys.platform == "win32" else "assistant"
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (folder / name).is_file():
            return folder / name
    raise AssistantError("the command `assistant` is not installed in this Python; install it first (docs/install.md)")


def find_manager(platform: str) -> Manager | None:
    """systemd or launchd of this user, or None."""
    if platform == "darwin":
        file = Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        domain = f"gui/{os.getuid()}"
        return Manager(
            file,
            (("launchctl", "bootstrap", domain, str(file)),),
            (("launchctl", "bootout", f"{domain}/{LABEL}"),),
            ("launchctl", "print", f"{domain}/{LABEL}"),
            "the file logs/service.log in the home folder",
        )
    if shutil.which("systemctl") is None:
        return None
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    control = ("systemctl", "--user")
    return Manager(
        folder / "systemd" / "user" / UNIT,
        ((*control, "daemon-reload"), (*control, "--quiet", "enable", "--now", UNIT)),
        ((*control, "disable", "--now", UNIT),),
        (*control, "is-active", "--quiet", UNIT),
        f"journalctl --user -u {UNIT}",
        "To have it run while you are logged out: loginctl enable-linger",
    )


def _ask(commands: Sequence[Sequence[str]]) -> str | None:
    """Run them until one fails. Returns what that one says, or None."""
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"`{' '.join(command)}` cannot be run ({error.strerror})"
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).split()) or f"status {done.returncode}"
            return f"`{' '.join(command)}`: {said}"
    return None

