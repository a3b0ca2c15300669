"""Manage capsules, the frozen model states of personas, voices and paused talks.

  assistant capsule list                 list the capsules on disk
  assistant capsule show KEY             print everything that a capsule's file says
  assistant capsule rm KEY …             remove capsules; `rm --all` removes all of them
  assistant capsule export KEY FILE      check a capsule and copy it

Capsules of a running server (for the given API key, --key):

  assistant capsule running              list them, with those of the server's personas
  assistant capsule pin KEY              never remove it to make room; `unpin` undoes that
  assistant capsule name KEY NAME        give it a name; named capsules are kept on disk
  assistant capsule fork KEY NAME        copy it under another name
  assistant capsule drop KEY             remove it

A capsule is one safetensors file. Removing it costs time at the next use, but no words: talks are rebuilt from text.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError
from assistant.commands._server import RunningServer, add_server_arguments, running_server

if TYPE_CHECKING:
    from capsules.disk import About, CapsuleFolder

NAME = "capsule"
PATH = "/v1/capsules"
KEY_HELP = "a capsule's key, as `assistant capsule list` prints it; its beginning is enough"
USAGE = "ACTION [OPTIONS]"
HELP = "list, show, remove or export capsules (frozen model states)"
VERBS = {
    "running": "list the capsules of a running server", "pin": "never remove a capsule to make room",
    "unpin": "undo pin", "name": "name a capsule", "fork": "copy a capsule under a name", "drop": "remove a capsule",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", prog="assistant capsule")
    actions.add_parser("ls", aliases=["list"], help="list the capsules on disk")
    show = actions.add_parser("show", help="print everything that a capsule's file says")
    show.add_argument("key", metavar="KEY", help=KEY_HELP)
    rm = actions.add_parser("rm", help="remove capsules from disk")
    rm.add_argument("key", nargs="*", metavar="KEY", help=KEY_HELP)
    rm.add_argument("--all", action="store_true", help="remove every capsule")
    export = actions.add_parser("export", help="check a capsule and copy it")
    export.add_argument("key", metavar="KEY", help=KEY_HELP)
    export.add_argument("file", type=Path, metavar="FILE", help="the copy, a new file")
    for verb, told in VERBS.items():
        action = actions.add_parser(verb, help=told)
        if verb != "running":
            action.add_argument("key", metavar="KEY", help="a capsule's key, as `assistant capsule running` lists it")
        if verb in {"name", "fork"}:
            action.add_argument("name", metavar="NAME", help="its name from now on")
        add_server_arguments(action)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    config = load_config()
    if args.action in VERBS:
        return ask_server(running_server(args, config), args)
    shelf = Shelf(config.capsules)
    if args.action in {"ls", "list"}:
        print_list(shelf)
    elif args.action == "show":
        print(json.dumps(facts(shelf.about(args.key)), indent=2, ensure_ascii=False))
    elif args.action == "rm":
        return remove(shelf, shelf.known_keys() if args.all else args.key)
    else:
        shelf.export(args.key, args.file)
        print(f"{args.key} → {args.file} ({args.file.stat().st_size / 1e6:.1f} MB)")
    return 0


@dataclass(frozen=True)
class Shelf:
    """All capsule folders below one: keys are `FOLDER/KEY`, or `KEY` where the files lie at the top."""

    root: Path

    def folders(self) -> dict[str, CapsuleFolder]:
        from capsules.disk import SUFFIX, CapsuleFolder

        if not self.root.is_dir():
            return {}
        places = [self.root, *sorted(path for path in self.root.iterdir() if path.is_dir())]
        return {
            "" if place == self.root else f"{place.name}/": CapsuleFolder(place)
            for place in places
            if any(place.glob(f"*{SUFFIX}"))
        }

    def known_keys(self) -> list[str]:
        return [f"{prefix}{key}" for prefix, folder in self.folders().items() for key in sorted(folder.keys())]

    def find(self, key: str) -> tuple[CapsuleFolder, str]:
        """The folder and its own key; the beginning of a key will do where only one has it. Raises AssistantError."""
        found = [known for known in self.known_keys() if known == key] or [
            known for known in self.known_keys() if known.startswith(key) or known.partition("/")[2].startswith(key)
        ]
        if len(found) != 1:
            told = f"{len(found)} capsules begin with {key!r}" if found else f"there is no capsule {key!r}"
            raise AssistantError(f"{told}; `assistant capsule list` prints every key")
        prefix, slash, name = found[0].rpartition("/")
        return self.folders()[prefix + slash], name

    def about(self, key: str) -> About:
        from capsules.errors import CapsuleError

        folder, name = self.find(key)
        try:
            return folder.about(name)
        except CapsuleError as error:
            raise AssistantError(str(error)) from error

    def export(self, key: str, file: Path) -> None:
        """Copy a capsule whose checksum holds. Raises AssistantError."""
        from capsules.disk import SUFFIX
        from capsules.errors import CapsuleError

        folder, name = self.find(key)
        if file.exists():
            raise AssistantError(f"there is a file {file} already; choose another name")
        try:
            folder.load(name)
            shutil.copyfile(folder.path / (name + SUFFIX), file)
        except (CapsuleError, OSError) as error:
            raise AssistantError(f"{key} was not exported: {error}") from error


def ask_server(server: RunningServer, args: argparse.Namespace) -> int:
    from urllib.parse import quote

    if args.action == "running":
        rows = server.request("GET", PATH)["data"]
        for one in rows:
            marks = [mark for mark in ("pinned", "listed") if one[mark]]
            marks += [f"and {one['shared_bytes'] / 1e6:.1f} MB of {one['base']}"] if one["base"] else []
            print(one["id"], one["name"] or "-", f"{one['tokens']} tokens", f"{one['bytes'] / 1e6:.1f} MB", *marks)
        held, shared = (sum(one[field] for one in rows) / 1e6 for field in ("bytes", "shared_bytes"))
        print(f"{len(rows)} capsules, {held:.1f} MB; sharing their bases saves {shared:.1f} MB")
        return 0
    path = f"{PATH}/{quote(args.key, safe='')}"
    match args.action:
        case "drop":
            server.request("DELETE", path)
            print(f"dropped {args.key}")
            return 0
        case "fork":
            found = server.request("POST", f"{path}/fork", {"name": args.name})
        case "name":
            found = server.request("POST", path, {"name": args.name})
        case _:
            found = server.request("POST", path, {"pinned": args.action == "pin"})
    print(found["id"], found["name"] or "-", "pinned" if found["pinned"] else "")
    return 0


def facts(about: About) -> dict[str, object]:
    """A capsule's own account as JSON; its tokens only counted, they are somebody's words."""
    return {
        "key": about.key,
        "label": about.label,
        "engine": about.scope,
        "position": about.position,
        "tokens": len(about.tokens),
        "bytes": about.file_bytes,
        "base": None if about.base is None else {"key": about.base.key, "tokens": about.base.position},
        "used": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(about.used_at)),
        "fingerprint": {name: str(value) for name, value in vars(about.fingerprint).items()},
        "host": dict(about.host),
        "notes": dict(about.notes),
    }


def print_list(shelf: Shelf) -> None:
    from rich.console import Console
    from rich.table import Table

    from capsules.errors import CapsuleError

    table = Table("key", "label", "engine", "position", "MB", "and of its base", "last used")
    table.columns[0].no_wrap = True  # what the other commands ask for
    total = 0
    for key in shelf.known_keys():
        folder, name = shelf.find(key)
        try:
            about = folder.about(name)
        except CapsuleError as error:
            table.add_row(key, f"damaged: {error}"[:60], "", "", "", "", "")
            continue
        total += about.file_bytes
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(about.used_at))
        megabytes = f"{about.file_bytes / 1e6:.1f}"
        base = "" if about.base is None else f"{about.base.nbytes / 1e6:.1f} ({about.base.label})"
        table.add_row(key, about.label, about.scope, str(about.position), megabytes, base, used)
    if table.row_count:
        Console().print(table)
    print(f"{table.row_count} capsules, {total / 1e6:.1f} MB in {shelf.root}")


def remove(shelf: Shelf, keys: list[str]) -> int:
    if not keys:
        raise AssistantError("name the capsules to remove, or pass --all")
    for key in keys:
        folder, name = shelf.find(key)
        folder.delete_file(name)
        print(f"removed {key}")
    return 0
