"""Look after the frozen model states that are kept on disk: personas, voices, talks that paused.

  assistant capsule ls                   what is kept, largest use first
  assistant capsule show KEY             everything a file says about itself
  assistant capsule rm KEY …             remove; `rm --all` removes every one
  assistant capsule export KEY FILE      copy one out, checked first

Of a server that runs, what it keeps of the prompts that programs with this key sent (--key, else the token):

  assistant capsule running              what is kept, its own personas too
  assistant capsule pin KEY              keep it whatever else wants the room; `unpin` undoes that
  assistant capsule name KEY NAME        give it a name; a named one is kept on disk
  assistant capsule fork KEY NAME        the same state once more, under a name
  assistant capsule drop KEY             forget it

A capsule is one safetensors file. Removing it costs time at the next use, never words: talks are rebuilt from text.
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
HELP = "list, show, remove or export frozen model states; pin, name and fork those of a running server"
VERBS = {
    "running": "what a running server keeps", "pin": "keep it whatever else wants the room", "unpin": "undo that",
    "name": "give it a name", "fork": "the same state once more", "drop": "forget it",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("ls", help="what is kept")
    show = actions.add_parser("show", help="everything that a file says about itself")
    show.add_argument("key")
    rm = actions.add_parser("rm", help="remove")
    rm.add_argument("key", nargs="*")
    rm.add_argument("--all", action="store_true", help="every capsule")
    export = actions.add_parser("export", help="copy one out, checked first")
    export.add_argument("key")
    export.add_argument("file", type=Path)
    for verb, told in VERBS.items():
        action = actions.add_parser(verb, help=told)
        if verb != "running":
            action.add_argument("key")
        if verb in {"name", "fork"}:
            action.add_argument("name")
        add_server_arguments(action)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    config = load_config()
    if args.action in VERBS:
        return ask_server(running_server(args, config), args)
    shelf = Shelf(config.capsules)
    if args.action == "ls":
        print_list(shelf)
    elif args.action == "show":
        print(json.dumps(facts(shelf.about(args.key)), indent=2, ensure_ascii=False))
    elif args.action == "rm":
        return remove(shelf, shelf.names() if args.all else args.key)
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

    def names(self) -> list[str]:
        return [f"{prefix}{key}" for prefix, folder in self.folders().items() for key in sorted(folder.keys())]

    def find(self, key: str) -> tuple[CapsuleFolder, str]:
        """The folder and its own key; the beginning of a key will do where only one has it. Raises AssistantError."""
        found = [known for known in self.names() if known == key] or [
            known for known in self.names() if known.startswith(key) or known.partition("/")[2].startswith(key)
        ]
        if len(found) != 1:
            what = "no capsule" if not found else f"{len(found)} capsules"
            raise AssistantError(f"{what} called {key!r}; see `assistant capsule ls`")
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
            raise AssistantError(f"{file} is there already; choose another name")
        try:
            folder.load(name)
            shutil.copyfile(folder.path / (name + SUFFIX), file)
        except (CapsuleError, OSError) as error:
            raise AssistantError(f"{key} was not exported: {error}") from error


def ask_server(server: RunningServer, args: argparse.Namespace) -> int:
    from urllib.parse import quote

    if args.action == "running":
        rows = server.ask("GET", PATH)["data"]
        for one in rows:
            marks = [mark for mark in ("pinned", "listed") if one[mark]]
            marks += [f"and {one['shared_bytes'] / 1e6:.1f} MB of {one['base']}"] if one["base"] else []
            print(one["id"], one["name"] or "-", f"{one['tokens']} tokens", f"{one['bytes'] / 1e6:.1f} MB", *marks)
        held, shared = (sum(one[field] for one in rows) / 1e6 for field in ("bytes", "shared_bytes"))
        print(f"{len(rows)} capsules, {held:.1f} MB; {shared:.1f} MB more without the bases that they share")
        return 0
    path = f"{PATH}/{quote(args.key, safe='')}"
    match args.action:
        case "drop":
            server.ask("DELETE", path)
            print(f"dropped {args.key}")
            return 0
        case "fork":
            found = server.ask("POST", f"{path}/fork", {"name": args.name})
        case "name":
            found = server.ask("POST", path, {"name": args.name})
        case _:
            found = server.ask("POST", path, {"pinned": args.action == "pin"})
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
    for key in shelf.names():
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
        print("name the capsules to remove, or pass --all")
        return 2
    for key in keys:
        folder, name = shelf.find(key)
        folder.delete_file(name)
        print(f"removed {key}")
    return 0
