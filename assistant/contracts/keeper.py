"""Things that programs and hands look after: capsules, the language model that answers, timers and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class KeptCapsule:
    """`name` may be empty. `listed`: it belongs to the server (a persona); everybody finds it and nobody changes it.
    `base`: key of the capsule that it builds on, whose `shared_bytes` are not counted in its own; otherwise empty."""

    key: str
    name: str
    engine: str
    position: int
    size_bytes: int
    tier: str
    pinned: bool
    idle_s: float
    listed: bool
    base: str = ""
    shared_bytes: int = 0


class CapsuleKeeper(Protocol):
    """A caller names a realm, and sees only the capsules of that realm and the listed ones. All methods except
    `listing` raise PeerError for a key that does not exist, and for a listed one."""

    def listing(self, realm: str) -> Sequence[KeptCapsule]:
        """The capsules, least recently used first."""
        ...

    async def change(self, realm: str, key: str, name: str | None = None, pinned: bool | None = None) -> KeptCapsule:
        """Name a capsule, pin or unpin it; None changes nothing. A name that another capsule has moves to this one."""
        ...

    async def fork(self, realm: str, key: str, name: str) -> KeptCapsule:
        """Copy a state under another name: each of the two goes on, is changed and is dropped without the other."""
        ...

    async def drop(self, realm: str, key: str) -> None: ...


Removed: TypeAlias = tuple[str, Sequence[int | float | str | None]]
"""Something that was taken from the home: its place and its cells."""


class HouseholdKeeper(Protocol):
    """The timers, alarms, lists and notes of a home, for a person to see and change. All methods raise PeerError."""

    def everything(self) -> Mapping[str, object]:
        """`rings` are timers, alarms and reminders, `lists` are lists and notes."""
        ...

    def take_away(self, key: str) -> list[Removed]: ...

    def give_back(self, removed: Sequence[Removed]) -> None:
        """Store again what `take_away` returned."""
        ...

    def adjust_timer(self, serial: int, *, paused: bool | None = None, add_s: float = 0.0) -> None: ...


class MemoryKeeper(Protocol):
    """The sentences that every talk begins with, for a person to see and change. All methods raise PeerError."""

    async def sentences(self) -> Mapping[str, object]:
        """`data`: each with the comment beside it, and the talk and turn that added it, if one did and is kept.
        `file`: the place of all of them."""
        ...

    async def keep_sentence(self, text: str) -> None: ...

    async def reword_sentence(self, before: str, after: str) -> None: ...

    async def take_out(self, text: str) -> None:
        """Later talks do not begin with it; the words of earlier talks stay."""
        ...

    async def forget_sentence(self, text: str) -> None:
        """Take it out of the words and states of all talks as well."""
        ...


class ModelKeeper(Protocol):
    """Which language model answers, which could, and which could be fetched. A refusal is a PeerError, and then nothing
    has changed. Nothing is fetched or switched unasked."""

    def overview(self) -> Mapping[str, object]:
        """`answers`, `here`, `offers`, `fetch` and `switch` as `/v1/models` sends them. Takes up to a second for each
        model that was not looked at before, on any thread."""
        ...

    def progress(self) -> Mapping[str, object]:
        """`fetch` and `switch` alone, at once."""
        ...

    def fetch_model(self, name: str, *, accept_licence: bool = False) -> None:
        """Begin, or go on."""
        ...

    def pause_fetch(self) -> None: ...

    def cancel_fetch(self) -> None: ...

    async def switch_to(self, name: str) -> None:
        """Let another model answer. Returns once it is certain that it will be tried; the talks go on with it."""
        ...
