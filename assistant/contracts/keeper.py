"""Capsules for programs: what is kept of one's own prompts, pinned, named, forked, dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class KeptCapsule:
    """`name` may be empty. `listed`: the server's own (a persona), which everybody finds and nobody changes. `base`:
    key of the capsule that it follows, whose `shared_bytes` are not in its own; else empty."""

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
    """Whoever asks names a realm, and meets the capsules of that realm and the listed ones alone. All but `listing`
    raise PeerError for a key that is not there, and for a listed one."""

    def listing(self, realm: str) -> Sequence[KeptCapsule]:
        """Least recently used first."""
        ...

    async def change(self, realm: str, key: str, name: str | None = None, pinned: bool | None = None) -> KeptCapsule:
        """Give a name, pin or unpin; None leaves it. A name that another has is taken from it."""
        ...

    async def fork(self, realm: str, key: str, name: str) -> KeptCapsule:
        """The same state once more, under a name: either goes on, is changed and dropped without the other."""
        ...

    async def drop(self, realm: str, key: str) -> None: ...
