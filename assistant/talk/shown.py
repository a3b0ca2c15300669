"""Pictures that the user shows: meant ones, and frames of a camera or a screen. Only the newest frame counts.

A picture with words, or alone, is meant: it stays where it was sent. Pictures of one size that come by themselves,
soon after each other, are frames: clients send these while a camera is on, each as an item, for ever. Our own fronts
mark frames as such. The newest frame waits in a slot and enters the talk when the user begins to speak, types, or asks
for a reply; then it stands before the user's words, one to a turn. The items stay, empty, so that clients find them.

`turn_taking` decides when a frame enters the talk and when it leaves; this file carries it out. A model is asked to
look as soon as a picture is in the talk, so that it has seen it by the time the user has finished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from assistant.base.picture import difference
from assistant.events import CreateItem, FrameShown, Message, PicturePart
from assistant.talk.candidates import Candidates
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry, shows_only
from assistant.talk.effects import HideFrame, ShowFrame
from assistant.talk.messages import FrameCame, Inbox, PictureCame
from assistant.talk.sync import StateSync

SERIES_S = 10.0
"""Pictures of one size that come alone, no further apart than this, are frames; an older frame is out of date."""
SAME = 3.0
"""A frame that differs this little from the one before shows nothing new: grey levels of 255."""
CHANGED = 12.0
"""A frame that differs this much takes the place of the turn's first one,"""
HOLD_S = 4.0
"""but not earlier than this: each is seen anew from its first row."""
MOST_MEANT = 4
"""Meant pictures for one turn."""
MOST_FRAMES = 64
"""Items of frames that stay in the talk."""
SIZES = 8
LET_GO = 4096
"""Ids of frames whose items have been removed again."""
REMEMBERED = 2
"""A frame is shown again this many turns later even if nothing changed: a full context drops older frames first."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame and the time it came, clock seconds."""

    item_id: str
    part: PicturePart
    at: float


class Shown:
    """Belongs to the session's one task."""

    def __init__(self, context: TalkContext, candidates: Candidates, state_sync: StateSync) -> None:
        self._context, self._candidates, self._state_sync = context, candidates, state_sync
        self._talk = context.conversation
        self._newest: Frame | None = None
        """The frame that came last and is not in the talk."""
        self._entered: Frame | None = None
        """The frame that is in the talk for the turn under way, or for the last one."""
        self._turn: str | None = None
        """The turn that it entered the talk for."""
        self._sizes: dict[tuple[int, int], tuple[str, float]] = {}
        """The last picture of each size that came alone, and when."""
        self.let_go: dict[str, None] = {}
        self._unreported: list[FrameShown] = []

    @property
    def _sees(self) -> bool:
        """Whether the model takes pictures. A server may report late that its model does not."""
        return self._context.services.llm.sees

    # --------------------------------------------------------------------------------- incoming pictures

    def is_frame(self, message: Inbox) -> bool:
        """Whether this message brings a frame: a frame changes the talk only once it enters it."""
        return self._frame_of(message) is not None

    def entry(self, command: CreateItem) -> Entry:
        """The entry that an item gets in the talk; a frame's is empty."""
        item, now = command.item, self._context.now()
        if not isinstance(item, Message) or item.role != "user":
            return Entry(item)
        if command.unread is not None:
            self._context.services.metrics.errors.labels(command.unread).inc()
            return Entry(item, frame=True)
        frame = self._frame_of(command)
        if shows_only(item):
            self._count(item, now)
        if frame is None:
            return Entry(item)
        if self._sees:
            self._newest = frame
        return Entry(replace(item, content=()), frame=True)

    def item_added(self, entry: Entry) -> FrameCame | PictureCame | None:
        """Note an item that is now in the talk. Returns what turn-taking must know of it."""
        if entry.frame:
            self._bound()
            return self._frame_came()
        if not shows_only(entry.item):
            return None
        for item_id in self._waiting()[:-MOST_MEANT]:
            self._empty(item_id)
        return PictureCame() if self._sees else None

    def _frame_came(self) -> FrameCame | None:
        frame, shown = self._newest, self._entered
        if frame is None or not self._sees:
            return None
        if shown is None:
            return FrameCame(None, new=True, changed=False)
        late = frame.at - shown.at >= HOLD_S
        changed = late and difference(frame.part.look, shown.part.look) > CHANGED
        return FrameCame(self._turn, not self._known(frame), changed)

    def _frame_of(self, message: Inbox) -> Frame | None:
        """The frame that this message brings, if it contains one and nothing else."""
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
        """Count a picture. A second one of its size makes both frames; the first goes if nobody asked about it."""
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
        """Meant pictures without words or a reply behind them yet, oldest first."""
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

    # --------------------------------------------------------------------------------- entering the talk

    def show_frame(self, effect: ShowFrame) -> None:
        """Put the newest frame into the talk, behind everything said, or before the words that a reply is asked to. It
        replaces the frame that this turn already has."""
        if effect.turn is not None and self._entered is not None and self._turn == effect.turn:
            self._empty(self._entered.item_id)
            self._entered = None
        before = None
        if effect.asked:
            shows, before = self._asked_about()
            if shows:
                return
        if self._enter(effect.turn, before) and effect.ahead and self._sees:
            self._candidates.look_ahead()

    def hide_frame(self, effect: HideFrame) -> None:
        """Remove the frame from the talk: it was shown to something that turned out not to be a turn."""
        frame = self._entered
        if frame is None or self._turn != effect.turn:
            return
        self._entered = self._turn = None
        self._newest = self._newest or frame
        self._empty(frame.item_id)
        if effect.settle:
            self._state_sync.soon()

    async def report(self) -> None:
        """Send the front the frames that entered the talk since the last report."""
        while self._unreported:
            await self._context.emit(self._unreported.pop(0))

    def _asked_about(self) -> tuple[bool, str | None]:
        """Whether the words that a reply is asked to have their picture, and the id of the first of these words."""
        said = None
        for entry in reversed([entry for entry in self._talk if not entry.waits and not entry.hidden]):
            if shows_only(entry.item):
                return True, None
            if not isinstance(entry.item, Message) or entry.item.role != "user":
                break
            said = said or entry.item.id
        return False, said

    def _known(self, frame: Frame) -> bool:
        """Whether the model still has a frame like this one: the last turn's."""
        before = self._entered
        if before is None or before.item_id not in self._talk or self._talk.entry(before.item_id).waits:
            return False
        order = [entry for entry in self._talk if not entry.frame or entry.item.id == before.item_id]
        place = next(n for n, entry in enumerate(order) if entry.item.id == before.item_id)
        turns = sum(isinstance(entry.item, Message) and entry.item.role == "user" for entry in order[place:]) - 1
        if turns > REMEMBERED:
            return False
        return difference(frame.part.look, before.part.look) < SAME

    def _enter(self, turn: str | None, before: str | None) -> bool:
        frame = self._newest
        if frame is None or frame.item_id not in self._talk or self._context.now() - frame.at > SERIES_S:
            return False
        if self._known(frame):
            return False
        self._newest, self._entered, self._turn = None, frame, turn
        self._talk.move(Entry(Message(frame.item_id, "user", (frame.part,)), frame=True), before)
        self._unreported.append(FrameShown(frame.item_id, True))
        return True

    def _empty(self, item_id: str) -> None:
        if item_id in self._talk:
            entry = self._talk.entry(item_id)
            assert isinstance(entry.item, Message)
            self._talk.put(replace(entry, item=replace(entry.item, content=()), frame=True))
            self._unreported.append(FrameShown(item_id, False))
