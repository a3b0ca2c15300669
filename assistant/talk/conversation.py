"""The items of a talk in order, and how deleting, cutting and undoing change them.

Pure: no clock, no engine. Besides its item an entry knows which reply made it and, for a spoken reply, the pieces
of its sound, so that "cut at 1,840 ms" becomes "the words up to here were heard".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from assistant.base.errors import PeerError
from assistant.contracts import Uttered
from assistant.events import (
    REPLY_RATE,
    AudioPart,
    CreateItem,
    FunctionCall,
    FunctionOutput,
    Item,
    Message,
    PicturePart,
    TextPart,
)
from assistant.talk.heard import HeardCut, SpokenPiece, cut_pieces, heard, sample_of_char
from assistant.tools.rows import Changes, composed


@dataclass(frozen=True, slots=True)
class Entry:
    """An item and what the talk knows about it. Fronts never see a `hidden` entry (from the session's own tools)."""

    item: Item
    reply_id: str | None = None
    pieces: tuple[SpokenPiece, ...] = ()
    hidden: bool = False
    frame: bool = False
    """A picture from a camera or a screen. Its item stays when it no longer counts, but its content is dropped."""
    nod: bool = False
    """The user said it over a reply and meant nothing by it: it stands in the transcript, but is not a turn."""
    aside: bool = False
    """The assistant said it to cover a silence: it stands in the transcript, and the models are not told of it."""
    changes: Changes = field(default_factory=dict, compare=False)
    """For a tool's result: the stored rows that the tool changed, before and after."""

    @property
    def waits(self) -> bool:
        """Whether this is a frame that the model is not shown, either not yet or no longer."""
        return self.frame and isinstance(self.item, Message) and not self.item.content

    @property
    def response_id(self) -> str | None:
        """A response makes one reply per round of tools: `resp_1.0`, `resp_1.1`, …"""
        return None if self.reply_id is None else self.reply_id.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Cut:
    """The result of a truncation. `transcript` holds the words that were heard."""

    item_id: str
    audio_end_ms: int
    transcript: str
    changed: bool


class Conversation:
    """Items by id, in order. Every method either does all of its work, or raises PeerError and changes nothing."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[str, Entry] = {entry.item.id: entry for entry in entries}
        self.version = 0
        """Counts the changes that matter; an item that is still being made counts once it is finished."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._entries

    @property
    def items(self) -> tuple[Item, ...]:
        """The items that a front may see, oldest first."""
        return tuple(entry.item for entry in self._entries.values() if not entry.hidden)

    def entry(self, item_id: str, code: str = "item_not_found") -> Entry:
        """Return the entry. Raises PeerError with this code if there is none."""
        try:
            return self._entries[item_id]
        except KeyError:
            raise PeerError(code, f"there is no item {item_id!r} in this conversation", "item_id") from None

    def previous_id(self, item_id: str) -> str | None:
        """The id of the visible item before this one."""
        previous = None
        for entry in self._entries.values():
            if entry.item.id == item_id:
                return previous
            if not entry.hidden:
                previous = entry.item.id
        return None

    def add(self, entry: Entry, after: str | None = None) -> str | None:
        """Put an entry at the end, first (`after="root"`) or behind an item; return the previous visible id."""
        item_id = entry.item.id
        if item_id in self._entries:
            raise PeerError("invalid_value", f"an item {item_id!r} exists already; ids are used once", "item.id")
        if after is None:
            self._entries[item_id] = entry
        else:
            order = list(self._entries.values())
            place = 0
            if after != "root":
                self.entry(after)
                place = next(i for i, known in enumerate(order) if known.item.id == after) + 1
            order.insert(place, entry)
            self._entries = {known.item.id: known for known in order}
        self.version += entry.item.status != "in_progress"
        return self.previous_id(item_id)

    def move(self, entry: Entry, before: str | None = None) -> None:
        """Replace an existing entry, and move it in front of another one or to the end."""
        self.entry(entry.item.id)
        order = [known for known in self if known.item.id != entry.item.id]
        place = next((i for i, known in enumerate(order) if known.item.id == before), len(order))
        order.insert(place, entry)
        self._entries = {known.item.id: known for known in order}
        self.version += 1

    def put(self, entry: Entry) -> None:
        """Replace an existing entry in its place."""
        self.entry(entry.item.id)
        self._entries[entry.item.id] = entry
        self.version += entry.item.status != "in_progress"

    def leave(self) -> None:
        """Mark unfinished entries as incomplete: nobody is making anything any more."""
        for entry in self:
            if entry.item.status == "in_progress":
                self.put(replace(entry, item=replace(entry.item, status="incomplete")))

    def delete(self, item_id: str) -> Entry:
        """Take an item out. Hidden items go with the last visible one of their response, or with the user's
        message that they stand behind."""
        gone = self.entry(item_id)
        order = list(self._entries.values())
        place = order.index(gone)
        hidden = []
        if isinstance(gone.item, Message) and gone.item.role == "user" and not gone.frame:
            for entry in (entry for entry in order[place + 1 :] if not entry.frame):
                if not entry.hidden:
                    break
                hidden.append(entry)
        kin = [e for e in order if e is not gone and e.response_id is not None and e.response_id == gone.response_id]
        if all(entry.hidden for entry in kin):
            hidden += kin
        for entry in (gone, *hidden):
            self._entries.pop(entry.item.id, None)
        self.version += 1
        return gone

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> Cut:
        """Keep only the heard part of a spoken reply. A position behind its end is clamped; a second cut only
        shortens."""
        entry = self.spoken(item_id, content_index)
        cut = heard(entry.pieces, max(0, audio_end_ms) * REPLY_RATE // 1000)
        whole = cut.samples >= sum(piece.samples for piece in entry.pieces)
        text = item_text(entry.item)
        kept = text if whole else text[: cut.chars]
        if not whole:
            self.put(cut_entry(entry, cut, kept))
        return Cut(item_id, cut.samples * 1000 // REPLY_RATE, kept, changed=not whole)

    def spoken(self, item_id: str, content_index: int) -> Entry:
        """A message that can be truncated, be it before its first sound. Raises PeerError."""
        entry = self.entry(item_id)
        item = entry.item
        words = isinstance(item, Message) and any(isinstance(part, TextPart) for part in item.content)
        if not isinstance(item, Message) or item.role != "assistant" or (words and not entry.pieces):
            raise PeerError("invalid_value", "only the assistant's spoken messages can be truncated", "item_id")
        if content_index != 0:
            raise PeerError("invalid_value", "a spoken message has one content part, index 0", "content_index")
        return entry

    @property
    def calls(self) -> set[str]:
        """Ids of the calls that were made."""
        return {entry.item.call_id for entry in self if isinstance(entry.item, FunctionCall)}

    def cut_to_words(self, item_id: str, words: int | None) -> str:
        """Keep the first `words` words of a reply (all of it for None), with their share of its sound."""
        entry = self.entry(item_id)
        item = entry.item
        if words is None:
            return item_text(item)
        if not isinstance(item, Message) or item.role != "assistant":
            raise PeerError("invalid_value", "only the assistant's messages can be cut at a word", "item_id")
        text = item_text(item)
        kept = text[: _end_of_word(text, words)]
        if kept != text:
            cut = _cut_at_char(entry.pieces, len(kept))
            self.put(cut_entry(entry, cut, kept))
        return kept

    def turns_back(self, turns: int) -> tuple[str, ...]:
        """Ids of the visible items that undoing this many turns deletes, newest first.
A turn begins with a user's message, including the pictures sent right before it. Items before the first turn are never
undone.
        never undone.
        """
        gone: list[str] = []
        whole_turns, asked = 0, turns
        behind: Entry | None = None
        for entry in reversed(self._entries.values()):
            joins = entry.waits or (shows_only(entry.item) and behind is not None and _of_user(behind))
            if turns == 0 and not joins:
                break
            if not entry.hidden:
                gone.append(entry.item.id)
            if _of_user(entry):
                turns -= not joins
                whole_turns = len(gone) if turns < asked else 0
            if not entry.hidden and not entry.waits:
                behind = entry
        return tuple(gone[:whole_turns])

    def changes(self, item_ids: Sequence[str]) -> Changes:
        """The rows that tools changed in these items and in the items that go with them."""
        rest = Conversation(self)
        for item_id in item_ids:
            if item_id in rest:
                rest.delete(item_id)
        changed: Changes = {}
        for entry in self:
            if entry.item.id not in rest:
                changed = composed(changed, entry.changes)
        return changed

    def after(self, item_id: str) -> tuple[str, ...]:
        """Ids of the visible items behind this one, newest first."""
        self.entry(item_id)
        order = [entry.item.id for entry in self._entries.values() if not entry.hidden]
        return tuple(reversed(order[order.index(item_id) + 1 :]))

    def uttered(self) -> tuple[Uttered, ...]:
        """Every piece of sound that counts as said, oldest first: the voice is to remember these."""
        return tuple(
            Uttered(piece.piece_id, piece.text, piece.samples)
            for entry in self._entries.values()
            for piece in entry.pieces
            if piece.samples and not entry.aside
        )


def _of_user(entry: Entry) -> bool:
    return isinstance(entry.item, Message) and entry.item.role == "user" and not entry.nod


def item_text(item: Item) -> str:
    """The words of an item, written or spoken; for other kinds, the arguments of a call or the answer of a tool."""
    if isinstance(item, FunctionCall):
        return item.arguments
    if isinstance(item, FunctionOutput):
        return item.output
    return " ".join(part_text(part) for part in item.content if not isinstance(part, PicturePart))


def shows_only(item: Item) -> bool:
    """Whether this is a user's message with pictures and without a word."""
    if not isinstance(item, Message) or item.role != "user" or not item.content:
        return False
    return all(isinstance(part, PicturePart) for part in item.content)


def is_typed(command: CreateItem) -> bool:
    """Whether the user has just typed this: words and no picture."""
    item = command.item
    if not isinstance(item, Message) or item.role != "user" or command.unread is not None or command.after is not None:
        return False
    return not any(isinstance(part, PicturePart) for part in item.content)


def part_text(part: TextPart | AudioPart) -> str:
    return part.text if isinstance(part, TextPart) else part.transcript or ""


def cut_entry(entry: Entry, cut: HeardCut, text: str) -> Entry:
    """The entry with `text` as its complete words and the sound cut to match."""
    item = entry.item
    assert isinstance(item, Message)
    part: TextPart | AudioPart = AudioPart(transcript=text) if entry.pieces else TextPart(text)
    if entry.pieces and isinstance(old := item.content[0] if item.content else None, AudioPart):
        pcm = None if old.pcm is None else old.pcm[: cut.samples]
        part = AudioPart(transcript=text, pcm=pcm)
    return replace(
        entry,
        item=replace(item, content=(part,), status="incomplete"),
        pieces=cut_pieces(entry.pieces, cut),
    )


def _end_of_word(text: str, words: int) -> int:
    end = 0
    for _ in range(words):
        while end < len(text) and text[end].isspace():
            end += 1
        while end < len(text) and not text[end].isspace():
            end += 1
    return end


def _cut_at_char(pieces: Sequence[SpokenPiece], chars: int) -> HeardCut:
    """The cut that keeps the sound of the first `chars` characters."""
    played = 0
    for piece in pieces:
        if chars >= piece.end:
            played = piece.start_sample + piece.samples
        elif chars > piece.start:
            rest = piece.text[chars - piece.start :]
            next_word = chars - piece.start + len(rest) - len(rest.lstrip())
            inside = min(piece.samples, sample_of_char(piece, next_word))
            played = piece.start_sample + inside
    cut = heard(pieces, played)
    return HeardCut(chars, cut.samples, cut.uttered)
