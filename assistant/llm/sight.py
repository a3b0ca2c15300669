"""The pictures of a model's talks: resized beside the engines' thread, seen on it, and stored by their content.

A picture is seen once: its rows stay in the engine's store, held while a talk shows them. Evicted ones are seen again
with the same bits, from the original, which the talk holds as long as the picture stands in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from assistant.base.picture import Picture
from assistant.contracts import Prompt
from assistant.device.thread import Work
from assistant.llm.language import Language
from assistant.llm.talk_state import LetGo
from llm_engine import HybridLLM
from llm_engine.pictures import at_hand
from llm_engine.pixels import FittedPicture, fit

K = TypeVar("K")
T = TypeVar("T")

REMEMBERED = 1024
"""Pictures whose ids in a sequence are remembered, with the time it took to see them."""
SOURCES = 256
"""Originals of pictures, so that these can be seen again."""
WAITING = 16
"""Resized pictures, up to 6 MB each, that are still to be seen."""
MARKS = 2
"""Tokens around a picture."""


class Sight:
    """The eyes of one engine; without a tower, or a chat format that places pictures, it sees nothing. `now`: seconds;
    `charge` gets the bytes of this machine's memory that are in use."""

    def __init__(
        self, llm: HybridLLM, language: Language, now: Callable[[], float], charge: Callable[[int], None]
    ) -> None:
        self._llm, self._now, self._charge = llm, now, charge
        self.eyes = llm.eyes if language.layout.marks is not None else None
        self._encode = language.encode
        self._ids: dict[tuple[str, str], tuple[int, ...]] = {}
        self._sources: dict[int, Picture] = {}
        self._waiting: dict[int, FittedPicture] = {}
        self._shown: dict[str, dict[int, int]] = {}
        """By talk and picture: the last line that shows it."""
        self._first: dict[str, int] = {}
        """By talk: the first line whose pictures are shown."""
        self._took: dict[int, tuple[float, tuple[str, int] | None]] = {}
        """Milliseconds, and the turn that they are reported for, by its talk and its line."""

    def encode(self, part: str | Picture) -> Sequence[int]:
        """The language's `encode`, for pictures too."""
        return self.ids(part) if isinstance(part, Picture) else self._encode(part)

    def ids(self, picture: Picture) -> tuple[int, ...]:
        """The ids that stand for it in a sequence, one per row."""
        found = self._ids.get((picture.digest, picture.detail))
        return self._fit(picture) if found is None else found

    async def ready(self, talk: str, prompt: Prompt) -> None:
        """Resize the pictures of a prompt before its work begins, because decoding a photograph takes up to a second.
        Raises PeerError for a damaged picture, PictureError for one that cannot be used."""
        shown = {}
        first = min(self._first.get(talk, 0), len(prompt.lines))
        for place, picture in _pictures(prompt, first):
            ids = self._ids.get((picture.digest, picture.detail))
            if ids is None or not (ids[0] in self._llm.pictures or ids[0] in self._waiting):
                ids = await asyncio.to_thread(self._fit, picture)
            _remember(self._sources, ids[0], picture, SOURCES)
            shown[ids[0]] = place
        self._shown[talk] = shown

    def hold(self, talk: str, gone: LetGo) -> None:
        """Hold the pictures that a talk shows as seen from here on; those it showed before may go."""
        if (shown := self._shown.get(talk)) is not None:
            first = self._first[talk] = max(gone.lines, gone.pictured)
            self._llm.pictures.hold(talk, [name for name, place in shown.items() if place >= first])

    def show_nothing(self, talk: str) -> None:
        """Let go of a talk's pictures: it is over, or pauses."""
        self._shown.pop(talk, None)
        self._first.pop(talk, None)
        self._llm.pictures.hold(talk, ())

    def look(self, ids: Iterable[int]) -> Work[None]:
        """See the pictures among these ids that are not at hand. Raises StateError for one that nobody showed."""
        for name in dict.fromkeys(i for i in ids if i < 0):
            if name in self._llm.pictures:
                continue
            if name not in self._waiting and name in self._sources:
                self._fit(self._sources[name])
            if self.eyes is None or name not in self._waiting:
                at_hand(self._llm.pictures, name)
                continue
            begun = self._now()
            seen = yield from self.eyes.look(self._waiting[name])
            self._llm.pictures.put(name, seen)
            self._charge(self._llm.pictures.nbytes)
            self._waiting.pop(name, None)
            _remember(self._took, name, ((self._now() - begun) * 1000, None), REMEMBERED)

    def last_seen(self, talk: str, prompt: Prompt) -> tuple[int, float]:
        """Tokens of the pictures of a prompt's last turn, and the milliseconds it took to see them, reported to each
        reply to the first turn that shows them."""
        place = max((i for i, line in enumerate(prompt.lines) if line.pictures), default=-1)
        if place < 0 or any(line.role == "user" for line in prompt.lines[place + 1 :]):
            return 0, 0.0
        shown = [self.ids(placed.picture) for placed in prompt.lines[place].pictures]
        took_ms = 0.0
        for name in {ids[0] for ids in shown} & self._took.keys():
            ms, turn = self._took[name]
            if turn in (None, (talk, place)):
                self._took[name] = ms, (talk, place)
                took_ms += ms
        return sum(map(image_tokens, shown)), took_ms

    def _fit(self, picture: Picture) -> tuple[int, ...]:
        """Resize a picture, on any thread."""
        assert self.eyes is not None, "a model without eyes is shown no pictures"
        fitted = fit(picture.pixels, *self.eyes.pixels_of(picture.detail))
        _remember(self._waiting, fitted.id, fitted, WAITING)
        ids = (fitted.id,) * fitted.grid.count
        _remember(self._ids, (picture.digest, picture.detail), ids, REMEMBERED)
        return ids


def image_tokens(ids: Sequence[int]) -> int:
    """The number of ids that belong to pictures and their marks."""
    rows = sum(i < 0 for i in ids)
    ends = sum(i < 0 and after != i for i, after in zip(ids, (*ids[1:], 0), strict=False))
    return rows + MARKS * ends


def _pictures(prompt: Prompt, first: int) -> Iterator[tuple[int, Picture]]:
    """The pictures from a line on, each with its line's place."""
    for place, line in enumerate(prompt.lines[first:], first):
        for placed in line.pictures:
            yield place, placed.picture


def _remember(held: dict[K, T], key: K, value: T, most: int) -> None:
    """Remember the newest `most` values."""
    held.pop(key, None)
    held[key] = value
    for old in list(held)[:-most]:
        held.pop(old, None)
