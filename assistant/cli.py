"""The `assistant` command: finds one module per subcommand and hands over; heavy imports wait until then."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

import assistant.commands
from assistant.base.errors import AssistantError
from assistant.commands._parser import CommandParser
from assistant.commands._run import INTERRUPTED

ABOUT = """\
A local voice assistant: it listens, answers aloud, and stops when you interrupt. Nothing leaves this machine.
"""
FIRST_STEPS = """\
first steps:
  assistant serve                     open the page in a browser and talk
  assistant ask question.wav --out reply.wav
  assistant ask --say "what time is it" --out reply.wav
  assistant transcribe memo.mp3       a recording as text, or as subtitles
  assistant doctor                    check this machine, with advice on what to install

`assistant help COMMAND` explains a command. Models, capsules and logs live in $ASSISTANT_HOME
(default: the user data directory of this platform).
"""
ORDER = ("serve", "talk", "ask", "transcribe", "pull", "doctor", "voice", "capsule", "mcp", "wyoming", "service",
         "sleep", "wake", "bench")  # fmt: skip


class CommandModule(Protocol):
    """A module in `assistant/commands`. `USAGE`: its arguments in one line; `run` returns the exit status."""

    NAME: str
    USAGE: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


class ShowVersion(argparse.Action):
    """Prints the version and ends. It is looked up only when asked for: that reads the installed packages."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"assistant {version('voice-assistant')}")
        except PackageNotFoundError:
            print("assistant, run from its sources without being installed")
        parser.exit()


def command_modules() -> list[CommandModule]:
    """All subcommands, the ones that people meet first in front."""
    names = [found.name for found in pkgutil.iter_modules(assistant.commands.__path__)]
    modules = [
        cast(CommandModule, importlib.import_module(f"assistant.commands.{name}"))
        for name in names
        if not name.startswith("_")
    ]
    return sorted(modules, key=lambda m: (ORDER.index(m.NAME) if m.NAME in ORDER else len(ORDER), m.NAME))


def build_parser() -> argparse.ArgumentParser:
    """The parser of all subcommands; a parsed command has its module's `run` under `run`."""
    parser = CommandParser(
        prog="assistant",
        usage="assistant COMMAND [OPTIONS]",
        description=ABOUT,
        epilog=FIRST_STEPS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="assistant")
    for module in command_modules():
        sub = commands.add_parser(
            module.NAME,
            help=module.HELP,
            usage=f"assistant {module.NAME} {module.USAGE}".strip(),
            description=(module.__doc__ or module.HELP).strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def as_option(argv: Sequence[str]) -> list[str]:
    """`help COMMAND` and `version` as the options that they mean."""
    match argv:
        case ["help", *command]:
            return [*command, "--help"]
        case ["version"]:
            return ["--version"]
        case _:
            return list(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Errors that we raise on purpose are one line, not a traceback."""
    try:
        parser = build_parser()  # finds and imports every command: a Ctrl-C may well come meanwhile
        args = parser.parse_args(as_option(sys.argv[1:] if argv is None else argv))
        if not hasattr(args, "run"):
            parser.print_help()
            return 0
        return int(args.run(args))
    except KeyboardInterrupt:
        print("stopped.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if not is_told(error):
            raise
        print(f"assistant: {error}", file=sys.stderr)
        return 1


def is_told(error: Exception) -> bool:
    """Whether the error was raised on purpose, by us or by an engine, and its text is meant for a person."""
    bases = (("capsules.errors", "CapsuleError"), ("llm_engine.errors", "LLMError"), ("tts_engine.errors", "TTSError"))
    loaded = [getattr(sys.modules[module], name) for module, name in bases if module in sys.modules]
    return isinstance(error, (AssistantError, *loaded))


def run_and_exit() -> NoReturn:
    """Entry point of the process. After a stop everything is put away by then, so libraries are not unloaded."""
    try:
        try:
            status: str | int | None = main()
        except SystemExit as end:  # of argparse, behind a help text
            status = end.code
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has had enough, as `head` has; what is left goes nowhere at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.stderr.flush()
    if status == INTERRUPTED:
        os._exit(status)
    sys.exit(status)
