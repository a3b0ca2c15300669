"""The hands of a person on what is remembered of them: `MemoryKeeper` of the contracts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from assistant.base.errors import PeerError
from assistant.talk.archive import KeptTalk
from assistant.tools.errors import AnswerError
from assistant.tools.home import HomeRows
from assistant.tools.memory import FILE, LONGEST, plain, serial_of
from assistant.tools.rows import MEMORY, Thing

Told: TypeAlias = Mapping[str, object]


class HandsOnMemory:
    """`earlier` lists the talks that are kept. `forget` takes a sentence that is out of the file out of them too, and
    returns whether it could. No talk made these changes, so no "undo that" takes them back."""

    def __init__(
        self, home: HomeRows, earlier: Callable[[], Awaitable[Sequence[KeptTalk]]],
        forget: Callable[[str], Awaitable[bool]],
    ) -> None:  # fmt: skip
        self._home, self._earlier, self._forget = home, earlier, forget

    async def sentences(self) -> Told:
        home = self._home
        with _refusals():
            rows = [row for row in home.rows(MEMORY) if isinstance(row, Thing)]
        talks = [*await self._earlier()]
        added = {serial: (talk, turn) for talk in reversed(talks) for serial, turn in talk.remembered.items()}
        beside = home.memory.comments() if home.memory is not None else {}
        data = []
        for row in rows:
            talk, turn = added.get(row.serial, (None, None))
            where = None if talk is None else {"id": talk.talk, "name": talk.name or talk.begins}
            data.append({"text": row.text, "comment": beside.get(row.text, ""), "talk": where, "turn": turn})
        complaint = home.memory.complaint if home.memory is not None else ""
        return {"data": data, "file": FILE, "complaint": complaint}

    async def keep_sentence(self, text: str) -> None:
        sentence = self._sentence(text)
        with _refusals():
            self._home.change([(MEMORY, None, Thing(serial_of(sentence), sentence))])

    async def reword_sentence(self, before: str, after: str) -> None:
        self._found(before)
        if self._home.memory is not None:
            with _refusals():
                self._home.memory.reword(before, self._sentence(after))

    async def take_out(self, text: str) -> None:
        with _refusals():
            self._home.change([(MEMORY, self._found(text), None)])

    async def forget_sentence(self, text: str) -> None:
        with _refusals():
            self._home.forget(self._found(text))
        if not await self._forget(text):
            raise PeerError(
                "not_changed", "it is out of the memory, but not out of every talk: another program has one open, or "
                "the disk is full. The next start goes on with it",
            )

    def _sentence(self, text: str) -> str:
        if not plain(text) or len(text) > LONGEST:
            raise PeerError("not_changed", f"a sentence has 1 to {LONGEST} characters")
        return plain(text)

    def _found(self, text: str) -> Thing:
        with _refusals():
            for row in self._home.rows(MEMORY):
                if isinstance(row, Thing) and row.text == text:
                    return row
        raise PeerError("not_found", f"{text[:60]!r} is not remembered; the file may have been edited")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except AnswerError as error:
        raise PeerError("not_changed", str(error)) from error
