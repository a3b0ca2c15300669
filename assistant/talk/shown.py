"""What the user shows: pictures that are meant, and frames of a camera or a screen, of which only the newest counts.

A picture with words, or alone, is meant: it stands where it was sent. Pictures of one size that come by themselves,
soon after each other, are frames: that is what clients send while a camera is on, each as an item, for ever. A front of
ours says so of a frame. The newest waits in a slot and enters the talk when the user begins to speak, types, or asks
for a reply; then it stands before the user's words, one to a turn. Their items stay, empty, so that clients find them.

A model is asked to look as soon as a picture is in the talk, so that it was seen when the user has finished.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from assistant.base.picture import difference
from assistant.events import CreateItem, FrameShown, Message, PicturePart
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry, shows_only
from assistant.talk.messages import Inbox, UserWords

SERIES_S = 10.0
"""Pictures of one size that come alone, no further apart, are frames; and a frame is older news after as long."""
SAME = 3.0
"""A frame that differs so little from the one before shows nothing new: grey levels of 255."""
CHANGED = 12.0
"""One that differs so much takes the place of the turn's first frame,"""
HOLD_S = 4.0
"""but not before this: each is seen anew from its first row."""
MOST_MEANT = 4
"""Pictures that are meant, for one turn."""
MOST_FRAMES = 64
"""Items of frames that are kept in the talk."""
SIZES = 8
LET_GO = 4096
"""Ids of frames whose items are not kept any more."""
REMEMBERED = 2
"""Turns behind a frame after which it is shown again even if nothing changed: a full context drops older ones first."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame and when it came, clock seconds."""

    item_id: str
    part: PicturePart
    at: float


class Shown:
    """Belongs to the session's one task. `look` asks the model to look ahead at what is in the talk; `back` takes back
    what it has seen of what is no more."""

    def __init__(self, context: TalkContext, look: Callable[[], None], back: Callable[[], None]) -> None:
        self._context, self._look, self._back = context, look, back
        self._talk = context.conversation
        self._newest: Frame | None = None
        """Came last, and is not in the talk."""
        self._taken: Frame | None = None
        """Is in the talk for the turn under way, or for the last one."""
        self._speech: str | None = None
        """The user's speech under way, by the item that it will be."""
        self._goes_on = False
        """That speech goes on with a turn, which has shown what it is about."""
        self._turn: str | None = None
        """The turn that the frame was taken for."""
        self._sizes: dict[tuple[int, int], tuple[str, float]] = {}
        """Of what came alone: the last of each size, and when."""
        self.let_go: dict[str, None] = {}
        self._told: list[FrameShown] = []

    @property
    def _sees(self) -> bool:
        """A server may say late that its model does not."""
        return self._context.services.llm.sees

    # ------------------------------------------------------------------------------------ what comes in

    def idle_frame(self, message: Inbox) -> bool:
        """Whether this is a frame that changes nothing for the turn under way."""
        frame = self._frame_of(message)
        return frame is not None and not self._enters(frame)

    def entry(self, command: CreateItem) -> Entry:
        """How an item comes into the talk; a frame's is empty."""
        item, now = command.item, self._context.now()
        if not isinstance(item, Message) or item.role != "user":
            return Entry(item)
        if command.unread is not None:
            self._context.services.metrics.errors.labels(command.unread).inc()
            return Entry(item, frame=True)
        frame = self._frame_of(command)
        if shows_only(item):
            self._count(item, now)
        elif command.after is None and not any(isinstance(part, PicturePart) for part in item.content):
            self._take()  # typed: what is shown now stands before it
        if frame is None:
            return Entry(item)
        if self._sees:
            self._newest = frame
        return Entry(replace(item, content=()), frame=True)

    def added(self, entry: Entry) -> None:
        """It is in the talk now."""
        if entry.frame:
            if self._speech is not None and self._newest is not None and self._enters(self._newest):
                self._instead()
            self._bound()
        elif shows_only(entry.item):
            for item_id in self._waiting()[:-MOST_MEANT]:
                self._empty(item_id)
            self._ahead()

    def _frame_of(self, message: Inbox) -> Frame | None:
        """The frame that this message brings, if it brings one and no more."""
        if not isinstance(message, CreateItem) or not isinstance(message.item, Message):
            return None
        item, now = message.item, self._context.now()
        if not shows_only(item) or len(item.content) != 1 or message.after is not None:
            return None
        [part] = item.content
        assert isinstance(part, PicturePart)
        before = self._sizes.get((part.picture.width, part.picture.height))
        series = before is not None and now - before[1] < SERIES_S
        if not (series if part.frame is None else part.frame):
            return None
        return Frame(item.id, replace(part, frame=True), now)

    def _count(self, item: Message, now: float) -> None:
        """A second one of a size makes frames of both; the first no longer counts if nobody has asked about it."""
        for part in item.content:
            assert isinstance(part, PicturePart)
            if part.frame is not None:
                continue
            size = part.picture.width, part.picture.height
            before = self._sizes.pop(size, None)
            self._sizes[size] = item.id, now
            if before is not None and now - before[1] < SERIES_S and before[0] in self._waiting():
                self._empty(before[0])
        while len(self._sizes) > SIZES:
            self._sizes.pop(next(iter(self._sizes)))

    def _waiting(self) -> list[str]:
        """Pictures that were meant, and that no words or reply stand behind yet, oldest first."""
        found: list[str] = []
        for entry in reversed(tuple(self._talk)):
            if not entry.waits and not entry.hidden:
                if not shows_only(entry.item):
                    break
                if not entry.frame:
                    found.append(entry.item.id)
        return found[::-1]

    def _bound(self) -> None:
        waiting = [entry.item.id for entry in self._talk if entry.waits]
        for item_id in waiting[:-MOST_FRAMES]:
            self._talk.delete(item_id)
            self.let_go[item_id] = None
        while len(self.let_go) > LET_GO:
            self.let_go.pop(next(iter(self.let_go)))

    # -------------------------------------------------------------------------------- what enters the talk

    def follow(self) -> None:
        """After each message: the user began to speak, or what began was no turn."""
        overlap = self._context.turn.overlap
        speech = None if overlap is None else overlap.item_id
        if speech == self._speech:
            return
        if self._speech is not None and not self._said(self._speech):
            self._give_back(self._speech)
        self._speech = speech
        self._goes_on = overlap is not None and overlap.joins is not None
        if overlap is not None and not self._goes_on:
            self._take(speech)

    def told(self) -> list[FrameShown]:
        """What the front is to be told since it was asked last."""
        told, self._told = self._told, []
        return told

    def heard(self, words: UserWords) -> None:
        """What a turn said. Nothing: it was none."""
        if not words.text.strip():
            self._give_back(words.item_id)

    def asked(self) -> None:
        """The front asks for a reply to what was said and shown."""
        said = None
        for entry in reversed([entry for entry in self._talk if not entry.waits and not entry.hidden]):
            if shows_only(entry.item):
                return
            if not isinstance(entry.item, Message) or entry.item.role != "user":
                break
            said = said or entry.item.id
        self._take(before=said)

    def _said(self, item_id: str) -> bool:
        return item_id in self._talk and not self._talk.entry(item_id).nod

    def _enters(self, frame: Frame) -> bool:
        """Whether a frame that comes now is for the turn under way."""
        if self._speech is None or self._goes_on or not self._sees:
            return False
        if self._taken is None or self._turn != self._speech:
            return not self._known(frame)
        late = frame.at - self._taken.at >= HOLD_S
        return late and difference(frame.part.look, self._taken.part.look) > CHANGED

    def _known(self, frame: Frame) -> bool:
        """Whether the model still has a frame like this one: the last turn's."""
        before = self._taken
        if before is None or before.item_id not in self._talk or self._talk.entry(before.item_id).waits:
            return False
        order = [entry for entry in self._talk if not entry.frame or entry.item.id == before.item_id]
        place = next(n for n, entry in enumerate(order) if entry.item.id == before.item_id)
        turns = sum(isinstance(entry.item, Message) and entry.item.role == "user" for entry in order[place:]) - 1
        if turns > REMEMBERED:
            return False
        return difference(frame.part.look, before.part.look) < SAME

    def _take(self, turn: str | None = None, before: str | None = None) -> None:
        """The newest frame enters the talk, behind all that was said, or in front of an item."""
        frame = self._newest
        if frame is None or frame.item_id not in self._talk or self._context.now() - frame.at > SERIES_S:
            return
        if self._known(frame):
            return
        self._newest, self._taken, self._turn = None, frame, turn
        self._talk.move(Entry(Message(frame.item_id, "user", (frame.part,)), frame=True), before)
        self._told.append(FrameShown(frame.item_id, True))
        self._ahead()

    def _instead(self) -> None:
        """In place of the frame that the turn has, if it has one."""
        if self._taken is not None and self._turn == self._speech:
            self._empty(self._taken.item_id)
            self._taken = None
        self._take(self._speech)

    def _give_back(self, turn: str) -> None:
        """It was no turn: what it was shown was never there."""
        frame = self._taken
        if frame is None or self._turn != turn:
            return
        self._taken = self._turn = None
        self._newest = self._newest or frame
        self._empty(frame.item_id)
        if not self._context.turn.replying:  # else the models are the reply's, and the next one settles them
            self._back()

    def _empty(self, item_id: str) -> None:
        if item_id in self._talk:
            entry = self._talk.entry(item_id)
            assert isinstance(entry.item, Message)
            self._talk.put(replace(entry, item=replace(entry.item, content=()), frame=True))
            self._told.append(FrameShown(item_id, False))

    def _ahead(self) -> None:
        if self._sees and not self._context.turn.replying:
            self._look()
