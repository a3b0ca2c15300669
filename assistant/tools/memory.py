"""`memory.toml` in the home folder: what is worth knowing in every talk, as sentences, one a line.

Its owner reads and edits it at any time: the file is looked at again whenever it has changed, and what stands in it
beside the sentences, comments included, survives our own changes. Any list of texts at its top counts; ours go into
`facts`. A file that cannot be read is reported and left as it is; the sentences of before hold until it can.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.tools.errors import AnswerError
from assistant.tools.rows import Thing
from capsules.durable import sweep, write_durably

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Array

FILE = "memory.toml"
MOST, LONGEST = 100, 300
"""Sentences, and characters of one: every talk begins with them."""
TRIES = 5
NEW = """\
# The assistant knows this of the people here. Every talk begins with it. Change it as you like.

facts = [
]
"""
UNREADABLE = (OSError, ValueError, RecursionError)
"""The last: more brackets in each other than the reader takes."""
_BESIDE = re.compile(r"""\s*(?P<fact>"(?:[^"\\]|\\.)*"|'[^']*')\s*,?\s*#\s*(?P<comment>.*?)\s*""")
log = logging.getLogger(__name__)


class _ChangedMeanwhile(Exception):
    """Another program wrote the file while we did."""


class MemoryFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._facts: tuple[str, ...] = ()
        self.complaint = ""
        """A sentence about what is wrong with the file as it was last read."""

    def facts(self) -> tuple[str, ...]:
        """The sentences as the file says them now, each once."""
        if (stamp := self.stamp()) != self._seen:
            self._seen, self.complaint = stamp, ""
            try:
                found = _facts_in(_text_of(self._path)) if stamp else ()
                self._facts = found[:MOST]
                if len(found) > MOST:
                    self.complaint = f"{FILE} has {len(found):,} sentences; talks begin with the first {MOST}."
            except UNREADABLE as error:
                self.complaint = f"{FILE} cannot be read, and what it said before holds until it can: {error}"
            if self.complaint:
                log.warning("%s: %s", self._path.parent, self.complaint)
        return self._facts

    def stamp(self) -> tuple[int, ...]:
        """A value that changes with the file; empty without one."""
        try:
            about = self._path.stat()
        except OSError:
            return ()
        return about.st_ino, about.st_mtime_ns, about.st_size

    def rows(self) -> tuple[Thing, ...]:
        """The same as rows. The number comes from the words, so that it outlives every restart and edit."""
        return tuple(Thing(serial_of(fact), fact) for fact in self.facts())

    def change(self, gone: Iterable[str], new: Iterable[str], day: str = "") -> None:
        """Take sentences out and put others in, on the disk when this returns. `day` stands beside new ones as a
        comment. Raises AnswerError."""
        out, put = set(gone), [fact for fact in new if fact not in self.facts()]
        if len(self.facts()) + len(put) > MOST:
            raise AnswerError(f"the memory is full ({MOST} sentences)", "I cannot remember any more.")
        from tomlkit import array  # here: most starts change nothing
        from tomlkit.items import Array

        def edit(document: TOMLDocument) -> None:
            for values in _lists_in(document):
                for index in reversed([at for at, value in enumerate(values) if plain(str(value)) in out]):
                    del values[index]
            facts = document.setdefault("facts", array().multiline(True))
            if not isinstance(facts, Array):
                raise ValueError("facts is not a list")
            for fact in put:
                facts.add_line(fact, indent="  ", comment=day or None)
            if put and not re.search(r"\n\s*\]$", facts.as_string()):
                facts.add_line(indent="")  # the comment would take in the bracket

        self._edit(edit)

    def reword(self, before: str, after: str) -> None:
        """Put a sentence in another's place. Raises AnswerError."""

        def edit(document: TOMLDocument) -> None:
            for values in _lists_in(document):
                for index in [at for at, value in enumerate(values) if plain(str(value)) == before]:
                    values[index] = after

        self._edit(edit)

    def comments(self) -> dict[str, str]:
        """The comments that stand beside sentences in the file."""
        try:
            lines = _text_of(self._path).splitlines()
            found = [one for one in map(_BESIDE.fullmatch, lines) if one]
            return {plain(tomllib.loads(f"fact = {one['fact']}")["fact"]): one["comment"] for one in found}
        except UNREADABLE:
            return {}

    def sweep_up(self) -> None:
        """Remove what killed writers left of it."""
        with suppress(OSError, RuntimeError):
            file = self._path.resolve()
            sweep(file.parent, file.name)

    def _edit(self, edit: Callable[[TOMLDocument], None]) -> None:
        """Write the file anew as `edit` leaves it, if it can still be read then. A change that its owner makes
        meanwhile is taken in. Raises AnswerError."""
        for _ in range(TRIES):
            with suppress(_ChangedMeanwhile):
                return self._edit_once(edit)
        raise AnswerError(f"{self._path} is being changed by another program", "I could not store that.")

    def _edit_once(self, edit: Callable[[TOMLDocument], None]) -> None:
        import tomlkit

        seen = self.stamp()

        def unchanged() -> None:
            if self.stamp() != seen:
                raise _ChangedMeanwhile

        try:
            file = self._path.resolve()  # a link stays one
            mode = file.stat().st_mode if file.exists() else 0
            if mode and not (mode & 0o222 and os.access(file, os.W_OK)):  # a rename would get past that
                raise PermissionError(f"{FILE} is read-only")
            document = tomlkit.parse(_text_of(file) if mode else NEW)
            edit(document)
            text = tomlkit.dumps(document)
            _facts_in(text)
            write_durably(file, [text.encode()], unchanged)
            if mode:
                file.chmod(mode & 0o777)
        except (*UNREADABLE, RuntimeError) as error:  # the last: a link that leads to itself
            raise AnswerError(f"{self._path} cannot be changed: {error}", "I could not store that.") from error


def _text_of(file: Path) -> str:
    """Line breaks as they are, and without the mark that some editors begin a file with."""
    return file.read_bytes().decode("utf-8-sig")


def plain(text: str) -> str:
    """A sentence as it is compared: one blank between words, and no more than may be stored."""
    return " ".join(text.split())[:LONGEST]


def _lists_in(document: TOMLDocument) -> list[Array]:
    from tomlkit.items import Array

    return [values for values in document.values() if isinstance(values, Array)]


def serial_of(fact: str) -> int:
    """Six bytes of a digest: JSON keeps them exactly."""
    return int.from_bytes(hashlib.blake2b(fact.encode(), digest_size=6).digest(), "big")


def _facts_in(text: str) -> tuple[str, ...]:
    found = [value for values in tomllib.loads(text).values() if isinstance(values, list) for value in values]
    facts = (plain(value) for value in found if isinstance(value, str))
    return tuple(dict.fromkeys(fact for fact in facts if fact))
