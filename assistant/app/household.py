"""The home's timers, alarms, reminders, lists and notes: opened, taken over from older talks, and told aloud.

Older versions stored them in each talk's journal. They are copied from there once, when the home has no store yet;
nothing is removed from the journals.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, TypeAlias

from assistant.base.errors import AssistantError
from assistant.contracts import TTS
from assistant.events import Pcm
from assistant.talk.keeping import KEPT
from assistant.tools.answers import listed
from assistant.tools.errors import AnswerError
from assistant.tools.home import Change, HomeRows, HomeTaken
from assistant.tools.rows import NOTES, REMINDERS, RINGS, TIMERS, Cells, Promise, Row, Thing
from capsules.journal import Journals

Play: TypeAlias = Callable[[AsyncIterator[Pcm]], Awaitable[bool]]
"""Plays sound on this machine's loudspeaker; returns whether it was played to the end."""
STORE = "household.json"
log = logging.getLogger(__name__)


def open_household(home: HomeRows, folder: Path, journals: Journals, report: Callable[[str], None]) -> None:
    """Open the store of a home folder; another program that has it keeps it, and is named."""
    store = folder / STORE
    fresh = not store.is_file()
    try:
        home.open()
    except HomeTaken as error:
        report(f"{error}: timers, alarms, reminders and lists are there and not here")
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AssistantError(f"{store} cannot be read ({error}); move it away to begin with empty lists") from error
    if fresh:
        changes, over = _taken_over(folder / "talks", journals, home)
        try:
            home.change(changes)
        except AnswerError as error:
            report(f"{store}: {error}")
            return
        if changes:
            report(f"{len(changes)} timers, alarms, reminders and list entries of earlier talks now belong to the home")
        if over:
            report(f"over since an earlier talk: {listed(over, '')}")


def _taken_over(talks: Path, journals: Journals, home: HomeRows) -> tuple[list[Change], list[str]]:
    """The rows that earlier talks stored, the same thing once, and which of them are over."""
    found: dict[tuple[str, str], Change] = {}
    over: list[str] = []
    for path in sorted(talks.glob("*.journal")):
        try:
            journal = journals.open(path.stem)
            slots: Mapping[str, Any] = {} if journal is None else journal.table(KEPT)
            for slot, rows in slots.items():
                for where, row in _rows_of(slot, rows, home, over):
                    key = row.text.casefold() if isinstance(row, Thing) else str(row.serial)
                    found.setdefault((where, key), (where, None, row))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("what %s stored for its tools cannot be read (%s)", path, error)
        finally:
            journals.close(path.stem)
    return [*found.values()], over


def _rows_of(slot: str, rows: Sequence[Cells], home: HomeRows, over: list[str]) -> Iterator[tuple[str, Row]]:
    """Each as it is stored now. A reminder without a moment, or whose moment is over, goes on as a note."""
    now = home.now()
    for cells in rows:
        match cells:
            case [_, str(text), str(label), str() | None as at, str(words)]:
                pass
            case _:
                raise ValueError(f"{cells!r} is not a row")
        moment = None if at is None else dt.datetime.fromisoformat(at).astimezone(now.tzinfo)
        if slot not in RINGS:
            yield slot, Thing(home.next_serial(), text)
        elif moment is not None and moment.timestamp() > now.timestamp():
            task = {TIMERS: text, REMINDERS: words.removeprefix("Remember: ").removesuffix(".")}
            yield slot, Promise(home.next_serial(), task.get(slot, ""), moment, label)
        elif slot == REMINDERS:
            yield NOTES, Thing(home.next_serial(), text)
        else:
            over.append(f"{slot}, {text}")


def speaks_aloud(tts: TTS, voice: str, play: Play) -> Callable[[str], Awaitable[bool]]:
    """Says words on the loudspeaker; the result is whether they were said."""

    async def sound(words: str) -> AsyncIterator[Pcm]:
        async with aclosing(tts.speak("household", voice, "household", words)) as chunks:
            async for chunk in chunks:
                yield chunk.pcm

    async def aloud(words: str) -> bool:
        try:
            return await play(sound(words))
        except AssistantError as error:
            log.warning("%r could not be said aloud: %s", words, error)
            return False
        finally:
            if tts.state is not None:
                with suppress(AssistantError):
                    await tts.state.forget_talk("household")

    return aloud
