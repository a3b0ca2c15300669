"""Programs pin, name, fork and drop stored states of their prompts. Each verb is one step on the engines' thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

from assistant.base.errors import PeerError
from assistant.contracts import KeptCapsule
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread
from assistant.llm.frozen import folds_of
from assistant.llm.prefixes import LISTED
from capsules.errors import CapsuleError
from capsules.prefix import StateKey
from capsules.registry import Listing, Registry, named_key

MOST_PINNED = 16
"""The limit of one realm: a pinned capsule takes room from everybody."""

T = TypeVar("T")


class LocalKeeper:
    """`key_of` returns the state key of a realm."""

    def __init__(self, thread: EngineThread, registry: Registry, key_of: Callable[[str], StateKey]) -> None:
        self._thread, self._registry, self._key_of = thread, registry, key_of

    def listing(self, realm: str) -> list[KeptCapsule]:
        mine, listed = self._key_of(realm).digest, self._key_of(LISTED).digest
        return [
            _kept(one, listed=one.realm == listed)
            for one in self._registry.listing() if one.realm in (mine, listed) and not one.name.startswith("talk/")
        ]  # fmt: skip

    async def change(self, realm: str, key: str, name: str | None = None, pinned: bool | None = None) -> KeptCapsule:
        return await self._call(lambda: self._change(realm, key, name, pinned))

    async def fork(self, realm: str, key: str, name: str) -> KeptCapsule:
        def fork() -> KeptCapsule:
            self._own(realm, key)
            return self._own(realm, self._copy(realm, key, name))

        return await self._call(fork)

    async def drop(self, realm: str, key: str) -> None:
        def drop() -> None:
            self._own(realm, key)
            self._registry.remove(key)

        await self._call(drop)

    async def _call(self, work: Callable[[], T]) -> T:
        """Do the work. A program's mistake is reported as its own, not as a failure of the engines."""

        def step() -> T | PeerError:
            try:
                return work()
            except PeerError as error:
                return error

        done = await self._thread.call(EngineKind.LLM, step, talk="capsules")
        if isinstance(done, PeerError):
            raise done
        return done

    # ------------------------------------------------------------------------ on the engines' thread

    def _own(self, realm: str, key: str) -> KeptCapsule:
        found = next((one for one in self.listing(realm) if one.key == key), None)
        if found is None:
            raise PeerError("capsule_not_found", f"you have no capsule {key[:60]!r}; list them", "id")
        if found.listed:
            raise PeerError("invalid_value", f"{found.name} is the server's own and cannot be changed", "id")
        return found

    def _change(self, realm: str, key: str, name: str | None, pinned: bool | None) -> KeptCapsule:
        found = self._own(realm, key)
        pinned = found.pinned if pinned is None else pinned
        others = sum(one.pinned for one in self.listing(realm) if not one.listed and one.key != key)
        if pinned and others >= MOST_PINNED:
            raise PeerError("invalid_value", f"{others} capsules are pinned already; unpin one first", "pinned")
        if name is not None and name != found.name:
            copied = self._copy(realm, key, name)
            self._registry.remove(key)
            key = copied
        if pinned and not self._registry.pins(key):
            self._registry.pin(key)
        elif not pinned and self._registry.pins(key):
            self._registry.unpin(key)
        return self._own(realm, key)

    def _copy(self, realm: str, key: str, name: str) -> str:
        """Copy a capsule's state under a name, on disk too, and return the key. The copy is whole, because a base can
        be dropped. It shares the tensors of a whole capsule, which are never written again."""
        state_key = self._key_of(realm)
        try:
            capsule = self._registry.get(key)
        except CapsuleError as error:
            raise PeerError("capsule_not_found", str(error), "id") from error
        if capsule is None:
            raise PeerError("capsule_not_found", f"capsule {key!r} was removed meanwhile", "id")
        self._registry.remove(named_key(name, state_key))
        copied = self._registry.put(
            capsule, state_key, name=name, save=True, ends=[*accumulate(fold.count for fold in folds_of(capsule))],
            points=capsule.host.get("points", ()),
        )  # fmt: skip
        if copied is None:
            raise PeerError("invalid_value", "there is no room for it; unpin or drop another first", "name")
        return copied


def _kept(one: Listing, *, listed: bool) -> KeptCapsule:
    tier, size = next(iter(one.homes.items()), ("", 0))
    kept = KeptCapsule(one.key, one.name, one.scope, one.position, size, tier, one.pinned, one.idle_s, listed)
    return kept if one.base is None else replace(kept, base=one.base.key, shared_bytes=one.base.nbytes)
