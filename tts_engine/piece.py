"""The host's record of a session: its pieces of text, the rows sampled for each, and how much was given out.

All of it is JSON, because it travels in capsules. Rows are stored, not frames: frames follow from them, and
so do the codes of frames that have only begun.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tts_engine.config import AudioConfig
from tts_engine.errors import EngineMisuse
from tts_engine.frontend import Word


@dataclass
class Piece:
    """One `<|text|> … <|audio|> …` of a session.

    start      position of its first input, the lead-in: rows of the previous piece that still had to be fed
    audio      position of `<|audio|>`
    rows       sampled so far, [R][Q]
    track      cursor index and rows spent for each row, and for the next row (zeros without a cursor)
    total      frames, once the end is known
    ended      why it ended: "" while it continues, "end", "budget", "repeat", "silence", "numbers", "cut"
    emitted    frames given out as audio
    refed      it was fed as a whole, including its rows, and not spoken in place
    """

    text: str
    ids: list[int]
    words: list[list[int]]
    policy: str
    budget: int
    start: int
    audio: int
    lead_in: list[list[int]]
    rows: list[list[int]] = field(default_factory=list)
    track: list[list[int]] = field(default_factory=lambda: [[0, 0]])
    total: int | None = None
    ended: str = ""
    emitted: int = 0
    silent: int = 0
    refed: bool = False

    def complete(self, audio: AudioConfig) -> int:
        """Number of frames with all codes known."""
        frames = max(0, len(self.rows) - audio.delay)
        return frames if self.total is None else min(frames, self.total)

    def begun(self) -> int:
        """Number of frames with at least the first code known."""
        return len(self.rows) if self.total is None else min(len(self.rows), self.total)

    def codes(self, audio: AudioConfig, start: int, end: int) -> Tensor:
        """[Q, end - start] int64; `audio.size` if a code is unknown or the frame lies outside the piece."""
        limit = self.begun()
        codes = torch.full((audio.codebooks, end - start), audio.size, dtype=torch.int64)
        first, last = max(0, start), min(end, limit)
        if last <= first:
            return codes
        rows = torch.tensor(self.rows[first : last + audio.delay], dtype=torch.int64)
        for q in range(audio.codebooks):
            column = rows[q : q + last - first, q]
            column = torch.where(column < audio.size, column, 0)
            codes[q, first - start : first - start + column.shape[0]] = column
        return codes

    def frames_of_words(self) -> list[tuple[int, int, int]]:
        """(char_start, char_end, frame at which the word begins), as far as the rows show.

        With a cursor: the row at which it first reaches the word. Without: chunk borders are exact, and words between
        them are placed in proportion to their characters, once the length is known.
        """
        if self.words:
            return _by_cursor([Word(*w) for w in self.words], [index for index, _ in self.track[:-1]])
        if self.total is None or not self.text:
            return []
        spans, at = [], 0
        for word in self.text.split():
            at = self.text.index(word, at)
            spans.append((at, at + len(word), at * self.total // len(self.text)))
            at += len(word)
        return spans

    def spoken_track(self, audio: AudioConfig, length: int, lead: int) -> Tensor:
        """[T, 3] cursor inputs of the piece when it is fed again, behind `lead` rows and `length` text ids.

        Rows after the last frame find the cursor at the end.
        """
        frames = self.complete(audio)
        spoken = [[min(index, length), spent, 1] for index, spent in self.track[:frames]]
        after = [[length, i, 1] for i in range(audio.delay)]
        opening = [[0, 0, 0]] * (lead + 1 + length)
        return torch.tensor([*opening, *spoken, *after, [0, 0, 0]], dtype=torch.int64)

    def to_json(self) -> dict[str, Any]:
        """A copy; `asdict` would take ten times as long over thousands of rows."""
        rows, track = [[*row] for row in self.rows], [[*at] for at in self.track]
        return {**vars(self), "rows": rows, "track": track, "lead_in": [[*row] for row in self.lead_in]}


def _by_cursor(words: Sequence[Word], track: Sequence[int]) -> list[tuple[int, int, int]]:
    spans = []
    row = 0
    for word in words:
        while row < len(track) and track[row] < word.first:
            row += 1
        if row == len(track):
            break
        spans.append((word.char_start, word.char_end, row))
    return spans


@dataclass(frozen=True)
class PieceFacts:
    """The facts about one piece.

    first_frame  frames of the session before it
    frames       complete so far; `emitted` of them were given out as sound
    ended        "" while it goes on, "end", the reason it ended early (see tts_engine.guards), or "cut"
    words        (char_start, char_end, frame of the piece at which the word begins), as far as known
    """

    text: str
    first_frame: int
    frames: int
    emitted: int
    ended: str
    words: tuple[tuple[int, int, int], ...]


@dataclass
class SpeechSession:
    """voice is None for a zero-shot session: {"codes": [Q][T] or None, "transcript": str or None, "name": str}.

    dropped  frames of pieces that were removed from the context; global frame numbers count them
    pending  rows still to be fed before the next input
    """

    voice: dict[str, Any]
    pieces: list[Piece] = field(default_factory=list)
    queue: list[list[Any]] = field(default_factory=list)  # [text, policy, row budget]
    pending: list[list[int]] = field(default_factory=list)
    dropped: int = 0
    position: int = 0
    prefix: int = 0  # positions of the voice

    def piece_facts(self, audio: AudioConfig) -> tuple[PieceFacts, ...]:
        """Facts about the pieces in the context, in order."""
        first, facts = self.dropped, []
        for piece in self.pieces:
            frames = piece.complete(audio)
            words = tuple(piece.frames_of_words())
            facts.append(PieceFacts(piece.text, first, frames, piece.emitted, piece.ended, words))
            first += frames
        return tuple(facts)

    def frames(self, audio: AudioConfig) -> int:
        """Complete frames so far, including those that have left the context."""
        return self.dropped + sum(piece.complete(audio) for piece in self.pieces)

    def locate(self, frame: int, audio: AudioConfig) -> tuple[int, int]:
        """(piece, frames of it) such that `frame` frames lie before; 0 frames in only at the very start.

        Raises EngineMisuse for a frame that does not exist, or no longer does.
        """
        if not self.dropped <= frame <= self.frames(audio):
            raise EngineMisuse(f"frame {frame} is not held; frames {self.dropped} to {self.frames(audio)} are")
        left = frame - self.dropped
        for i, piece in enumerate(self.pieces):
            if left <= piece.complete(audio):
                return i, left
            left -= piece.complete(audio)
        return 0, 0

    def tokens(self) -> tuple[int, ...]:
        """Text ids in order, -100 for a row; with the host facts enough to rebuild the session."""
        tokens = [-100] * self.prefix
        for piece in self.pieces:
            tokens += [-100] * len(piece.lead_in) + piece.ids + [-100] * len(piece.rows)
        return tuple(tokens)

    def to_json(self) -> dict[str, Any]:
        pending = [[*row] for row in self.pending]
        own = {**vars(self), "queue": [[*one] for one in self.queue], "pending": pending, "voice": {**self.voice}}
        return {**own, "pieces": [piece.to_json() for piece in self.pieces]}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "SpeechSession":
        """A session of its own: the facts in a capsule are never changed."""
        raw = deepcopy(raw)
        return cls(**{**raw, "pieces": [Piece(**piece) for piece in raw["pieces"]]})
