"""List the talks that are kept, and forget them for good.

  assistant talks ls                list them, the latest first, by name or first words
  assistant talks show ID           print what was said in one
  assistant talks rm ID …           delete talks with their pictures and capsules; `rm all` deletes all of them

A talk without a name is deleted 30 days after it was last open; the page gives names. A talk that is open on a running
server is deleted on its page.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError

if TYPE_CHECKING:
    from assistant.app.config import Config
    from assistant.talk.archive import Archive

NAME = "talks"
USAGE = "ACTION [OPTIONS]"
HELP = "list earlier talks, and forget them for good"
ID_HELP = "a talk, as `assistant talks ls` prints it; the end of its id is enough"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", prog="assistant talks")
    actions.add_parser("ls", aliases=["list"], help="list the talks that are kept")
    show = actions.add_parser("show", help="print what was said in a talk")
    show.add_argument("talk", metavar="ID", help=ID_HELP)
    rm = actions.add_parser("rm", help="delete talks for good")
    rm.add_argument("talk", nargs="+", metavar="ID", help=f"{ID_HELP}; all: every talk")


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.talk.archive import Archive

    config = load_config()
    archive = Archive(config.home / "talks", config.home / "pictures")
    if args.action in {"ls", "list"}:
        print_list(archive)
    elif args.action == "show":
        for line in archive.lines_of(found(archive, args.talk)):
            print(f"{'you' if line.role == 'user' else 'assistant':>9}  {line.text}{' —' if line.cut else ''}")
    else:
        remove(archive, config, [one.talk for one in archive.earlier()] if args.talk == ["all"] else args.talk)
    return 0


def found(archive: Archive, asked: str) -> str:
    """The talk of this id, or of the only one that ends so. Raises AssistantError."""
    known = [one.talk for one in archive.earlier()]
    fits = [talk for talk in known if talk == asked] or [talk for talk in known if talk.endswith(asked)]
    if len(fits) != 1:
        told = f"{len(fits)} talks end with {asked!r}" if fits else f"there is no talk {asked!r}"
        raise AssistantError(f"{told}; `assistant talks ls` prints every id")
    return fits[0]


def print_list(archive: Archive) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("id", "last used", "turns", "name or first words")
    table.columns[0].no_wrap = True  # what the other commands ask for
    talks = archive.earlier()
    for one in talks:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.used_at))
        table.add_row(one.talk, used, str(one.turns), one.name or one.begins)
    if talks:
        Console().print(table)
    print(f"{len(talks)} talks, {sum(one.nbytes for one in talks) / 1e6:.1f} MB in {archive.folder}")


def remove(archive: Archive, config: Config, asked: list[str]) -> None:
    for talk in [found(archive, one) for one in asked]:
        archive.delete_talk(talk)
        remove_capsules(config, talk)
        print(f"deleted {talk}")


def remove_capsules(config: Config, talk: str) -> None:
    """Delete the frozen states of a talk: they hold its words as tokens."""
    from assistant.commands.capsule import Shelf
    from capsules.errors import CapsuleError

    for folder in Shelf(config.capsules).folders().values():
        for key in [*folder.keys()]:
            try:
                name = str(folder.about(key).notes.get("name", ""))
            except CapsuleError:
                continue
            if name.startswith(f"talk/{talk}/"):
                folder.delete_file(key)
