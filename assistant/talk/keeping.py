"""A talk's words as a table of its journal, and back.

Every change is in the journal before a front is notified of it (`TalkContext.emit`): so a front finds everything again
that it was notified of, even if the process was killed the moment after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from assistant.base.errors import PeerError
from assistant.base.picture import Picture, open_picture
from assistant.contracts import PICTURE, Mark
from assistant.events import AudioPart, FunctionCall, FunctionOutput, Item, Message, Part, PicturePart, TextPart
from assistant.talk.album import Album
from assistant.talk.conversation import Conversation, Entry
from assistant.talk.forgotten import tells, without_fact
from assistant.talk.heard import SpokenPiece
from capsules.journal import JSON, Journal

WORDS, KEPT, HEARD, ABOUT = "words", "kept", "heard", "about"
"""Tables: items by id, the values that tools stored for a talk before the home had a store, for the sounding reply, how
much its front reported as heard, and the talk's name, in the row `name`. All others are the engines'."""


class Keeping:
    """Belongs to one session. Without a journal, nothing is stored."""

    def __init__(self, journal: Journal | None = None, album: Album | None = None) -> None:
        self._journal, self._album = journal, album or Album()
        self._noted = -1
        self._rows: dict[str, tuple[Entry, JSON]] = {}
        self._shown: frozenset[str] = frozenset()
        self._told = ""
        self._forgot = False

    def changed(self, conversation: Conversation) -> bool:
        """Whether something that counts has not been noted yet."""
        return self._journal is not None and self._noted != conversation.version

    def note(self, conversation: Conversation) -> None:
        """Note everything as it is now, with a reply under way."""
        if self._journal is not None:
            self._noted = conversation.version
            self._journal.put(WORDS, dict(self._of(conversation)), ordered=True)
            self._tidy(conversation)

    def forgets(self, conversation: Conversation, fact: str = "") -> bool:
        """Note everything, and drop what the journal held before. False: its bytes may still hold the fact."""
        self.note(conversation)
        self._forgot = True
        return self._journal is None or drop_history(self._journal, fact)

    def leave(self, conversation: Conversation) -> None:
        """Note everything at the end. A model that was at work when something was forgotten has let go of it by now."""
        if self._forgot:
            self.forgets(conversation)
        else:
            self.note(conversation)

    def keep(self, entry: Entry) -> None:
        """Write the pictures of an entry to disk before returning, and before the entry is announced."""
        if self._journal is not None:
            self._album.keep(pictures_of(entry))

    def _tidy(self, conversation: Conversation) -> None:
        """Delete pictures that no entry shows any more."""
        shown = _shown_in(conversation)
        if not self._shown <= shown:
            self._album.only(shown)
        self._shown = shown

    def heard(self, item_id: str, played_ms: float) -> None:
        """Note how much of a reply has been heard, as the point to cut at if the front is lost."""
        if self._journal is not None:
            self._journal.put(HEARD, {"last": [item_id, int(played_ms)]})

    def trouble(self) -> str:
        """Why the latest note will not outlive the process; "" if it will. Each reason is returned only once."""
        found = "" if self._journal is None else self._journal.trouble or self._album.trouble
        told, self._told = self._told, found
        return found if found and not told else ""

    def torn(self) -> str:
        """A sentence about the part of the journal that was lost before it was opened; "" if none was."""
        if self._journal is None or not self._journal.torn:
            return ""
        lost, self._journal.torn = self._journal.torn, 0
        return f"the end of what was kept of this talk was not whole ({lost} bytes); it goes on from the change before"

    def _of(self, conversation: Conversation) -> Iterable[tuple[str, JSON]]:
        """A row for each entry; earlier rows are not made again."""
        known, self._rows = self._rows, {}
        for entry in (entry for entry in conversation if not entry.frame):
            found = known.get(entry.item.id)
            if found is None or found[0] is not entry:
                found = entry, entry_row(entry)
            self._rows[entry.item.id] = found
            yield entry.item.id, found[1]


def resumed(journal: Journal, album: Album | None = None) -> Conversation:
    """Restore the talk from a journal; a reply that was being made ends with its last heard word. Raises KeyError,
    TypeError, ValueError or IndexError on rows that were not written here."""
    find = (album or Album()).find
    conversation = Conversation(entry_of(row, find) for row in journal.table(WORDS).values())
    for item_id, played_ms in _pairs(journal.table(HEARD)):
        if item_id in conversation and conversation.entry(item_id).item.status == "in_progress":
            with suppress(PeerError):
                conversation.truncate(item_id, 0, played_ms)
    conversation.leave()
    return conversation


def forget_in(journal: Journal, album: Album, fact: str) -> bool:
    """Take a remembered sentence out of a talk that is not open. False: it may still be in the journal's bytes. Raises
    KeyError, TypeError, ValueError or IndexError on rows that were not written here."""
    rows = journal.table(WORDS).values()
    entries = [entry_of(row, album.find) for row in rows]
    left = without_fact(entries, fact)
    both = zip(left, entries, rows, strict=True)
    journal.put(WORDS, {new.item.id: row if new is old else entry_row(new) for new, old, row in both}, ordered=True)
    if (shown := _shown_in(left)) != _shown_in(entries):
        album.only(shown)
    return drop_history(journal, fact)


def drop_history(journal: Journal, fact: str = "") -> bool:
    """Drop what engines noted, those of other models too, and a name that tells the fact; then write the journal anew,
    so that nothing that was in it before is in its bytes. False: that failed."""
    gone = {name for name in journal.copied() if name not in (WORDS, KEPT, HEARD, ABOUT)}
    if fact and tells(str(journal.table(ABOUT).get("name")), fact):
        gone.add(ABOUT)
    return journal.put_all({name: {} for name in gone}) and journal.rewrite()


def _shown_in(entries: Iterable[Entry]) -> frozenset[str]:
    """The digests of the pictures in them."""
    return frozenset(picture.digest for entry in entries for picture in pictures_of(entry))


def _pairs(rows: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    for item_id, played_ms in rows.values():
        yield str(item_id), int(played_ms)


def pictures_of(entry: Entry) -> list[Picture]:
    """The pictures of an entry that are stored with the talk."""
    if entry.frame or not isinstance(entry.item, Message):
        return []
    return [part.picture for part in entry.item.content if isinstance(part, PicturePart)]


def entry_row(entry: Entry) -> JSON:
    """An entry as a row, without its sound and its pictures."""
    item = entry.item
    row: dict[str, Any] = {"id": item.id, "status": item.status}
    if isinstance(item, Message):
        row |= {"type": "message", "role": item.role}
        row["content"] = [_part_row(part) for part in item.content]
    elif isinstance(item, FunctionCall):
        row |= {"type": "call", "call_id": item.call_id, "name": item.name, "arguments": item.arguments}
    else:
        row |= {"type": "output", "call_id": item.call_id, "output": item.output}
    if entry.reply_id is not None:
        row["reply_id"] = entry.reply_id
    if entry.hidden:
        row["hidden"] = True
    if entry.nod:
        row["nod"] = True
    if entry.aside:
        row["aside"] = True
    if entry.changes:
        row["changes"] = dict(entry.changes)
    if entry.pieces:
        row["pieces"] = [
            [p.piece_id, p.text, p.start, p.end, p.start_sample, p.samples, p.complete,
             [[m.sample, m.char] for m in p.marks]]
            for p in entry.pieces
        ]  # fmt: skip
    return row


def _part_row(part: Part) -> dict[str, str | None]:
    if isinstance(part, PicturePart):
        return {"picture": part.picture.digest, "detail": part.picture.detail}
    return {"text": part.text} if isinstance(part, TextPart) else {"transcript": part.transcript}


def _part_of(row: Mapping[str, Any], find: Callable[[str], bytes | None]) -> Part:
    if "picture" not in row:
        return TextPart(row["text"]) if "text" in row else AudioPart(row["transcript"])
    encoded = find(row["picture"])
    if encoded is None:
        return TextPart(PICTURE)
    try:
        return PicturePart(open_picture(encoded, row["detail"]))
    except PeerError:  # the limits have changed since it came
        return TextPart(PICTURE)


def entry_of(found: JSON, find: Callable[[str], bytes | None] = lambda digest: None) -> Entry:
    """The inverse of `entry_row`; `find` returns a picture by its digest. Raises KeyError, TypeError, ValueError or
    IndexError on anything else."""
    row: Any = found
    item: Item
    if row["type"] == "message":
        content = tuple(_part_of(part, find) for part in row["content"])
        item = Message(row["id"], row["role"], content, row["status"])
    elif row["type"] == "call":
        item = FunctionCall(row["id"], row["call_id"], row["name"], row["arguments"], row["status"])
    elif row["type"] == "output":
        item = FunctionOutput(row["id"], row["call_id"], row["output"], row["status"])
    else:
        raise ValueError(f"unknown kind of item {row['type']!r}")
    pieces = tuple(
        SpokenPiece(p[0], p[1], p[2], p[3], p[4], p[5], tuple(Mark(*m) for m in p[7]), p[6])
        for p in row.get("pieces", ())
    )
    flags = {"hidden": row.get("hidden", False), "nod": row.get("nod", False), "aside": row.get("aside", False)}
    return Entry(item, row.get("reply_id"), pieces, changes=row.get("changes", {}), **flags)
