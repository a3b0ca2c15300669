"""Capsules for programs: the stored states of their own prompts, pinned, named, forked, dropped."""

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
