"""Parsers whose refusals help: the usage of the right command, and the nearest thing that was meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn

from assistant.app.removed import advice_for


class CommandParser(argparse.ArgumentParser):
    """A subcommand refuses unknown arguments itself: argparse leaves that to the top command, with its own usage."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._refusal(rest))
        return found, rest

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            meant = _meant(str(value), known, f"choose from {', '.join(known)}")
            if action.option_strings:
                self.error(f"{action.option_strings[0]} cannot be {value!r}; {meant}")
            self.error(f"there is no {str(action.metavar).lower()} {value!r}; {meant}")

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        if message.endswith(("ACTION", "COMMAND")):
            message += f"; `{self.prog} --help` lists them"
        self.exit(2, f"{self.prog}: {message}\n")

    def _refusal(self, rest: Sequence[str]) -> str:
        """An unknown option is named rather than the words behind it."""
        word = next((word for word in rest if word.startswith("-")), rest[0])
        flag = word.partition("=")[0]
        if not flag.startswith("-"):
            return f"{flag!r} is one argument too many; `{self.prog} --help` lists what is understood"
        if (advice := advice_for(flag)) is not None:
            return f"{flag} was removed; {advice}"
        known = [name for name in self._option_string_actions if name.startswith("--")]
        return f"there is no option {flag}; {_meant(flag, known, f'`{self.prog} --help` lists them')}"


def _meant(word: str, known: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]}?" if near else otherwise
