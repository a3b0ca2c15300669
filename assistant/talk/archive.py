"""The talks that are kept in a home: found by their first words, read again, named, and removed when nobody wants them.

Each talk is a journal. It is read here without its lock, so a talk that is open, here or in another process, is listed
as well.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assistant.base.errors import TalkElsewhere, UnknownTalk
from assistant.talk.keeping import ABOUT, WORDS
from assistant.tools.rows import MEMORY
from capsules.durable import EntryFile, read_entries
from capsules.journal import SUFFIX, Journals, Rows, read_tables

KEPT_DAYS: Final = 30
"""A talk without a name goes so many days after it was last open, as its capsules do."""
BEGINS: Final = 120
"""Characters of the first words that are shown."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptTalk:
    """`name`: its owner's, or "". `begins`: the first words that were said to the assistant. `turns`: how often
    somebody spoke or wrote. `used_at`: when its journal last grew, seconds since 1970. `remembered`: the numbers of the
    sentences that the talk added to the memory, with the turn (1 is the first) that did."""

    talk: str
    name: str
    begins: str
    turns: int
    used_at: float
    nbytes: int
    remembered: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class SaidLine:
    """`role` is user or assistant; `cut`: it was interrupted, and `text` is what was heard of it."""

    role: str
    text: str
    cut: bool = False


class Archive:
    """`folder` holds the journals, `pictures` a folder of pictures for each talk. None: nothing is kept. `journals`:
    the process's own, of which some are open."""

    def __init__(self, folder: Path | None, pictures: Path | None = None, journals: Journals | None = None) -> None:
        self.folder, self._pictures, self._journals = folder, pictures, journals
        self._read: dict[str, tuple[tuple[int, int], KeptTalk | None]] = {}
        """By talk, with inode and size of the journal that it was read from."""

    def earlier(self) -> list[KeptTalk]:
        """Every talk in which something was said, the latest first. A journal that cannot be read is left out."""
        found = [self._about(path) for path in self._paths()]
        return sorted((one for one in found if one is not None), key=lambda one: -one.used_at)

    def talks(self) -> list[str]:
        """The ids of all, also of those in which nothing was said."""
        return [path.stem for path in self._paths()]

    def lines_of(self, talk: str) -> list[SaidLine]:
        """All that was said in a talk. Raises UnknownTalk."""
        try:
            return [*_lines(self._tables(self._path(talk)).get(WORDS, {}))]
        except (OSError, ValueError) as error:
            raise UnknownTalk(f"no talk {talk[:60]!r} is kept here") from error

    def delete_talk(self, talk: str) -> None:
        """Delete a talk that this process does not have open, and its pictures. Raises UnknownTalk; TalkElsewhere while
        another program has it open."""
        path = self._path(talk)
        try:
            EntryFile(path, read_entries(path).end).close_file()  # nobody else has its lock
        except BlockingIOError as error:
            raise TalkElsewhere(f"talk {talk} is open in another program; delete it there, or end it first") from error
        except OSError as error:
            raise UnknownTalk(f"no talk {talk[:60]!r} is kept here") from error
        path.unlink(missing_ok=True)
        if self._pictures is not None:
            shutil.rmtree(self._pictures / talk, ignore_errors=True)

    def delete_old(self, now: float) -> int:
        """Delete the talks without a name that nobody has opened for `KEPT_DAYS`; returns how many went."""
        gone = 0
        for path in self._paths():
            with suppress(OSError, TalkElsewhere, UnknownTalk):
                if now - path.stat().st_mtime < KEPT_DAYS * 86_400:
                    continue
                about = self._about(path)
                if about is not None and about.name:
                    continue
                self.delete_talk(path.stem)
                gone += 1
        return gone

    # -------------------------------------------------------------------------------- inside

    def _paths(self) -> Iterable[Path]:
        return [] if self.folder is None else sorted(self.folder.glob(f"*{SUFFIX}"))

    def _path(self, talk: str) -> Path:
        path = None if self.folder is None else self.folder / f"{talk}{SUFFIX}"
        if path is None or path.parent != self.folder or not path.is_file():
            raise UnknownTalk(f"no talk {talk[:60]!r} is kept here")
        return path

    def _tables(self, path: Path) -> Mapping[str, Rows]:
        return read_tables(path) if self._journals is None else self._journals.tables_of(path.stem)

    def _about(self, path: Path) -> KeptTalk | None:
        try:
            stat = path.stat()
            stamp = stat.st_ino, stat.st_size
            known = self._read.get(path.stem)
            if known is None or known[0] != stamp:
                about = _about(path.stem, self._tables(path), stat.st_mtime, stat.st_size)
                known = self._read[path.stem] = stamp, about
            return known[1]
        except (OSError, ValueError) as error:
            log.warning("talk %s cannot be listed: %s", path.stem, error)
            return None


def _about(talk: str, tables: Mapping[str, Rows], used_at: float, nbytes: int) -> KeptTalk | None:
    said = [line for line in _lines(tables.get(WORDS, {})) if line.role == "user"]
    if not said:
        return None
    begins = " ".join(said[0].text.split())
    shown = begins if len(begins) <= BEGINS else f"{begins[:BEGINS]}…"
    name = str(tables.get(ABOUT, {}).get("name") or "")
    return KeptTalk(talk, name, shown, len(said), used_at, nbytes, _remembered(tables.get(WORDS, {})))


def _remembered(rows: Rows) -> dict[int, int]:
    found: dict[int, int] = {}
    turn = 0
    for row in rows.values():
        turn += any(line.role == "user" for line in _lines({"": row}))
        changes = row.get("changes") if isinstance(row, Mapping) else None
        for key, change in changes.items() if isinstance(changes, Mapping) else ():
            slot, _, serial = str(key).rpartition(" ")
            if slot == MEMORY and isinstance(change, Sequence) and change[-1] is not None:
                found[int(serial)] = turn
    return found


def _lines(rows: Rows) -> Iterator[SaidLine]:
    """Raises ValueError for rows that no talk wrote."""
    for row in rows.values():
        if not isinstance(row, Mapping):
            raise ValueError(f"{row!r} is not an item")
        content, role = row.get("content"), str(row.get("role"))
        if row.get("hidden") or row.get("nod") or role not in ("user", "assistant") or not isinstance(content, list):
            continue
        parts = [part for part in content if isinstance(part, Mapping)]
        said = " ".join(str(part.get("text") or part.get("transcript") or "") for part in parts).strip()
        pictured = any("picture" in part for part in parts)
        if said or pictured:
            yield SaidLine(role, said or "(a picture)", role == "assistant" and row.get("status") == "incomplete")
