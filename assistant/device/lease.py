"""Whose state an engine holds, and where that of the other talks is: in a capsule, on disk, or to be built again.

An engine holds one sequence, and several talks share it. A talk that the engine is taken from leaves its state in a
capsule and gets it back at its next step. A talk whose front has left is parked: its capsule is saved, and what is
known beside it is written down, so that it goes on after a restart. Everything here runs on the engines' thread.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from capsules import Capsule
from capsules.durable import write_durably
from capsules.errors import CapsuleError, CapsuleTooLarge
from capsules.prefix import StateKey
from capsules.registry import Registry, named_key

log = logging.getLogger(__name__)

RETURN_S = 600.0
"""A front that lost its connection comes back within this: until then its talk's capsule is not evicted."""
RESTING = 64
"""Talks without a front that stay in memory where they could not be written down."""

S = TypeVar("S")


class Lessee(Protocol[S]):
    """What a lease asks of an engine. `S` is what is known of a talk beside the engine's own state."""

    replaceable: bool
    """Whether a state that is lost can be built again from what is known, equal to the lost one."""

    def freeze(self, state: S, name: str) -> Capsule | None:
        """The engine's state as a capsule; None if there is nothing worth keeping. Raises CapsuleTooLarge."""

    def thaw(self, state: S, capsule: Capsule) -> bool:
        """Put a capsule back into the engine; False if it is not this state's, or not this engine's any more."""

    def clear(self, state: S) -> None:
        """The engine begins with nothing, and so does what is known of it."""

    def to_json(self, state: S) -> dict[str, object]:
        """What is known, for the disk."""

    def from_json(self, facts: dict[str, object]) -> S:
        """The inverse. Raises KeyError, TypeError, ValueError or IndexError on what `to_json` did not write."""


class EngineLease(Generic[S]):
    """`folder` keeps what is known of parked talks over a restart, as `TALK.KIND`; None keeps it in memory only."""

    def __init__(
        self, lessee: Lessee[S], registry: Registry, state_key: StateKey, kind: str, folder: Path | None
    ) -> None:
        self.owner: str | None = None
        """Whose state is in the engine."""
        self._lessee, self._registry, self._state_key = lessee, registry, state_key
        self._kind, self._folder = kind, folder
        self._talks: dict[str, S] = {}
        self._keys: dict[str, str] = {}
        """Of talks that wait: their capsules in the registry."""
        self._outside: dict[str, Capsule] = {}
        """Capsules that nothing could replace and the registry had no room for."""
        self._resting: dict[str, None] = {}

    def __contains__(self, talk: str) -> bool:
        return talk in self._talks

    def find(self, talk: str) -> S | None:
        """What is known of a talk, if anything is; its state need not be in the engine."""
        self._resting.pop(talk, None)
        if talk not in self._talks:
            self._read(talk)
        return self._talks.get(talk)

    def begin(self, talk: str, new: Callable[[], S]) -> S:
        """What is known of a talk; a new one begins with `new`."""
        state = self.find(talk)
        if state is None:
            state = self._talks[talk] = new()
        return state

    def own(self, talk: str) -> bool:
        """Make the engine's state this talk's, which must have begun. False: it had none any more and begins anew."""
        if self.owner == talk:
            return True
        state = self._talks[talk]
        self.release()
        self.owner = talk
        capsule = self._taken(talk)
        if capsule is not None and self._lessee.thaw(state, capsule):
            return True
        self._lessee.clear(state)
        return False

    def release(self) -> None:
        """The present owner's state moves into a capsule; without memory for one it is built again, or lost."""
        talk, self.owner = self.owner, None
        if talk is None or talk not in self._talks:
            return
        capsule = None
        with suppress(CapsuleTooLarge):
            capsule = self._lessee.freeze(self._talks[talk], talk)
        if capsule is None:
            return
        # What can be built again may be evicted; what cannot is pinned until its talk has it back, or is parked.
        key = self._registry.put(capsule, self._state_key, name=self._name(talk), pin=not self._lessee.replaceable)
        if key is not None:
            self._keys[talk] = key
        elif not self._lessee.replaceable:
            self._outside[talk] = capsule
            self._registry.charge(self._name(talk), capsule.nbytes)

    def inherit(self, talk: str, source: str) -> S:
        """A talk goes on with the state of another, which is no more."""
        state, owner, key = self._talks.pop(source), self.owner, self._keys.pop(source, None)
        self.forget(talk)
        self._talks[talk] = state
        if key is not None:
            self._keys[talk] = key
        if owner == source:
            self.owner = talk
        return state

    def lose(self, talk: str) -> None:
        """The engine's state lies between two boundaries: whoever has it next begins anew."""
        if self.owner == talk:
            self.owner = None

    def forget(self, talk: str) -> None:
        self._resting.pop(talk, None)
        self._talks.pop(talk, None)
        self._outside_of(talk)
        self._registry.remove(self._keys.pop(talk, named_key(self._name(talk), self._state_key)))
        if (path := self._path(talk)) is not None:
            path.unlink(missing_ok=True)
        if self.owner == talk:
            self.owner = None

    def park(self, talk: str) -> None:
        """The talk's front has left: save its capsule, write down what finds it again, and let go."""
        if talk not in self._talks:
            return
        if self.owner == talk:
            self.release()
        if (key := self._keys.get(talk)) is not None and not self._lessee.replaceable:
            self._registry.unpin(key)
        if key is not None and self._registry.save(key) and self._write(talk, key):
            self._registry.hold(key, RETURN_S)
            del self._talks[talk], self._keys[talk]
            return
        self._resting[talk] = None
        while len(self._resting) > RESTING:
            self.forget(next(iter(self._resting)))

    # ---------------------------------------------------------------------------------------- inside

    def _name(self, talk: str) -> str:
        """Under which a talk's capsule is listed, for people too."""
        return f"talk/{talk}/{self._kind}"

    def _taken(self, talk: str) -> Capsule | None:
        """Its capsule, which is no longer needed where it was."""
        if (capsule := self._outside_of(talk)) is not None:
            return capsule
        if (key := self._keys.pop(talk, None)) is None:
            return None
        with suppress(CapsuleError):
            capsule = self._registry.get(key)
        self._registry.remove(key)
        return capsule

    def _outside_of(self, talk: str) -> Capsule | None:
        """Its capsule outside the registry, which is given up there; it counted for the budget all the same."""
        capsule = self._outside.pop(talk, None)
        if capsule is not None:
            self._registry.charge(self._name(talk), 0)
        return capsule

    def _path(self, talk: str) -> Path | None:
        """Ids of other shapes than a talk's name no file."""
        named = self._folder is not None and talk.isascii() and talk.replace("_", "").isalnum()
        return self._folder / f"{talk}.{self._kind}" if named and self._folder is not None else None

    def _write(self, talk: str, key: str) -> bool:
        """False if there is no disk for it, or it would not."""
        path = self._path(talk)
        if path is None:
            return False
        facts = {**self._lessee.to_json(self._talks[talk]), "key": key}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, [json.dumps(facts).encode()])
        except OSError as error:
            log.warning("talk %s will be built again after a restart: %s (%s)", talk, path, error.strerror)
            return False
        return True

    def _read(self, talk: str) -> None:
        """Take over what `_write` kept, which is gone then. What is damaged is told, and begins with nothing."""
        path = self._path(talk)
        if path is None or not path.is_file():
            return
        try:
            facts = json.loads(path.read_text("utf-8"))
            self._talks[talk], self._keys[talk] = self._lessee.from_json(facts), str(facts["key"])
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            log.warning("what %s says of talk %s is damaged (%s); its state is built again", path, talk, error)
        with suppress(OSError):
            path.unlink()
